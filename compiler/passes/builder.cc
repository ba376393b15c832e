#include "compiler/passes/builder.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/base/status_macros.h"

namespace fusiond::passes {
namespace {

using ir::Attribute;
using ir::NodeId;
using ir::Op;
using ir::ValueId;

uint64_t Bits(double value) {
  uint64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

struct AttributeHasher {
  uint64_t operator()(bool value) const { return value; }
  uint64_t operator()(int64_t value) const { return static_cast<uint64_t>(value); }
  uint64_t operator()(double value) const { return Bits(value); }
  uint64_t operator()(ir::DType value) const { return static_cast<uint64_t>(value); }
  template <typename T>
  uint64_t operator()(const std::vector<T>& values) const {
    uint64_t hash = values.size();
    for (const T value : values) hash = Mix(hash, static_cast<uint64_t>(value));
    return hash;
  }
};

// An input, or views of one: what the caller gets back may be the input's own memory.
bool IsInputView(const ir::Graph& graph, ValueId value) {
  while (ir::Info(graph.producer(value).op).op_class == ir::OpClass::kShape) {
    value = graph.producer(value).operands[0];
  }
  return graph.producer(value).op == Op::kInput;
}

// Without what equals a default, as a graph stores them.
ir::Attributes Normalised(Op op, ir::Attributes attributes) {
  for (const ir::AttributeSpec& spec : ir::Info(op).attributes) {
    const Attribute* value = attributes.Find(spec.key);
    if (value != nullptr && spec.default_value && *value == *spec.default_value) {
      attributes.Erase(spec.key);
    }
  }
  if (op != Op::kConstant) return attributes;
  const Attribute& value = *attributes.Find(ir::AttributeKey::kValue);
  const ir::DType implied = std::holds_alternative<bool>(value)      ? ir::DType::kBool
                            : std::holds_alternative<int64_t>(value) ? ir::DType::kInt
                                                                     : ir::DType::kDouble;
  if (attributes.Dtype(ir::AttributeKey::kDtype) == implied) {
    attributes.Erase(ir::AttributeKey::kDtype);
  }
  return attributes;
}

}  // namespace

// The finaliser of SplitMix64 over a running sum.
uint64_t Mix(uint64_t hash, uint64_t value) {
  uint64_t x = hash * 0x9e3779b97f4a7c15u + value + 0x7f4a7c159e3779b9u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

uint64_t HashAttributes(const ir::Attributes& attributes) {
  uint64_t hash = 1;
  for (const auto& [key, value] : attributes) {
    hash = Mix(hash, static_cast<uint64_t>(key) << 8 | value.index());
    hash = Mix(hash, std::visit(AttributeHasher{}, value));
  }
  return hash;
}

bool SameAttributes(const ir::Attributes& a, const ir::Attributes& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    if (x.first != y.first) return false;
    const double* dx = std::get_if<double>(&x.second);
    const double* dy = std::get_if<double>(&y.second);
    return dx != nullptr && dy != nullptr ? Bits(*dx) == Bits(*dy) : x.second == y.second;
  });
}

uint8_t AxesOf(const ir::Type& type) {
  uint8_t axes = 0;
  const int rank = type.rank();
  for (int d = 0; d < rank; ++d) {
    if (type.shape[d] != 1) axes |= static_cast<uint8_t>(1u << (rank - 1 - d));
  }
  return axes;
}

bool SameGraph(const ir::Graph& a, const ir::Graph& b) {
  if (a.inputs() != b.inputs() || a.outputs() != b.outputs()) return false;
  return std::equal(a.nodes().begin(), a.nodes().end(), b.nodes().begin(), b.nodes().end(),
                    [](const ir::Node& x, const ir::Node& y) {
                      return x.op == y.op && x.operands == y.operands && x.results == y.results &&
                             SameAttributes(x.attributes, y.attributes);
                    });
}

Builder::Builder(const ir::Graph& like, Sharing sharing) : sharing_(sharing) {
  for (const ValueId input : like.inputs()) {
    const absl::StatusOr<ValueId> id =
        graph_.AddInput(like.type(input), like.producer(input).attributes);
    FUSIOND_CHECK(id.ok());
    if (sharing_ == Sharing::kEqualNodes) SetKeys(graph_.value(*id).producer, *id);
  }
}

void Builder::SetKeys(NodeId id, uint64_t hash) {
  const ir::Node& node = graph_.node(id);
  Key key{.constant = node.op == Op::kConstant, .hash = hash};
  for (const ValueId operand : node.operands) {
    key.height = std::max(key.height, keys_[operand].height + 1);
  }
  for (const ValueId result : node.results) {
    key.minus_axes = static_cast<int8_t>(-__builtin_popcount(AxesOf(graph_.type(result))));
    keys_.push_back(key);
    key.hash = Mix(key.hash, 1);  // of the next result
  }
}

ValueId Builder::Constant(ir::Number value, ir::DType dtype) {
  ir::Attributes attributes{{ir::AttributeKey::kDtype, dtype}};
  std::visit([&](auto v) { attributes.Set(ir::AttributeKey::kValue, v); },
             ir::InRange(value, dtype));
  const absl::StatusOr<ValueId> id = Add(Op::kConstant, {}, attributes);
  FUSIOND_CHECK(id.ok());
  return *id;
}

absl::StatusOr<NodeId> Builder::AddNode(Op op, absl::Span<const ValueId> given,
                                        const ir::Attributes& given_attributes) {
  if (sharing_ == Sharing::kNone) return graph_.AddNode(op, given, given_attributes);
  const ir::Attributes attributes = Normalised(op, given_attributes);
  absl::InlinedVector<ValueId, 4> operands(given.begin(), given.end());
  MirrorComparison(op, operands);
  if (IsCommutative(op) && keys_[operands[1]] < keys_[operands[0]]) {
    std::swap(operands[0], operands[1]);
  }
  uint64_t hash = Mix(static_cast<uint64_t>(op) + 1, HashAttributes(attributes));
  for (const ValueId operand : operands) hash = Mix(hash, keys_[operand].hash);
  for (const NodeId candidate : nodes_[hash]) {
    const ir::Node& node = graph_.node(candidate);
    if (node.op == op && absl::MakeSpan(node.operands) == absl::MakeSpan(operands) &&
        SameAttributes(node.attributes, attributes)) {
      return candidate;
    }
  }
  FUSIOND_ASSIGN_OR_RETURN(const NodeId made, graph_.AddNode(op, operands, attributes));
  nodes_[hash].push_back(made);
  SetKeys(made, hash);
  return made;
}

absl::StatusOr<ValueId> Builder::Add(Op op, absl::Span<const ValueId> operands,
                                     const ir::Attributes& attributes) {
  FUSIOND_ASSIGN_OR_RETURN(const NodeId node, AddNode(op, operands, attributes));
  return graph_.node(node).results[0];
}

ir::Graph Builder::Finish(const ir::Graph& like, absl::Span<const ValueId> renamed) && {
  for (const ir::Output& output : like.outputs()) {
    ValueId value = renamed[output.value];
    const bool same_type = like.type(output.value) == graph_.type(value);
    if (!same_type) {
      // Repeated in memory where the output was not: an expand that lost what stood behind it.
      const absl::StatusOr<ValueId> copy = Add(Op::kSet, {value});
      FUSIOND_CHECK(copy.ok());
      value = *copy;
    } else if (IsInputView(graph_, value) && !IsInputView(like, output.value)) {
      value = Copied(value);
    }
    graph_.AddOutput(value, output.alias_input);
  }
  graph_.Compact();
  return std::move(graph_);
}

ValueId Builder::Copied(ValueId view) {
  absl::InlinedVector<NodeId, 4> views;
  while (graph_.producer(view).op != Op::kInput) {
    views.push_back(graph_.value(view).producer);
    view = graph_.producer(view).operands[0];
  }
  absl::StatusOr<ValueId> value = Add(Op::kSet, {view});
  while (value.ok() && !views.empty()) {
    const ir::Node node = graph_.node(views.back());
    views.pop_back();
    value = Add(node.op, {*value}, node.attributes);
  }
  FUSIOND_CHECK(value.ok());
  return *value;
}

}  // namespace fusiond::passes
