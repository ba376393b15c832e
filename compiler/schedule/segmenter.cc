#include "compiler/schedule/segmenter.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "compiler/ir/op_table.h"
#include "compiler/schedule/cost.h"
#include "compiler/schedule/open_segments_internal.h"
#include "compiler/schedule/output_reshapes.h"
#include "runtime/base/status_macros.h"

namespace fusiond::schedule {
namespace {

using ir::NodeId;
using ir::ValueId;

// A value is computed again only by few and cheap nodes: one function of libdevice at most.
constexpr size_t kMaxRecomputedNodes = 8;
constexpr int kMaxRecomputedSlots = 40;

// Decides, for each value that crosses segments, whether its users read it or compute it again.
class Cuts {
 public:
  Cuts(const ir::Graph& graph, OpenSegments& open, const std::vector<uint32_t>& position)
      : graph_(graph), open_(open), position_(position), stored_(graph.value_count(), false) {
    for (const ir::Output& output : graph.outputs()) stored_[output.value] = true;
  }

  void Decide(int segment) {
    OpenSegment& open = open_.segments()[segment];
    // The list grows by what is computed again, whose own operands are settled.
    const size_t count = open.segment.nodes.size();
    for (size_t n = 0; n < count; ++n) {
      for (const Read& use : Uses(graph_, open.segment.nodes[n])) {
        if (!Crosses(use.value, segment)) continue;
        if (!use.mapped && open.instances.contains({use.value, use.axes})) continue;
        if (use.mapped || open.fusion == Fusion::kNodeAlone ||
            !Recompute(segment, use.value, use.axes))
          stored_[use.value] = true;
      }
    }
    std::sort(open.segment.nodes.begin(), open.segment.nodes.end(),
              [&](const SegmentNode& a, const SegmentNode& b) {
                return position_[a.node] != position_[b.node]
                           ? position_[a.node] < position_[b.node]
                           : a.axes < b.axes;
              });
  }

 private:
  bool Crosses(ValueId id, int segment) const {
    const ValueState& state = open_.state(id);
    return state.segment >= 0 && state.segment != segment;
  }

  bool Recompute(int segment, ValueId id, const DimMap& axes) {
    OpenSegment& open = open_.segments()[segment];
    std::vector<SegmentNode> nodes;
    std::vector<Instance> work = {{id, axes}}, reads;
    absl::flat_hash_set<Instance> seen(work.begin(), work.end());
    int slots = 0;
    for (size_t w = 0; w < work.size(); ++w) {
      const auto [value, value_axes] = work[w];
      if (open.instances.contains(work[w])) continue;
      if (open_.state(value).floating) {
        // What its maps read would have to be settled first.
        if (open_.state(value).level > 0) return false;
        continue;
      }
      const ir::Node& node = graph_.producer(value);
      const bool given = !Crosses(value, segment) || (w > 0 && stored_[value]) ||
                         open_.state(value).closed || open_.state(value).late || IsMap(node.op) ||
                         ir::Info(node.op).op_class == ir::OpClass::kReduction;
      if (given) {
        if (w == 0) return false;
        reads.push_back(work[w]);
        continue;
      }
      slots += IssueSlots(node.op);
      const SegmentNode again = {
          graph_.value(value).producer, FrameFromResult(graph_, node, value_axes), {}};
      nodes.push_back(again);
      if (nodes.size() > kMaxRecomputedNodes || slots > kMaxRecomputedSlots) return false;
      for (size_t slot = 0; slot < node.operands.size(); ++slot) {
        if (graph_.type(node.operands[slot]).scalar) continue;
        Instance next = {node.operands[slot], OperandAxes(graph_, node, again.axes, slot)};
        if (seen.insert(next).second) work.push_back(std::move(next));
      }
    }
    // Bytes either way: what is read besides, and written first where nobody stores it yet.
    int64_t again = 0;
    for (const auto& [value, value_axes] : reads) {
      if (!open.leaves.contains(value)) again += open_.Bytes(value);
      if (Crosses(value, segment) && !stored_[value]) again += open_.Bytes(value);
    }
    for (const Instance& instance : work) {
      if (open_.state(instance.first).floating && !open.instances.contains(instance))
        again += FloatingBytes(open, instance.first);
    }
    if (again >= (stored_[id] ? 1 : 2) * open_.Bytes(id)) return false;

    for (const auto& [value, value_axes] : reads) {
      if (Crosses(value, segment)) stored_[value] = true;
      open_.NoteRead(open, value, value_axes);
    }
    for (const Instance& instance : work) {
      if (open_.state(instance.first).floating)
        open_.Instantiate(segment, instance.first, instance.second);
    }
    for (const SegmentNode& node : nodes) {
      const ir::Node& ir_node = graph_.node(node.node);
      open.instances.insert({ir_node.results[0], ResultAxes(graph_, ir_node, node.axes)});
      open.segment.nodes.push_back(node);
    }
    return true;
  }

  // Bytes that a floating value adds to what `open` reads.
  int64_t FloatingBytes(const OpenSegment& open, ValueId id) const {
    while (open_.state(id).floating) {
      const ir::Node& producer = graph_.producer(id);
      if (IsMap(producer.op)) return open_.Bytes(id);
      const auto tensor = std::find_if(producer.operands.begin(), producer.operands.end(),
                                       [&](ValueId v) { return !graph_.type(v).scalar; });
      if (tensor == producer.operands.end()) return 0;
      id = *tensor;
    }
    return open.leaves.contains(id) ? 0 : open_.Bytes(id);
  }

  const ir::Graph& graph_;
  OpenSegments& open_;
  const std::vector<uint32_t>& position_;
  std::vector<bool> stored_;  // as decided so far
};

// Drops nodes whose results nobody needs and lists what each segment must store. Highest level
// first, so that needs are complete when a segment is reached.
void DropUnneeded(const ir::Graph& graph, OpenSegments& open, absl::Span<const int> order) {
  std::vector<bool> needed(graph.value_count(), false);
  for (const ir::Output& output : graph.outputs()) needed[output.value] = true;
  for (auto segment = order.rbegin(); segment != order.rend(); ++segment) {
    OpenSegment& s = open.segments()[*segment];
    std::vector<SegmentNode> kept;
    absl::flat_hash_set<Instance> live;
    for (auto node = s.segment.nodes.rbegin(); node != s.segment.nodes.rend(); ++node) {
      const ir::Node& ir_node = graph.node(node->node);
      const ValueId result = ir_node.results[0];
      const Instance instance = {result, ResultAxes(graph, ir_node, node->axes)};
      const bool stores = needed[result] && open.state(result).segment == *segment;
      if (!stores && !live.contains(instance)) continue;
      if (stores) s.segment.stores.push_back(result);
      for (const Read& use : Uses(graph, *node)) {
        Instance instance = {use.value, use.axes};
        if (use.mapped || !s.instances.contains(instance)) needed[use.value] = true;
        if (!use.mapped) live.insert(std::move(instance));
      }
      kept.push_back(*node);
    }
    std::reverse(kept.begin(), kept.end());
    s.segment.nodes = std::move(kept);
    std::sort(s.segment.stores.begin(), s.segment.stores.end());
  }
}

absl::Status CheckLowered(const ir::Graph& graph) {
  for (const ir::Node& node : graph.nodes()) {
    if (node.op == ir::Op::kVar || node.op == ir::Op::kVarMean || node.op == ir::Op::kWelford ||
        node.op == ir::Op::kSize || node.op == ir::Op::kTriu)
      return absl::InternalError(absl::StrCat("no kernel computes node '", ir::Info(node.op).name,
                                              "' (value ", node.results[0],
                                              "): canonicalisation should have lowered it"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<Segment>> Segmentation(const SegmentRequest& request) {
  const ir::Graph& graph = *request.graph;
  FUSIOND_RETURN_IF_ERROR(CheckLowered(graph));
  OpenSegments open(request);
  std::vector<uint32_t> position(graph.nodes().size());
  uint32_t next = 0;
  for (NodeId id : graph.TopologicalOrder()) {
    position[id] = next++;
    open.Visit(id);
  }
  open.UniteEqualSpaces();
  std::vector<int> order;
  for (size_t s = 0; s < open.segments().size(); ++s)
    if (open.segments()[s].merged_into < 0) order.push_back(static_cast<int>(s));
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return open.segments()[a].segment.level < open.segments()[b].segment.level;
  });
  Cuts cuts(graph, open, position);
  for (int segment : order) cuts.Decide(segment);
  DropUnneeded(graph, open, order);
  std::vector<Segment> segments;
  for (int segment : order) {
    if (!open.segments()[segment].segment.stores.empty())
      segments.push_back(std::move(open.segments()[segment].segment));
  }
  return segments;
}

absl::StatusOr<ir::Graph> Prepare(const ir::Graph& graph) {
  ir::Graph prepared = graph;
  FUSIOND_RETURN_IF_ERROR(TakeReshapesOffOutputs(prepared));
  for (NodeId id = 0; id < graph.nodes().size(); ++id) {
    const ir::Node node = graph.node(id);
    if (ir::Info(node.op).op_class != ir::OpClass::kReduction || node.results.size() != 1) continue;
    const ir::Type& type = graph.type(node.results[0]);
    if (ir::ElementCount(graph.type(node.operands[0])) != 0 || ir::ElementCount(type) == 0)
      continue;
    const double inf = std::numeric_limits<double>::infinity();
    const double identity = node.op == ir::Op::kSum    ? 0
                            : node.op == ir::Op::kProd ? 1
                            : node.op == ir::Op::kMax  ? -inf
                                                       : inf;
    ValueId value;
    if (ir::IsFloatingPoint(type.dtype)) {
      value = prepared.AddConstant(identity, ir::DType::kDouble);
    } else if (type.dtype == ir::DType::kBool) {
      value = prepared.AddConstant(identity > 0, ir::DType::kBool);
    } else {
      const int64_t low = type.dtype == ir::DType::kInt32 ? std::numeric_limits<int32_t>::min()
                                                          : std::numeric_limits<int64_t>::min();
      value = prepared.AddConstant(identity == -inf  ? low
                                   : identity == inf ? -(low + 1)
                                                     : static_cast<int64_t>(identity),
                                   ir::DType::kInt);
    }
    ir::Attributes attributes;
    attributes.Set(ir::AttributeKey::kShape,
                   std::vector<int64_t>(type.shape.begin(), type.shape.end()));
    attributes.Set(ir::AttributeKey::kDtype, type.dtype);
    FUSIOND_ASSIGN_OR_RETURN(const ValueId full,
                             prepared.Add(ir::Op::kFull, {value}, std::move(attributes)));
    prepared.ReplaceUses(node.results[0], full);
  }
  for (size_t i = 0; i < prepared.outputs().size(); ++i) {
    const ValueId value = prepared.outputs()[i].value;
    if (prepared.producer(value).op != ir::Op::kInput) continue;
    FUSIOND_ASSIGN_OR_RETURN(const ValueId copy, prepared.Add(ir::Op::kSet, {value}));
    prepared.SetOutput(i, copy);
  }
  prepared.Compact();
  return prepared;
}

}  // namespace fusiond::schedule
