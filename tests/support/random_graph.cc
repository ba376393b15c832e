#include "tests/support/random_graph.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <random>
#include <utility>

#include "compiler/ir/random.h"
#include "compiler/ir/specialise.h"
#include "compiler/ir/verify.h"
#include "runtime/base/check.h"

namespace fusiond::testing {
namespace {

using ir::AttributeKey;
using ir::Attributes;
using ir::Dims;
using ir::DType;
using ir::Graph;
using ir::Op;
using ir::Type;
using ir::ValueId;

using Ints = std::vector<int64_t>;

// Proposes nodes at random and keeps those that type inference and Specialise accept.
class Generator {
 public:
  Generator(uint64_t seed, const RandomGraphOptions& options)
      : options_(options), random_(seed), ops_(options.ops) {
    for (const ir::OpInfo& info : ir::OpTable()) {
      if (options.ops.empty() && info.op != Op::kInput) ops_.push_back(info.op);
    }
    space_.resize(Below(options.max_rank + 1));
    for (int64_t& extent : space_) extent = Between(1, options.max_extent);
    if (options.zero_size && !space_.empty() && OneIn(10)) space_[Below(space_.size())] = 0;
  }

  RandomGraph Run() {
    const int inputs = static_cast<int>(Between(1, options_.max_inputs));
    for (int i = 0; i < inputs; ++i) AddInput(i == 0);
    const int64_t nodes = Between(options_.min_nodes, options_.max_nodes);
    for (int64_t made = 0, tries = 0; made < nodes && tries < 100 * nodes; ++tries) {
      if (TryNode()) ++made;
    }
    AddOutputs();
    return std::move(result_);
  }

 private:
  uint64_t Below(uint64_t bound) { return random_() % bound; }
  int64_t Between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(Below(static_cast<uint64_t>(high - low + 1)));
  }
  bool OneIn(uint64_t n) { return Below(n) == 0; }
  DType AnyDType() { return options_.dtypes[Below(options_.dtypes.size())]; }

  // An input's extents are the last ones of the iteration space, or 1.
  void AddInput(bool full) {
    Graph& graph = result_.graph;
    if (!full && options_.scalar_inputs && OneIn(6)) {
      FUSIOND_CHECK(graph.AddInput(ir::ScalarType(AnyDType())).ok());
      result_.extents.emplace_back();
      return;
    }
    const size_t rank = full || OneIn(2) ? space_.size() : Below(space_.size() + 1);
    Dims extents(space_.end() - static_cast<int64_t>(rank), space_.end());
    for (int64_t& extent : extents) {
      if (!full && OneIn(4)) extent = 1;
    }
    Dims declared = extents;
    for (int64_t& extent : declared) {
      // A symbolic dim of extent 1 would not broadcast.
      if (options_.symbolic && extent != 1 && OneIn(2)) extent = ir::kSymbolic;
    }
    Attributes attributes;
    if (rank == 0 && OneIn(4)) attributes.Set(AttributeKey::kHost, true);
    if (options_.strided_inputs && rank > 0 && OneIn(3)) Stride(declared, attributes);
    FUSIOND_CHECK(graph.AddInput(ir::TensorType(AnyDType(), declared), std::move(attributes)).ok());
    result_.extents.push_back(extents);
  }

  void Stride(const Dims& declared, Attributes& attributes) {
    const auto rank = static_cast<int64_t>(declared.size());
    Ints stride_order(declared.size());
    std::iota(stride_order.rbegin(), stride_order.rend(), 0);
    if (OneIn(2)) {
      for (size_t i = stride_order.size(); i > 1; --i) {
        std::swap(stride_order[i - 1], stride_order[Below(i)]);
      }
    }
    Ints contiguity(declared.size());
    for (int64_t d = 0; d < rank; ++d) {
      int64_t& entry = contiguity[static_cast<size_t>(rank - 1 - stride_order[d])];
      entry = declared[d] == 1 || OneIn(6) ? ir::kBroadcastDim
              : OneIn(4)                   ? ir::kNotContiguous
                                           : ir::kContiguous;
    }
    attributes.Set(AttributeKey::kStrideOrder, std::move(stride_order));
    attributes.Set(AttributeKey::kContiguity, std::move(contiguity));
  }

  bool TryNode() {
    RandomGraph before = result_;
    const Op op = ops_[Below(ops_.size())];
    if (op == Op::kConstant) {
      AddConstant();
      return true;
    }
    Attributes attributes;
    absl::InlinedVector<ValueId, 4> operands;
    Propose(op, operands, attributes);
    if (result_.graph.AddNode(op, operands, std::move(attributes)).ok() &&
        ir::Specialise(result_.graph, result_.extents).ok()) {
      return true;
    }
    result_ = std::move(before);
    return false;
  }

  ValueId AddConstant() {
    const DType dtype = AnyDType();
    if (dtype == DType::kBool) return result_.graph.AddConstant(OneIn(2), dtype);
    if (ir::IsInteger(dtype)) return result_.graph.AddConstant(Between(-4, 4), dtype);
    constexpr double kValues[] = {0.0, 0.5, 1.0, 2.0, -1.0, 3.0, 1e-5, -0.125};
    return result_.graph.AddConstant(kValues[Below(std::size(kValues))], dtype);
  }

  // Later values are likelier, so that graphs grow deep.
  ValueId AnyValue() {
    const size_t count = result_.graph.value_count();
    return static_cast<ValueId>(std::max(Below(count), Below(count)));
  }

  void Propose(Op op, absl::InlinedVector<ValueId, 4>& operands, Attributes& attributes) {
    const ir::OpInfo& info = ir::Info(op);
    if (op == Op::kFull) {
      operands.push_back(AddConstant());
      attributes.Set(AttributeKey::kDtype, AnyDType());
      ProposeShape(Dims(space_), operands, attributes);
      return;
    }
    if (op == Op::kIota) {
      operands = {AddConstant(), AddConstant()};
      attributes.Set(AttributeKey::kDtype, AnyDType());
      ProposeShape({space_.empty() ? 3 : space_.back()}, operands, attributes);
      return;
    }
    if (ir::IsRandom(op)) {
      ProposeDraw(op, operands, attributes);
      return;
    }
    for (int i = 0; i < info.min_operands; ++i) {
      operands.push_back(i > 0 && OneIn(4) ? AddConstant() : AnyValue());
    }
    const Type type = result_.graph.type(operands[0]);
    switch (info.op_class) {
      case ir::OpClass::kReduction:
        ProposeReduction(op, type, attributes);
        break;
      case ir::OpClass::kMetadata:
        attributes.Set(AttributeKey::kDims, Ints{Between(0, std::max(0, type.rank() - 1))});
        break;
      case ir::OpClass::kShape:
        ProposeShapeOp(op, type, operands, attributes);
        break;
      case ir::OpClass::kMap:
        ProposeMap(op, type, operands, attributes);
        break;
      default:
        if (op == Op::kCast) attributes.Set(AttributeKey::kDtype, AnyDType());
    }
  }

  void ProposeDraw(Op op, absl::InlinedVector<ValueId, 4>& operands, Attributes& attributes) {
    const bool like = op == Op::kRandLike || op == Op::kRandnLike;
    operands = {AnyValue()};
    if (!like) operands = {AddConstant(), AddConstant()};
    for (int i = 0; i < 2; ++i)
      operands.push_back(result_.graph.AddConstant(Between(-100, 1 << 20), DType::kInt));
    if (like) return;
    attributes.Set(AttributeKey::kDtype, AnyDType());
    ProposeShape(Dims(space_), operands, attributes);
  }

  void ProposeReduction(Op op, const Type& type, Attributes& attributes) {
    Ints dims;
    for (int64_t d = 0; d < type.rank(); ++d) {
      if (OneIn(2)) dims.push_back(d);
    }
    attributes.Set(AttributeKey::kDims, std::move(dims));
    if (op == Op::kWelford) return;
    attributes.Set(AttributeKey::kKeepdim, OneIn(2));
    if (op == Op::kVar || op == Op::kVarMean) {
      attributes.Set(AttributeKey::kCorrection, Between(0, 1));
    }
    if ((op == Op::kSum || op == Op::kProd) && OneIn(4)) {
      attributes.Set(AttributeKey::kDtype, AnyDType());
    }
  }

  void ProposeShapeOp(Op op, const Type& type, absl::InlinedVector<ValueId, 4>& operands,
                      Attributes& attributes) {
    if (op == Op::kSqueeze) {
      Ints dims;
      for (int64_t d = 0; d < type.rank(); ++d) {
        if (type.shape[d] == 1 && !OneIn(4)) dims.push_back(d);
      }
      attributes.Set(AttributeKey::kDims, std::move(dims));
      return;
    }
    if (op == Op::kExpand) {
      Ints shape(type.shape.begin(), type.shape.end());
      for (int64_t& extent : shape) {
        if (OneIn(3)) extent = ir::kSymbolic;  // keep
        if (extent == 1 && OneIn(2)) extent = Between(0, options_.max_extent);
      }
      attributes.Set(AttributeKey::kShape, std::move(shape));
      return;
    }
    // Broadcasts: the operand's dims with new ones between them.
    std::vector<bool> is_new;
    Dims shape;
    Ints dims;
    for (int d = 0; d <= type.rank(); ++d) {
      while (OneIn(4) && shape.size() < 8) {
        is_new.push_back(true);
        shape.push_back(space_.empty() ? 2 : space_[Below(space_.size())]);
      }
      if (d == type.rank()) break;
      is_new.push_back(false);
      dims.push_back(static_cast<int64_t>(shape.size()));
      shape.push_back(type.shape[d] == 1 && OneIn(2) ? options_.max_extent : type.shape[d]);
    }
    if (op == Op::kBroadcast) {
      attributes.Set(AttributeKey::kIsBroadcastDim, std::move(is_new));
      return;
    }
    attributes.Set(AttributeKey::kBroadcastDims, std::move(dims));
    ProposeShape(shape, operands, attributes);
  }

  void ProposeMap(Op op, const Type& type, absl::InlinedVector<ValueId, 4>& operands,
                  Attributes& attributes) {
    switch (op) {
      case Op::kPermute: {
        Ints dims(type.shape.size());
        std::iota(dims.begin(), dims.end(), 0);
        for (size_t i = dims.size(); i > 1; --i) std::swap(dims[i - 1], dims[Below(i)]);
        attributes.Set(AttributeKey::kDims, std::move(dims));
        return;
      }
      case Op::kReshape:
        return ProposeShape(Regrouped(type.shape), operands, attributes);
      case Op::kTriu:
        attributes.Set(AttributeKey::kDiagonal, Between(-3, 3));
        return;
      case Op::kSlice:
        return ProposeSlice(type, attributes);
      case Op::kPad: {
        operands[1] = AddConstant();
        Ints widths(2 * Below(type.shape.size() + 1));
        for (int64_t& width : widths) width = Between(-2, 3);
        attributes.Set(AttributeKey::kPadWidths, std::move(widths));
        return;
      }
      default:
        break;
    }
    const int64_t dim = Between(0, std::max(0, type.rank() - 1));
    attributes.Set(AttributeKey::kDims, Ints{dim});
    if (op == Op::kCat) {
      while (OneIn(2)) operands.push_back(OneIn(2) ? operands[0] : AnyValue());
    } else if (!type.scalar && type.rank() > 0 && !OneIn(8)) {
      Dims shape = type.shape;
      shape[dim] = Between(1, options_.max_extent);
      operands[1] = Indices(op == Op::kIndexSelect ? Dims{shape[dim]} : shape, type.shape[dim]);
    }
  }

  void ProposeSlice(const Type& type, Attributes& attributes) {
    Ints starts, ends;
    for (const int64_t extent : type.shape) {
      const bool whole = OneIn(2);
      const int64_t known = extent == ir::kSymbolic ? options_.max_extent : extent;
      starts.push_back(whole ? 0 : Between(0, known / 2));
      ends.push_back(whole ? std::numeric_limits<int64_t>::max() : Between(starts.back(), known));
    }
    attributes.Set(AttributeKey::kStartIndices, std::move(starts));
    attributes.Set(AttributeKey::kEndIndices, std::move(ends));
  }

  // Neighbours made one and taken apart.
  Dims Regrouped(Dims shape) {
    for (int i = 0; i < 3 && !shape.empty(); ++i) {
      const size_t d = Below(shape.size());
      if (d + 1 < shape.size() && OneIn(2)) {
        if (shape[d] < 0 || shape[d + 1] < 0) continue;
        shape[d] *= shape[d + 1];
        shape.erase(shape.begin() + d + 1);
      } else if (shape.size() < 8) {
        const int64_t factor = Between(1, 4);
        if (shape[d] <= 0 || shape[d] % factor != 0) continue;
        shape[d] /= factor;
        shape.insert(shape.begin() + d + Below(2), factor);
      }
    }
    return shape;
  }

  // A tensor of indices around 0 … extent-1.
  ValueId Indices(const Dims& shape, int64_t extent) {
    const int64_t last = shape.empty() ? 1 : std::max<int64_t>(1, shape.back());
    const int64_t around = extent > 0 ? extent : options_.max_extent;
    const ValueId start = result_.graph.AddConstant(Between(-1, around), DType::kInt);
    const ValueId step = result_.graph.AddConstant(Between(-2, 2), DType::kInt);
    Attributes along = {{AttributeKey::kShape, Ints{last}}};
    if (OneIn(2)) along.Set(AttributeKey::kDtype, DType::kInt32);
    const ValueId iota = *result_.graph.Add(Op::kIota, {start, step}, std::move(along));
    Ints whole(shape.begin(), shape.end());
    if (std::count(whole.begin(), whole.end(), ir::kSymbolic) > 0) return iota;
    return *result_.graph.Add(
        Op::kBroadcastInDim, {iota},
        {{AttributeKey::kBroadcastDims, Ints{static_cast<int64_t>(shape.size()) - 1}},
         {AttributeKey::kShape, whole}});
  }

  // Attribute shape; some symbolic extents with the size ops or constants that give them.
  void ProposeShape(const Dims& shape, absl::InlinedVector<ValueId, 4>& operands,
                    Attributes& attributes) {
    Ints written(shape.begin(), shape.end());
    for (size_t d = 0; d < written.size(); ++d) {
      if (written[d] != ir::kSymbolic && !(options_.symbolic && OneIn(3))) continue;
      operands.push_back(written[d] == ir::kSymbolic
                             ? SizeOf(operands[0])
                             : result_.graph.AddConstant(written[d], DType::kInt));
      written[d] = ir::kSymbolic;
    }
    attributes.Set(AttributeKey::kShape, std::move(written));
  }

  // The size of some symbolic dim; Specialise tells whether it was the right one.
  ValueId SizeOf(ValueId value) {
    const Dims shape = result_.graph.type(value).shape;
    std::vector<int64_t> dims;
    for (size_t d = 0; d < shape.size(); ++d) {
      if (shape[d] == ir::kSymbolic) dims.push_back(static_cast<int64_t>(d));
    }
    if (dims.empty()) return value;
    return *result_.graph.Add(Op::kSize, {value},
                              {{AttributeKey::kDims, Ints{dims[Below(dims.size())]}}});
  }

  // The tensors that nothing uses, and now and then one that is used; at most six.
  void AddOutputs() {
    Graph& graph = result_.graph;
    const std::vector<uint32_t> uses = graph.UseCounts();
    for (ValueId id = 0; id < graph.value_count(); ++id) {
      if (graph.type(id).scalar || graph.outputs().size() == 6) continue;
      if (uses[id] == 0 || OneIn(8)) graph.AddOutput(id, Alias(id));
    }
    if (graph.outputs().empty()) graph.AddOutput(graph.inputs()[0]);
  }

  std::optional<uint32_t> Alias(ValueId id) {
    const Graph& graph = result_.graph;
    if (!options_.aliases || !OneIn(3)) return std::nullopt;
    for (uint32_t i = 0; i < graph.inputs().size(); ++i) {
      const Type& input = graph.type(graph.inputs()[i]);
      const bool taken = std::any_of(graph.outputs().begin(), graph.outputs().end(),
                                     [i](const auto& output) { return output.alias_input == i; });
      const bool host = graph.producer(graph.inputs()[i]).attributes.Bool(AttributeKey::kHost);
      const bool expanded = std::count(input.strides.begin(), input.strides.end(), 0) > 0;
      if (!taken && !host && !expanded && !input.scalar && input.dtype == graph.type(id).dtype &&
          input.shape == graph.type(id).shape && CanBeWritten(id, i)) {
        return i;
      }
    }
    return std::nullopt;
  }

  // Dims that are both symbolic may still have different extents.
  bool CanBeWritten(ValueId id, uint32_t input) const {
    Graph graph = result_.graph;
    graph.AddOutput(id, input);
    const absl::StatusOr<Graph> special = ir::Specialise(graph, result_.extents);
    return special.ok() && ir::Verify(*special, ir::Stage::kSpecialised).ok();
  }

  const RandomGraphOptions& options_;
  std::mt19937_64 random_;
  std::vector<Op> ops_;
  Dims space_;  // the extents that most values have
  RandomGraph result_;
};

}  // namespace

RandomGraph MakeRandomGraph(uint64_t seed, const RandomGraphOptions& options) {
  return Generator(seed, options).Run();
}

}  // namespace fusiond::testing
