#include "compiler/schedule/output_reshapes.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "compiler/ir/op_table.h"
#include "runtime/base/status_macros.h"

namespace fusiond::schedule {
namespace {

using ir::AttributeKey;
using ir::NodeId;
using ir::Op;
using ir::OpClass;
using ir::ValueId;

constexpr size_t kMaxNodes = 16;

std::vector<int64_t> AsAttribute(const ir::Dims& dims) { return {dims.begin(), dims.end()}; }

// What stands between one output and a reshape.
class Tail {
 public:
  Tail(ir::Graph& graph, const std::vector<uint32_t>& uses) : graph_(graph), uses_(uses) {}

  // Whether `output` has a tail that can be taken behind the reshape.
  bool Find(ValueId output) {
    shape_ = graph_.type(output).shape;
    if (graph_.type(output).strides != ir::ContiguousStrides(shape_)) return false;
    std::vector<ValueId> work = {output}, others;
    for (size_t w = 0; w < work.size(); ++w) {
      const ir::Node& node = graph_.producer(work[w]);
      if (IsReshapeOfComputed(node)) {
        const ir::Dims& before = graph_.type(node.operands[0]).shape;
        if (before_ && *before_ != before) return false;
        before_ = before;
      } else if (IsOfTail(node)) {
        order_.push_back(graph_.value(work[w]).producer);
        for (const ValueId operand : node.operands)
          if (!graph_.type(operand).scalar) work.push_back(operand);
        if (work.size() > 4 * kMaxNodes || order_.size() > kMaxNodes) return false;
      } else {
        others.push_back(work[w]);
      }
    }
    return before_ &&
           std::all_of(others.begin(), others.end(), [&](ValueId id) { return IsNearInputs(id); });
  }

  absl::StatusOr<ValueId> Rewrite(ValueId output) {
    // Each node of a tail has one user, which stands before it in the list.
    for (auto id = order_.rbegin(); id != order_.rend(); ++id) {
      const ir::Node node = graph_.node(*id);
      absl::InlinedVector<ValueId, 4> operands;
      for (const ValueId operand : node.operands) {
        FUSIOND_ASSIGN_OR_RETURN(const ValueId before, Before(operand));
        operands.push_back(before);
      }
      FUSIOND_ASSIGN_OR_RETURN(known_[node.results[0]],
                               graph_.Add(node.op, operands, node.attributes));
    }
    return Before(output);
  }

 private:
  bool IsReshapeOfComputed(const ir::Node& node) const {
    return node.op == Op::kReshape && graph_.type(node.results[0]).shape == shape_ &&
           !IsNearInputs(node.operands[0]);
  }

  bool IsOfTail(const ir::Node& node) const {
    return ir::Info(node.op).op_class == OpClass::kPointwise && node.op != Op::kSegmentSet &&
           graph_.type(node.results[0]).shape == shape_ && uses_[node.results[0]] == 1;
  }

  // A few nodes make it of inputs, without a reduction: a map computes it anew.
  bool IsNearInputs(ValueId value) const {
    std::vector<ValueId> work = {value};
    for (size_t w = 0; w < work.size(); ++w) {
      const ir::Node& node = graph_.producer(work[w]);
      if (w == kMaxNodes || node.op == Op::kSegmentSet) return false;
      if (ir::Info(node.op).op_class == OpClass::kReduction) return false;
      for (const ValueId operand : node.operands)
        if (!graph_.type(operand).scalar) work.push_back(operand);
    }
    return true;
  }

  // `id` in the shape before the reshape.
  absl::StatusOr<ValueId> Before(ValueId id) {
    if (graph_.type(id).scalar) return id;
    if (const auto known = known_.find(id); known != known_.end()) return known->second;
    const ir::Node node = graph_.producer(id);
    if (IsReshapeOfComputed(node)) return node.operands[0];
    ValueId value = id;
    const int missing = static_cast<int>(shape_.size()) - graph_.type(value).rank();
    if (missing > 0) {
      std::vector<bool> inserted(shape_.size(), false);
      std::fill_n(inserted.begin(), missing, true);
      FUSIOND_ASSIGN_OR_RETURN(
          value, graph_.Add(Op::kBroadcast, {value}, {{AttributeKey::kIsBroadcastDim, inserted}}));
    }
    if (graph_.type(value).shape != shape_) {
      FUSIOND_ASSIGN_OR_RETURN(
          value, graph_.Add(Op::kExpand, {value}, {{AttributeKey::kShape, AsAttribute(shape_)}}));
    }
    FUSIOND_ASSIGN_OR_RETURN(
        value, graph_.Add(Op::kReshape, {value}, {{AttributeKey::kShape, AsAttribute(*before_)}}));
    return known_[id] = value;
  }

  ir::Graph& graph_;
  const std::vector<uint32_t>& uses_;
  ir::Dims shape_;                  // behind the reshape
  std::optional<ir::Dims> before_;  // before it
  std::vector<NodeId> order_;       // users before operands
  absl::flat_hash_map<ValueId, ValueId> known_;
};

}  // namespace

absl::Status TakeReshapesOffOutputs(ir::Graph& graph) {
  const std::vector<uint32_t> uses = graph.UseCounts();
  for (size_t i = 0; i < graph.outputs().size(); ++i) {
    const ir::Output output = graph.outputs()[i];
    const ValueId value = output.value;
    if (output.alias_input || uses[value] != 1) continue;
    if (ir::ElementCount(graph.type(value)) == 0) continue;
    Tail tail(graph, uses);
    if (!tail.Find(value)) continue;
    FUSIOND_ASSIGN_OR_RETURN(const ValueId before, tail.Rewrite(value));
    graph.SetOutput(i, before);
  }
  return absl::OkStatus();
}

}  // namespace fusiond::schedule
