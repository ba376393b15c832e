#include "compiler/passes/axes.h"

#include <algorithm>

namespace fusiond::passes {
namespace {

using ir::AttributeKey;
using ir::NodeId;
using ir::Op;
using ir::OpClass;
using ir::ValueId;

// Whether the node may put a dim at another place, counted from the right.
bool IsView(const ir::Node& node) {
  const OpClass op_class = ir::Info(node.op).op_class;
  return op_class == OpClass::kShape ||
         (op_class == OpClass::kReduction && !node.attributes.Bool(AttributeKey::kKeepdim));
}

}  // namespace

std::vector<int> CarriedDims(const ir::Node& node, int operand_rank, int result_rank) {
  std::vector<int> carried(operand_rank, -1);
  int next = 0;
  switch (node.op) {
    case Op::kBroadcast: {
      const std::vector<bool>& inserted = node.attributes.Bools(AttributeKey::kIsBroadcastDim);
      for (int d = 0; d < result_rank; ++d) {
        if (!inserted[d]) carried[next++] = d;
      }
      return carried;
    }
    case Op::kBroadcastInDim: {
      const std::vector<int64_t>& dims = node.attributes.Ints(AttributeKey::kBroadcastDims);
      for (int d = 0; d < operand_rank; ++d) carried[d] = static_cast<int>(dims[d]);
      return carried;
    }
    default:
      break;
  }
  // expand, squeeze and reductions: all but the dims that they take away.
  const bool takes_away = operand_rank != result_rank;
  const std::vector<int64_t>& dims = node.attributes.Ints(AttributeKey::kDims);
  for (int d = 0; d < operand_rank; ++d) {
    if (takes_away && std::binary_search(dims.begin(), dims.end(), d)) continue;
    carried[d] = next++;
  }
  return carried;
}

Axes::Axes(const ir::Graph& graph)
    : graph_(graph), first_(graph.value_count() + 1), barrier_(graph.nodes().size(), false) {
  for (size_t id = 0; id < graph.value_count(); ++id) {
    const ir::Dims& shape = graph.type(static_cast<ValueId>(id)).shape;
    first_[id + 1] = first_[id] + shape.size();
    for (const int64_t extent : shape) counts_.push_back(extent != 1);
  }
  FindComputed();
  std::vector<bool> cyclic;
  if (Solve(cyclic)) return;
  // Only what stands on or behind a cycle is cut; if that does not help, every view is.
  for (const bool all : {false, true}) {
    for (NodeId id = 0; id < graph.nodes().size(); ++id) {
      const ir::Node& node = graph.node(id);
      if (!IsView(node)) continue;
      for (const ValueId value : {node.operands[0], node.results[0]}) {
        for (size_t e = first_[value]; e < first_[value + 1]; ++e) {
          barrier_[id] = barrier_[id] || all || cyclic[e];
        }
      }
    }
    if (Solve(cyclic)) return;
  }
}

void Axes::FindComputed() {
  computed_.assign(graph_.value_count(), false);
  for (const ir::Node& node : graph_.nodes()) {
    const OpClass op_class = ir::Info(node.op).op_class;
    const bool reduction = op_class == OpClass::kReduction;
    if (!reduction && op_class != OpClass::kPointwise && op_class != OpClass::kMap) continue;
    if (node.op == Op::kSet) continue;
    for (const ValueId operand : node.operands) computed_[operand] = true;
    // A reduction's result is placed by its operand.
    if (!reduction) computed_[node.results[0]] = true;
  }
}

absl::InlinedVector<int, 4> Axes::Of(ValueId id) const {
  return {axis_.begin() + first_[id], axis_.begin() + first_[id + 1]};
}

size_t Axes::Find(size_t element) {
  while (parent_[element] != element) {
    parent_[element] = parent_[parent_[element]];
    element = parent_[element];
  }
  return element;
}

void Axes::Join(size_t a, size_t b) {
  if (!Counts(a) || !Counts(b)) return;
  a = Find(a);
  b = Find(b);
  if (a != b) parent_[std::max(a, b)] = std::min(a, b);
}

void Axes::JoinNode(NodeId id) {
  const ir::Node& node = graph_.node(id);
  const OpClass op_class = ir::Info(node.op).op_class;
  if (op_class == OpClass::kPointwise) {
    const size_t end = first_[node.results[0] + 1];
    for (const ValueId operand : node.operands) {
      const size_t rank = first_[operand + 1] - first_[operand];
      for (size_t i = 1; i <= rank; ++i) Join(first_[operand + 1] - i, end - i);
    }
    return;
  }
  if (op_class != OpClass::kShape && op_class != OpClass::kReduction) return;
  const ValueId operand = node.operands[0];
  for (const ValueId result : node.results) {
    if (barrier_[id]) continue;
    const std::vector<int> carried =
        CarriedDims(node, graph_.type(operand).rank(), graph_.type(result).rank());
    for (size_t d = 0; d < carried.size(); ++d) {
      if (carried[d] >= 0) Join(Element(operand, d), Element(result, carried[d]));
    }
  }
}

bool Axes::Solve(std::vector<bool>& cyclic) {
  const size_t elements = first_.back();
  parent_.resize(elements);
  for (size_t e = 0; e < elements; ++e) parent_[e] = e;
  for (NodeId id = 0; id < graph_.nodes().size(); ++id) JoinNode(id);

  // Every axis is numbered after the one to its right in a value.
  struct Left {
    size_t element;
    int distance;
  };
  std::vector<absl::InlinedVector<Left, 2>> left(elements);
  std::vector<uint32_t> waiting(elements);
  axis_.assign(elements, kNone);
  for (size_t id = 0; id + 1 < first_.size(); ++id) {
    std::optional<size_t> right;
    for (size_t e = first_[id + 1]; e-- > first_[id];) {
      if (!Counts(e)) continue;
      if (right) {
        const size_t distance = computed_[id] ? *right - e : 1;
        left[Find(*right)].push_back({Find(e), static_cast<int>(distance)});
        ++waiting[Find(e)];
      }
      const size_t from_right = computed_[id] ? first_[id + 1] - 1 - e : 0;
      axis_[Find(e)] = std::max(axis_[Find(e)], static_cast<int>(from_right));
      right = e;
    }
  }
  std::vector<size_t> ready;
  for (size_t e = 0; e < elements; ++e) {
    if (Counts(e) && Find(e) == e && waiting[e] == 0) ready.push_back(e);
  }
  std::vector<bool> done(elements, false);
  while (!ready.empty()) {
    const size_t e = ready.back();
    ready.pop_back();
    done[e] = true;
    for (const Left& next : left[e]) {
      axis_[next.element] = std::max(axis_[next.element], axis_[e] + next.distance);
      if (--waiting[next.element] == 0) ready.push_back(next.element);
    }
  }
  cyclic.assign(elements, false);
  bool solved = true;
  for (size_t e = 0; e < elements; ++e) {
    if (!Counts(e)) continue;
    axis_[e] = axis_[Find(e)];
    cyclic[e] = !done[Find(e)] || axis_[e] >= ir::kMaxRank;
    solved = solved && !cyclic[e];
  }
  return solved;
}

}  // namespace fusiond::passes
