#include "tests/gpu/slice.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>
#include <utility>

#include "runtime/base/status_macros.h"

namespace fusiond::testing {
namespace {

using ir::AttributeKey;
using ir::Dims;
using ir::Graph;
using ir::Node;
using ir::NodeId;
using ir::Op;
using ir::ValueId;

// iota, or a reshape of one: elements count up from a constant by a constant.
bool IsCoordinate(const Graph& graph, ValueId value) {
  const Node& node = graph.producer(value);
  if (node.op == Op::kReshape) return graph.producer(node.operands[0]).op == Op::kIota;
  return node.op == Op::kIota;
}

// The dims of all values, those united that run over the same elements.
class Axes {
 public:
  explicit Axes(const Graph& graph) : graph_(graph) {
    for (ValueId v = 0; v < graph.value_count(); ++v) {
      first_.push_back(parents_.size());
      for (size_t d = 0; d < graph.type(v).shape.size(); ++d) parents_.push_back(parents_.size());
    }
    reduced_.resize(parents_.size());
  }

  size_t Find(ValueId value, size_t dim) const {
    size_t axis = first_[value] + dim;
    while (parents_[axis] != axis) axis = parents_[axis];
    return axis;
  }
  bool Reduced(size_t axis) const { return reduced_[axis]; }

  void Add(const Node& node) {
    const ValueId result = node.results[0];
    switch (ir::Info(node.op).op_class) {
      case ir::OpClass::kPointwise:
        for (ValueId operand : node.operands) Align(operand, result);
        break;
      case ir::OpClass::kReduction:
        for (ValueId r : node.results) AddReduction(node, node.operands[0], r);
        break;
      case ir::OpClass::kShape:
        AddShape(node, node.operands[0], result);
        break;
      case ir::OpClass::kMap:
        if (!IsCoordinate(graph_, result)) AddMap(node, result);
        break;
      default:
        break;
    }
  }

 private:
  void Unite(ValueId a, size_t i, ValueId b, size_t j) {
    if (graph_.type(a).shape[i] != graph_.type(b).shape[j]) return;  // one of them is broadcast
    const size_t from = Find(a, i), to = Find(b, j);
    parents_[from] = to;
    reduced_[to] = reduced_[to] || reduced_[from];
  }
  // Ranks aligned on the right.
  void Align(ValueId operand, ValueId result) {
    const size_t rank = graph_.type(operand).shape.size();
    const size_t offset = graph_.type(result).shape.size() - rank;
    if (graph_.type(operand).scalar) return;
    for (size_t d = 0; d < rank; ++d) Unite(operand, d, result, offset + d);
  }
  void AddReduction(const Node& node, ValueId operand, ValueId result) {
    const std::vector<int64_t>& dims = node.attributes.Ints(AttributeKey::kDims);
    const bool keep = node.attributes.Bool(AttributeKey::kKeepdim);
    size_t to = 0;
    for (size_t d = 0; d < graph_.type(operand).shape.size(); ++d) {
      const bool reduced = std::count(dims.begin(), dims.end(), static_cast<int64_t>(d)) > 0;
      if (reduced) reduced_[Find(operand, d)] = true;
      if (!reduced) Unite(operand, d, result, to);
      if (!reduced || keep) ++to;
    }
  }
  void AddShape(const Node& node, ValueId operand, ValueId result) {
    const size_t rank = graph_.type(operand).shape.size();
    size_t from = 0;
    switch (node.op) {
      case Op::kBroadcastInDim: {
        const std::vector<int64_t>& dims = node.attributes.Ints(AttributeKey::kBroadcastDims);
        for (size_t d = 0; d < rank; ++d) Unite(operand, d, result, static_cast<size_t>(dims[d]));
        break;
      }
      case Op::kBroadcast: {
        const std::vector<bool>& inserted = node.attributes.Bools(AttributeKey::kIsBroadcastDim);
        for (size_t d = 0; d < inserted.size(); ++d)
          if (!inserted[d]) Unite(operand, from++, result, d);
        break;
      }
      case Op::kSqueeze: {
        const std::vector<int64_t>& dims = node.attributes.Ints(AttributeKey::kDims);
        size_t to = 0;
        for (; from < rank; ++from)
          if (std::count(dims.begin(), dims.end(), static_cast<int64_t>(from)) == 0)
            Unite(operand, from, result, to++);
        break;
      }
      default:
        Align(operand, result);
    }
  }

  void AddMap(const Node& node, ValueId result) {
    const Dims& shape = graph_.type(result).shape;
    size_t free = 0;  // dims in front that are the operand's
    if (node.op == Op::kReshape) {
      const Dims& from = graph_.type(node.operands[0]).shape;
      while (free < std::min(from.size(), shape.size()) && from[free] == shape[free])
        Unite(node.operands[0], free, result, free), ++free;
    }
    if (node.op == Op::kTakeAlongAxis) {
      const auto axis = static_cast<size_t>(node.attributes.Ints(AttributeKey::kDims)[0]);
      for (size_t d = 0; d < shape.size(); ++d) {
        if (d == axis) continue;
        for (ValueId operand : node.operands) Unite(operand, d, result, d);
      }
      Keep(node.operands[0], axis);
      return Unite(node.operands[1], axis, result, axis);
    }
    for (ValueId operand : node.operands)
      for (size_t d = free; d < graph_.type(operand).shape.size(); ++d) Keep(operand, d);
    for (size_t d = free; d < shape.size(); ++d) Keep(result, d);
  }
  // Whole: as what is reduced.
  void Keep(ValueId value, size_t dim) { reduced_[Find(value, dim)] = true; }

  const Graph& graph_;
  std::vector<size_t> first_;  // of each value
  std::vector<size_t> parents_;
  std::vector<bool> reduced_;  // of each root
};

// The nodes that `value` depends on, in topological order.
std::vector<NodeId> Cone(const Graph& graph, ValueId value) {
  std::set<ValueId> needed = {value};
  const std::vector<NodeId> order = graph.TopologicalOrder();
  std::vector<NodeId> cone;
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    const Node& node = graph.node(*it);
    const bool used = std::any_of(node.results.begin(), node.results.end(),
                                  [&](ValueId r) { return needed.count(r) > 0; });
    if (!used) continue;
    needed.insert(node.operands.begin(), node.operands.end());
    cone.push_back(*it);
  }
  std::reverse(cone.begin(), cone.end());
  return cone;
}

// `count` of `extent` indices, both ends among them.
Kept Choose(int64_t extent, int64_t count, std::mt19937_64& random) {
  std::set<int64_t> chosen = {0, extent - 1};
  while (static_cast<int64_t>(chosen.size()) < count)
    chosen.insert(static_cast<int64_t>(random() % static_cast<uint64_t>(extent)));
  return {chosen.begin(), chosen.end()};
}

class Slicer {
 public:
  Slicer(const Graph& graph, ValueId output)
      : graph_(graph), output_(output), cone_(Cone(graph, output)), axes_(graph) {
    for (NodeId id : cone_) axes_.Add(graph.node(id));
  }

  // Chooses along which axes of the output to sample, and how many.
  void Sample(int64_t elements, uint64_t seed) {
    const Dims& shape = graph_.type(output_).shape;
    std::set<size_t> free;
    double fixed = 1, variable = 1;
    for (size_t d = 0; d < shape.size(); ++d) {
      const size_t axis = axes_.Find(output_, d);
      if (axes_.Reduced(axis) || shape[d] < 2) {
        fixed *= static_cast<double>(shape[d]);
      } else if (free.insert(axis).second) {
        variable *= static_cast<double>(shape[d]);
      }
    }
    if (free.empty() || fixed * variable <= static_cast<double>(elements)) return;
    const double share = std::pow(static_cast<double>(elements) / (fixed * variable),
                                  1 / static_cast<double>(free.size()));
    std::mt19937_64 random(seed);
    for (size_t d = 0; d < shape.size(); ++d) {
      const size_t axis = axes_.Find(output_, d);
      if (free.erase(axis) == 0) continue;
      const auto count = static_cast<int64_t>(share * static_cast<double>(shape[d]));
      if (count < shape[d]) sampled_[axis] = Choose(shape[d], std::max<int64_t>(count, 2), random);
    }
  }

  absl::StatusOr<Slice> Build() {
    Slice slice;
    std::vector<ValueId> values(graph_.value_count());
    for (ValueId input : graph_.inputs()) {
      FUSIOND_ASSIGN_OR_RETURN(values[input], AddInput(input, slice));
    }
    for (NodeId id : cone_) {
      const Node& node = graph_.node(id);
      if (node.op == Op::kInput) continue;
      if (IsCoordinate(graph_, node.results[0])) {
        FUSIOND_ASSIGN_OR_RETURN(values[node.results[0]], AddCoordinate(node.results[0], slice));
        continue;
      }
      absl::InlinedVector<ValueId, 3> operands;
      for (ValueId operand : node.operands) operands.push_back(values[operand]);
      FUSIOND_ASSIGN_OR_RETURN(const NodeId added,
                               slice.graph.AddNode(node.op, operands, AttributesOf(node)));
      for (size_t r = 0; r < node.results.size(); ++r)
        values[node.results[r]] = slice.graph.node(added).results[r];
    }
    slice.graph.AddOutput(values[output_]);
    slice.output = KeptOf(output_);
    return slice;
  }

 private:
  absl::StatusOr<ValueId> AddInput(ValueId input, Slice& slice) const {
    ir::Type type = graph_.type(input);
    slice.inputs.push_back(KeptOf(input));
    if (type.scalar) return slice.graph.AddInput(type);
    const NodeId producer = graph_.value(input).producer;
    if (std::find(cone_.begin(), cone_.end(), producer) == cone_.end()) {
      // Nothing here depends on it: one element will do.
      for (size_t d = 0; d < type.shape.size(); ++d)
        if (type.shape[d] > 0) slice.inputs.back()[d] = {0};
    }
    return slice.graph.AddInput(
        ir::TensorType(type.dtype, SlicedShape(type.shape, slice.inputs.back())));
  }

  absl::StatusOr<ValueId> AddCoordinate(ValueId value, Slice& slice) const {
    const Node* iota = &graph_.producer(value);
    if (iota->op == Op::kReshape) iota = &graph_.producer(iota->operands[0]);
    const auto constant = [&](size_t slot) -> absl::StatusOr<int64_t> {
      const auto number = graph_.ConstantValue(iota->operands[slot]);
      if (number && std::holds_alternative<int64_t>(*number)) return std::get<int64_t>(*number);
      return absl::UnimplementedError("an iota whose start or step is no whole constant");
    };
    FUSIOND_ASSIGN_OR_RETURN(const int64_t start, constant(0));
    FUSIOND_ASSIGN_OR_RETURN(const int64_t step, constant(1));
    const ir::Type& type = graph_.type(value);
    const std::vector<Kept> kept = KeptOf(value);
    cpu::HostTensor tensor;
    tensor.type = ir::TensorType(type.dtype, SlicedShape(type.shape, kept));
    ForEachKept(type.shape, ir::ContiguousStrides(type.shape), kept, [&](int64_t at) {
      if (ir::IsFloatingPoint(type.dtype)) {
        tensor.floats.push_back(static_cast<double>(start + step * at));
      } else {
        tensor.integers.push_back(start + step * at);
      }
    });
    slice.coordinates.push_back(std::move(tensor));
    return slice.graph.AddInput(slice.coordinates.back().type);
  }

  static Dims SlicedShape(Dims shape, const std::vector<Kept>& kept) {
    for (size_t d = 0; d < shape.size(); ++d)
      if (!kept[d].empty()) shape[d] = static_cast<int64_t>(kept[d].size());
    return shape;
  }

  // The attributes of a node with the extents of its slice.
  ir::Attributes AttributesOf(const Node& node) const {
    ir::Attributes attributes = node.attributes;
    if (attributes.Find(AttributeKey::kShape) == nullptr) return attributes;
    std::vector<int64_t> shape = attributes.Ints(AttributeKey::kShape);
    const std::vector<Kept> kept = KeptOf(node.results[0]);
    for (size_t d = 0; d < shape.size(); ++d) {
      if (!kept[d].empty() && shape[d] != ir::kSymbolic)
        shape[d] = static_cast<int64_t>(kept[d].size());
    }
    attributes.Set(AttributeKey::kShape, shape);
    return attributes;
  }

  std::vector<Kept> KeptOf(ValueId value) const {
    std::vector<Kept> kept;
    for (size_t d = 0; d < graph_.type(value).shape.size(); ++d) {
      const auto it = sampled_.find(axes_.Find(value, d));
      kept.push_back(it == sampled_.end() ? Kept() : it->second);
    }
    return kept;
  }

  const Graph& graph_;
  const ValueId output_;
  const std::vector<NodeId> cone_;
  Axes axes_;
  std::map<size_t, Kept> sampled_;  // by axis
};

}  // namespace

absl::StatusOr<Slice> SliceOutput(const Graph& graph, size_t output, int64_t elements,
                                  uint64_t seed) {
  Slicer slicer(graph, graph.outputs()[output].value);
  slicer.Sample(elements, seed);
  return slicer.Build();
}

}  // namespace fusiond::testing
