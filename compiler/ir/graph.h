// Graph: SSA over tensors and scalars, the form in which a fusion travels from a client to the code
// generator.
//
// A node applies an op to values and defines one value a result. Values and nodes are named by
// dense ids that stay valid until Compact(). Add() appends, so that operands always have smaller
// ids than results, except after ReplaceUses(), which may make an old node use a new value:
// TopologicalOrder() and Compact() cope with that.
//
// Pointwise ops broadcast as NumPy does: ranks are aligned on the right, and a declared extent of 1
// meets any other. A symbolic extent (-1) meets any extent but is never a broadcast dim. Operands
// of different dtypes are converted to the op's compute type (Promotion in op_table.h).
//
// Thread-safety: thread-compatible. Ownership: a value type; copying copies the whole graph.
// Cost: Add is O(operands), ReplaceUses O(uses + outputs), TopologicalOrder O(n log n), the rest is
// linear in nodes.
#ifndef FUSIOND_COMPILER_IR_GRAPH_H_
#define FUSIOND_COMPILER_IR_GRAPH_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/ir/attributes.h"
#include "compiler/ir/op_table.h"
#include "compiler/ir/types.h"

namespace fusiond::ir {

using ValueId = uint32_t;
using NodeId = uint32_t;

struct Value {
  Type type;
  NodeId producer = 0;
  uint32_t result = 0;  // which result of the producer
};

struct Node {
  Op op = Op::kInput;
  absl::InlinedVector<ValueId, 3> operands;
  Attributes attributes;
  absl::InlinedVector<ValueId, 1> results;
};

struct Output {
  ValueId value = 0;
  // The output is written into this input's buffer (index into inputs()); it is then not returned
  // to the caller.
  std::optional<uint32_t> alias_input;
  bool operator==(const Output&) const = default;
};

// What messages call values: their names in a file, by ValueId and without '%'. Missing: numbers.
using ValueNames = std::vector<std::string>;
// "%b", or "%2".
std::string NameOf(ValueId id, const ValueNames* names);

class Graph {
 public:
  // Appends an input of `type`'s dtype and shape; attributes may hold kContiguity, kStrideOrder,
  // kHost (defaults: contiguous, row-major, device memory), from which the strides follow. What
  // equals a default is not stored. INVALID_ARGUMENT names the rule that `type` or the attributes
  // break.
  absl::StatusOr<ValueId> AddInput(const Type& type, Attributes attributes = {});
  // A value beyond dtype's range becomes what a cast makes of it: inf, or the low bits. Requires:
  // value's kind is dtype's.
  ValueId AddConstant(Number value, DType dtype);
  // Appends a node; result types are inferred. INVALID_ARGUMENT names op, rule, limit and actual
  // value; UNIMPLEMENTED for a dtype that the op does not take. Single-result form returns the
  // first result.
  absl::StatusOr<NodeId> AddNode(Op op, absl::Span<const ValueId> operands,
                                 Attributes attributes = {});
  absl::StatusOr<ValueId> Add(Op op, absl::Span<const ValueId> operands,
                              Attributes attributes = {});
  void AddOutput(ValueId value, std::optional<uint32_t> alias_input = std::nullopt);

  absl::Span<const Node> nodes() const { return nodes_; }
  absl::Span<const ValueId> inputs() const { return inputs_; }
  absl::Span<const Output> outputs() const { return outputs_; }
  size_t value_count() const { return values_.size(); }
  const Node& node(NodeId id) const { return nodes_[id]; }
  const Value& value(ValueId id) const { return values_[id]; }
  const Type& type(ValueId id) const { return values_[id].type; }
  const Node& producer(ValueId id) const { return nodes_[values_[id].producer]; }
  // The value of a constant node, if `id` is one.
  std::optional<Number> ConstantValue(ValueId id) const;

  // The nodes that use a value, once an operand slot, in no order that means anything.
  absl::Span<const NodeId> users(ValueId id) const { return users_[id]; }
  // Uses of each value by nodes (operand slots, duplicates counted) and outputs; index = ValueId.
  std::vector<uint32_t> UseCounts() const;
  // Every operand and output that is `from` becomes `to`. Requires: equal types (dtype, shape,
  // scalar).
  void ReplaceUses(ValueId from, ValueId to);
  void SetOutput(size_t index, ValueId value) { outputs_[index].value = value; }
  // Nodes in an order where producers precede users; ties by id. FUSIOND_CHECK if a cycle exists
  // (passes may not make one).
  std::vector<NodeId> TopologicalOrder() const;
  // As TopologicalOrder, without the nodes that stand on a cycle or behind one.
  std::vector<NodeId> AcyclicOrder() const;
  // Drops nodes that no output needs (inputs stay) and renumbers nodes and values densely in
  // topological order: inputs first in their order, the rest in depth-first post-order from the
  // outputs. Deterministic.
  void Compact();

 private:
  ValueId NewValue(Type type, NodeId producer, uint32_t result);
  // Inputs, then what the outputs need, in depth-first post-order.
  std::vector<NodeId> LiveOrder() const;

  std::vector<Node> nodes_;
  std::vector<Value> values_;
  std::vector<absl::InlinedVector<NodeId, 2>> users_;  // of each value, once an operand slot
  std::vector<ValueId> inputs_;
  std::vector<Output> outputs_;
};

// `value` if a constant of `dtype` may have it, else what a cast makes of it: inf, or the low bits.
Number InRange(Number value, DType dtype);

// Result types of `op` on operands of the given types (one a result). The error names op, rule and
// actual values. Pure; this is the only place that knows shape and dtype rules, shared by Graph,
// parser, importer and verifier.
absl::StatusOr<absl::InlinedVector<Type, 1>> InferTypes(Op op,
                                                        absl::Span<const Type* const> operands,
                                                        const Attributes& attributes);

// The dtype to which a pointwise op converts its operands (where: all but the condition) before it
// computes. Logical ops compute in bool, cast and set in the operand's own type.
absl::StatusOr<DType> PointwiseComputeType(Op op, absl::Span<const Type* const> operands,
                                           const Attributes& attributes);

}  // namespace fusiond::ir

#endif  // FUSIOND_COMPILER_IR_GRAPH_H_
