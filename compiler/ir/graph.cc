#include "compiler/ir/graph.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/ir/infer_internal.h"
#include "runtime/base/check.h"
#include "runtime/base/status_macros.h"

namespace fusiond::ir {

std::string NameOf(ValueId id, const ValueNames* names) {
  if (names != nullptr && id < names->size()) return absl::StrCat("%", (*names)[id]);
  return absl::StrCat("%", id);
}

ValueId Graph::NewValue(Type type, NodeId producer, uint32_t result) {
  values_.push_back({std::move(type), producer, result});
  users_.emplace_back();
  const auto id = static_cast<ValueId>(values_.size() - 1);
  nodes_[producer].results.push_back(id);
  return id;
}

absl::StatusOr<ValueId> Graph::AddInput(const Type& type, Attributes attributes) {
  FUSIOND_RETURN_IF_ERROR(CheckForm(Op::kInput, 0, attributes));
  FUSIOND_ASSIGN_OR_RETURN(Type stored, InputType(type, attributes));
  DropDefaults(Op::kInput, attributes);
  DropInputDefaults(stored, attributes);
  nodes_.push_back(
      {.op = Op::kInput, .operands = {}, .attributes = std::move(attributes), .results = {}});
  const ValueId id = NewValue(std::move(stored), static_cast<NodeId>(nodes_.size() - 1), 0);
  inputs_.push_back(id);
  return id;
}

ValueId Graph::AddConstant(Number value, DType dtype) {
  Attributes attributes{{AttributeKey::kDtype, dtype}};
  std::visit([&](auto v) { attributes.Set(AttributeKey::kValue, v); }, InRange(value, dtype));
  absl::StatusOr<ValueId> id = Add(Op::kConstant, {}, std::move(attributes));
  FUSIOND_CHECK(id.ok());
  return *id;
}

absl::StatusOr<NodeId> Graph::AddNode(Op op, absl::Span<const ValueId> operands,
                                      Attributes attributes) {
  absl::InlinedVector<const Type*, 4> types;
  for (const ValueId operand : operands) {
    FUSIOND_CHECK(operand < values_.size());
    types.push_back(&values_[operand].type);
  }
  FUSIOND_ASSIGN_OR_RETURN(auto results, InferTypes(op, types, attributes));
  DropDefaults(op, attributes);
  const auto node = static_cast<NodeId>(nodes_.size());
  nodes_.push_back({.op = op,
                    .operands = {operands.begin(), operands.end()},
                    .attributes = std::move(attributes),
                    .results = {}});
  for (const ValueId operand : operands) users_[operand].push_back(node);
  for (uint32_t i = 0; i < results.size(); ++i) NewValue(std::move(results[i]), node, i);
  return node;
}

absl::StatusOr<ValueId> Graph::Add(Op op, absl::Span<const ValueId> operands,
                                   Attributes attributes) {
  FUSIOND_ASSIGN_OR_RETURN(const NodeId node, AddNode(op, operands, std::move(attributes)));
  return nodes_[node].results[0];
}

void Graph::AddOutput(ValueId value, std::optional<uint32_t> alias_input) {
  FUSIOND_CHECK(value < values_.size());
  outputs_.push_back({value, alias_input});
}

std::optional<Number> Graph::ConstantValue(ValueId id) const {
  const Node& node = producer(id);
  if (node.op != Op::kConstant) return std::nullopt;
  const Attribute& value = *node.attributes.Find(AttributeKey::kValue);
  if (const bool* b = std::get_if<bool>(&value)) return Number(*b);
  if (const int64_t* i = std::get_if<int64_t>(&value)) return Number(*i);
  return Number(std::get<double>(value));
}

std::vector<uint32_t> Graph::UseCounts() const {
  std::vector<uint32_t> counts(values_.size());
  for (size_t i = 0; i < users_.size(); ++i) counts[i] = static_cast<uint32_t>(users_[i].size());
  for (const Output& output : outputs_) ++counts[output.value];
  return counts;
}

void Graph::ReplaceUses(ValueId from, ValueId to) {
  if (from == to) return;
  const Type& old_type = type(from);
  const Type& new_type = type(to);
  FUSIOND_CHECK(old_type.dtype == new_type.dtype && old_type.scalar == new_type.scalar &&
                old_type.shape == new_type.shape);
  for (const NodeId user : users_[from]) {
    auto& operands = nodes_[user].operands;
    // A user stands in the list once a slot; each visit moves one slot.
    *std::find(operands.begin(), operands.end(), from) = to;
    users_[to].push_back(user);
  }
  users_[from].clear();
  for (Output& output : outputs_) {
    if (output.value == from) output.value = to;
  }
}

std::vector<NodeId> Graph::TopologicalOrder() const {
  std::vector<NodeId> order = AcyclicOrder();
  FUSIOND_CHECK(order.size() == nodes_.size());
  return order;
}

std::vector<NodeId> Graph::AcyclicOrder() const {
  std::vector<uint32_t> waiting(nodes_.size());  // operands whose producer is not yet placed
  for (NodeId id = 0; id < nodes_.size(); ++id) {
    waiting[id] = static_cast<uint32_t>(nodes_[id].operands.size());
  }
  std::priority_queue<NodeId, std::vector<NodeId>, std::greater<>> ready;
  for (NodeId id = 0; id < nodes_.size(); ++id) {
    if (waiting[id] == 0) ready.push(id);
  }
  std::vector<NodeId> order;
  order.reserve(nodes_.size());
  while (!ready.empty()) {
    const NodeId id = ready.top();
    ready.pop();
    order.push_back(id);
    for (const ValueId result : nodes_[id].results) {
      for (const NodeId user : users_[result]) {
        if (--waiting[user] == 0) ready.push(user);
      }
    }
  }
  return order;
}

std::vector<NodeId> Graph::LiveOrder() const {
  enum : uint8_t { kNew, kOpen, kDone };
  std::vector<uint8_t> state(nodes_.size(), kNew);
  std::vector<NodeId> order;
  for (const ValueId input : inputs_) {
    order.push_back(values_[input].producer);
    state[values_[input].producer] = kDone;
  }
  std::vector<std::pair<NodeId, size_t>> stack;  // node, next operand to visit
  for (const Output& output : outputs_) {
    stack.emplace_back(values_[output.value].producer, 0);
    while (!stack.empty()) {
      auto& [id, next] = stack.back();
      if (next == 0 && state[id] == kDone) {
        stack.pop_back();
        continue;
      }
      state[id] = kOpen;
      if (next < nodes_[id].operands.size()) {
        const NodeId producer = values_[nodes_[id].operands[next++]].producer;
        FUSIOND_CHECK(state[producer] != kOpen);  // a cycle
        if (state[producer] == kNew) stack.emplace_back(producer, 0);
        continue;
      }
      state[id] = kDone;
      order.push_back(id);
      stack.pop_back();
    }
  }
  return order;
}

void Graph::Compact() {
  std::vector<Node> nodes;
  std::vector<Value> values;
  std::vector<ValueId> renamed(values_.size());
  for (const NodeId old_id : LiveOrder()) {
    Node& node = nodes_[old_id];
    for (ValueId& operand : node.operands) operand = renamed[operand];
    for (ValueId& result : node.results) {
      renamed[result] = static_cast<ValueId>(values.size());
      values.push_back(std::move(values_[result]));
      values.back().producer = static_cast<NodeId>(nodes.size());
      result = renamed[result];
    }
    nodes.push_back(std::move(node));
  }
  for (ValueId& input : inputs_) input = renamed[input];
  for (Output& output : outputs_) output.value = renamed[output.value];
  nodes_ = std::move(nodes);
  values_ = std::move(values);
  users_.assign(values_.size(), {});
  for (NodeId id = 0; id < nodes_.size(); ++id) {
    for (const ValueId operand : nodes_[id].operands) users_[operand].push_back(id);
  }
}

}  // namespace fusiond::ir
