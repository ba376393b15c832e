// Maps in OpenSegments: they read memory at indices of their own, so no operand's axes bind them. A
// map floats, down to what must be in memory: inputs, and what a lower level stores.
#include <algorithm>

#include "compiler/ir/op_table.h"
#include "compiler/schedule/cost.h"
#include "compiler/schedule/open_segments_internal.h"

namespace fusiond::schedule {
namespace {

using ir::NodeId;
using ir::ValueId;

// A map computes few and cheap nodes anew for each element: two functions of libdevice at most.
constexpr int kMaxConeNodes = 32;
constexpr int kMaxConeSlots = 64;
// As many bytes move in the time of a launch (README, figures "copy" and "time").
constexpr int64_t kLaunchBytes = 6 << 20;

// The axes along which a map's first operand runs, where its result lies along `axes`.
DimMap MainAxes(const ir::Graph& graph, const ir::Node& map, const DimMap& axes) {
  const ir::Dims& from = graph.type(map.operands[0]).shape;
  const ir::Dims& to = graph.type(map.results[0]).shape;
  DimMap main(from.size(), kNone);
  if (map.op == ir::Op::kReshape) {
    // The last dims that stay, and the innermost of those that do not.
    bool same = true;
    for (size_t d = from.size(), t = to.size(); d > 0 && t > 0 && same; --d, --t) {
      main[d - 1] = axes[t - 1];
      same = from[d - 1] == to[t - 1];
    }
    return main;
  }
  main = axes;
  const bool indexing =
      map.op != ir::Op::kSlice && map.op != ir::Op::kPad && map.op != ir::Op::kCat;
  if (indexing) main[map.attributes.Ints(ir::AttributeKey::kDims)[0]] = kNone;
  return main;
}

}  // namespace

// Pointwise values of open segments may be computed again under a map.
bool OpenSegments::MayComputeAgain(ValueId id) const {
  const ValueState& state = states_[id];
  const ir::Node& node = graph_.producer(id);
  if (state.closed || state.late || FusionOf(graph_.value(id).producer) != Fusion::kAll)
    return false;
  return ir::Info(node.op).op_class != ir::OpClass::kReduction;
}

OpenSegments::Cone OpenSegments::ConeOf(const ir::Node& map, bool through_computed) const {
  Cone cone;
  std::vector<ValueId> work(map.operands.rbegin(), map.operands.rend());
  while (!work.empty()) {
    const ValueId id = work.back();
    work.pop_back();
    if (graph_.type(id).scalar || ir::ElementCount(graph_.type(id)) == 0) continue;
    const ValueState& state = states_[id];
    const bool again = state.segment >= 0 && through_computed && MayComputeAgain(id);
    if (!state.floating && !again) {
      if (std::find(cone.bases.begin(), cone.bases.end(), id) == cone.bases.end())
        cone.bases.push_back(id);
      continue;
    }
    const ir::Node& node = graph_.producer(id);
    cone.slots += IssueSlots(node.op);
    cone.fits = ++cone.nodes <= kMaxConeNodes && cone.slots <= kMaxConeSlots;
    if (!cone.fits) return cone;
    work.insert(work.end(), node.operands.rbegin(), node.operands.rend());
  }
  return cone;
}

// Computes what it maps again where that moves fewer bytes than storing it and reading it back.
OpenSegments::Cone OpenSegments::BestCone(const ir::Node& map) const {
  const Cone from_memory = ConeOf(map, false);
  const Cone anew = ConeOf(map, true);
  if (!anew.fits) return from_memory;
  if (!from_memory.fits) return anew;
  const int64_t elements = ir::ElementCount(graph_.type(map.results[0])).value_or(0);
  const auto read_bytes = [&](ValueId id) {
    return std::min(Bytes(id), elements * ir::ByteSize(graph_.type(id).dtype));
  };
  int64_t stored = 0, again = 0;
  for (const ValueId id : from_memory.bases)
    stored += read_bytes(id) + (states_[id].segment >= 0 ? Bytes(id) : 0);
  for (const ValueId id : anew.bases) again += read_bytes(id);
  return again <= std::max(stored, kLaunchBytes) ? anew : from_memory;
}

void OpenSegments::VisitMap(NodeId id) {
  const ir::Node& node = graph_.node(id);
  const ValueId result = node.results[0];
  const bool alone = FusionOf(id) != Fusion::kAll;
  Cone cone = alone ? ConeOf(node, false) : BestCone(node);
  if (!cone.fits) {
    for (const ValueId operand : node.operands) Materialise(operand);
    cone = ConeOf(node, false);
  }
  ValueState& state = states_[result];
  state.bases = std::move(cone.bases);
  state.cone_nodes = static_cast<size_t>(cone.nodes);
  for (const ValueId base : state.bases) state.level = std::max(state.level, LevelOf(base) + 1);
  state.floating = !alone && !is_output_[result] && cone.fits;
  if (!state.floating) TryJoin(id, state.level);
}

// Gives the map behind floating value `id`, if there is one, a segment of its own from here on.
void OpenSegments::Materialise(ValueId id) {
  std::vector<ValueId> above;  // floating values from `id` to the map
  while (states_[id].floating && !IsMap(graph_.producer(id).op)) {
    above.push_back(id);
    const ir::Node& producer = graph_.producer(id);
    const auto tensor = std::find_if(producer.operands.begin(), producer.operands.end(),
                                     [&](ValueId v) { return !graph_.type(v).scalar; });
    if (tensor == producer.operands.end()) return;
    id = *tensor;
  }
  if (!states_[id].floating) return;
  states_[id].floating = false;
  TryJoin(graph_.value(id).producer, states_[id].level);
  for (const ValueId value : above)
    states_[value].level = std::max(states_[value].level, LevelOf(id) + 1);
}

void OpenSegments::NoteBases(OpenSegment& open, const ir::Node& map, const DimMap& frame) {
  open.cone_nodes += states_[map.results[0]].cone_nodes;
  for (const ValueId base : states_[map.results[0]].bases)
    open.tensors += open.mapped.insert(base).second;
  // The axes along which its first tensor runs, as far as maps keep them.
  DimMap axes = frame;
  const ir::Node* node = &map;
  for (int i = 0; i < kMaxConeNodes; ++i) {
    const ValueId operand = node->operands[0];
    if (IsMap(node->op)) {
      axes = MainAxes(graph_, *node, axes);
    } else if (graph_.type(operand).scalar) {
      return;
    } else {
      axes = OperandAxes(graph_, *node, FrameFromResult(graph_, *node, axes), 0);
    }
    if (open.mapped.contains(operand)) return NoteInner(open, operand, axes);
    node = &graph_.producer(operand);
    if (node->operands.empty()) return;
  }
}

}  // namespace fusiond::schedule
