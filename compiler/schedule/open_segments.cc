#include <algorithm>
#include <limits>

#include "compiler/ir/op_table.h"
#include "compiler/schedule/cost.h"
#include "compiler/schedule/open_segments_internal.h"

namespace fusiond::schedule {
namespace {

using ir::NodeId;
using ir::ValueId;

// Of one kernel: its text is unrolled by the vector width, and NVRTC's time follows that
// (README, figure "text"); arguments are 8 bytes a tensor of 4 KB.
constexpr size_t kMaxNodes = 256;
constexpr size_t kMaxTensors = 64;
// Of a chain of functions that far exceed what memory takes meanwhile; each is inlined, and ptxas
// takes longer than in proportion over long ones: 256 sines 23 s, 68 of them 4.6 s.
constexpr int kMaxSlots = 2048;
constexpr uint8_t kMaxFloatingDepth = 4;
// Segments of one level that are remembered as readers of a tensor.
constexpr size_t kMaxReaders = 4;

// A space of so few points may be walked for values that all lie along some of its axes only: that
// costs less than a second launch.
constexpr int64_t kSmallSpace = 65536;

int64_t Points(absl::Span<const Axis> axes) {
  int64_t points = 1;
  for (const Axis& axis : axes)
    if (__builtin_mul_overflow(points, axis.extent, &points))
      return std::numeric_limits<int64_t>::max();
  return points;
}

// Whether a kernel over `axes` has work at most of its points: some node lies along all of them.
bool IsCovered(absl::Span<const Axis> axes, int64_t largest_frame) {
  return Points(axes) <= std::max(largest_frame, kSmallSpace);
}

DimMap Remapped(DimMap axes, const DimMap& remap) {
  for (int8_t& axis : axes)
    if (axis != kNone) axis = remap[axis];
  return axes;
}

}  // namespace

// A node's attempt to join segments; nothing changes before Commit.
struct OpenSegments::Join {
  std::vector<int> segments;   // base first
  std::vector<DimMap> remaps;  // of each of them, to the base's numbering
  AxisMatch match{{}};
  DimMap frame;
  Role reduced = Role::kNone;  // group that the node sums over
  bool dependent = false;
  bool late = false;
  int64_t largest_frame = 1;
};

OpenSegments::OpenSegments(const SegmentRequest& request)
    : graph_(*request.graph),
      request_(request),
      states_(graph_.value_count()),
      input_index_(graph_.value_count(), -1),
      is_output_(graph_.value_count(), false) {
  for (size_t i = 0; i < graph_.inputs().size(); ++i)
    input_index_[graph_.inputs()[i]] = static_cast<int>(i);
  for (const ir::Output& output : graph_.outputs()) is_output_[output.value] = true;
}

int OpenSegments::Resolve(int segment) const {
  while (segment >= 0 && segments_[segment].merged_into >= 0)
    segment = segments_[segment].merged_into;
  return segment;
}

int OpenSegments::LevelOf(ValueId id) const {
  const int segment = states_[id].segment;
  return segment < 0 ? -1 : segments_[segment].segment.level;
}

Fusion OpenSegments::FusionOf(NodeId id) const {
  return request_.fusion.empty() ? Fusion::kAll : request_.fusion[id];
}

const ir::Dims& OpenSegments::Strides(ValueId id) const {
  return input_index_[id] >= 0 ? request_.input_strides[input_index_[id]] : graph_.type(id).strides;
}

int64_t OpenSegments::Bytes(ValueId id) const {
  const ir::Type& type = graph_.type(id);
  return ir::ElementCount(type).value_or(0) * ir::ByteSize(type.dtype);
}

bool OpenSegments::Floats(const ir::Node& node) const {
  if (is_output_[node.results[0]]) return false;
  // What is in memory already needs no boundary.
  if (node.op == ir::Op::kSegmentSet && input_index_[node.operands[0]] < 0) return false;
  if (ir::Info(node.op).op_class == ir::OpClass::kReduction) return false;
  if (IssueSlots(node.op) > kCheapSlots) return false;
  int tensors = 0;
  for (ValueId operand : node.operands) {
    if (graph_.type(operand).scalar) continue;
    const bool leaf = input_index_[operand] >= 0 || states_[operand].floating;
    if (!leaf || states_[operand].depth >= kMaxFloatingDepth || ++tensors > 1) return false;
  }
  return true;
}

void OpenSegments::Visit(NodeId id) {
  const ir::Node& node = graph_.node(id);
  const ir::Type& type = graph_.type(node.results[0]);
  if (type.scalar || ir::Info(node.op).op_class == ir::OpClass::kLeaf) return;
  if (ir::ElementCount(type) == 0) return;
  if (IsMap(node.op)) return VisitMap(id);
  int level = -1, least = 0;
  for (ValueId operand : node.operands) {
    level = std::max(level, LevelOf(operand));
    if (states_[operand].floating) least = std::max(least, states_[operand].level);
  }
  if (FusionOf(id) != Fusion::kNodeAlone && Floats(node)) {
    ValueState& state = states_[node.results[0]];
    state.floating = true;
    state.level = least;
    for (ValueId operand : node.operands)
      state.depth = std::max<uint8_t>(state.depth, states_[operand].depth + 1);
    return;
  }
  if (level >= least && FusionOf(id) != Fusion::kNodeAlone && TryJoin(id, level)) return;
  TryJoin(id, std::max(level + 1, least));
}

bool OpenSegments::TryJoin(NodeId id, int level) {
  const ir::Node& node = graph_.node(id);
  Join join;
  for (ValueId operand : node.operands) {
    const ValueState& state = states_[operand];
    if (LevelOf(operand) != level || IsMap(node.op)) continue;
    if (state.closed) return false;
    if (FusionOf(id) == Fusion::kSimple && state.dependent) return false;
    join.dependent |= state.dependent;
    join.late |= state.late;
    if (std::find(join.segments.begin(), join.segments.end(), state.segment) == join.segments.end())
      join.segments.push_back(state.segment);
  }
  std::sort(join.segments.begin(), join.segments.end(), [&](int a, int b) {
    const size_t x = segments_[a].segment.nodes.size(), y = segments_[b].segment.nodes.size();
    return x != y ? x > y : a < b;
  });
  const bool joins = !join.segments.empty();
  if (!MatchSegments(node, join) || !MatchLeaves(node, join)) return false;
  if (!MatchReduction(node, FusionOf(id), join)) return false;
  if (join.late && !MayUseLate(node, join)) return false;
  for (int segment : join.segments)
    join.largest_frame = std::max(join.largest_frame, segments_[segment].largest_frame);
  std::vector<Axis> frame;
  for (int8_t axis : join.frame)
    if (axis != kNone) frame.push_back(join.match.axes()[axis]);
  join.largest_frame = std::max(join.largest_frame, Points(frame));
  if (!IsCovered(join.match.axes(), join.largest_frame)) return false;
  if (!joins) {
    join.segments.push_back(static_cast<int>(segments_.size()));
    join.remaps.emplace_back();
    segments_.emplace_back();
    segments_.back().segment.level = level;
  }
  Commit(id, join);
  return true;
}

bool OpenSegments::MatchSegments(const ir::Node& node, Join& join) const {
  join.frame.assign(FrameExtents(graph_, node).size(), kNone);
  size_t nodes = 0, tensors = 0;
  int slots = IssueSlots(node.op);
  for (size_t s = 0; s < join.segments.size(); ++s) {
    const OpenSegment& open = segments_[join.segments[s]];
    nodes += open.segment.nodes.size() + open.cone_nodes;
    tensors += open.tensors;
    slots += open.slots;
    // Where the node's operands put the frame's dims.
    std::vector<std::pair<int8_t, int8_t>> dims;  // (axis of this segment, frame dim)
    for (size_t slot = 0; slot < node.operands.size(); ++slot) {
      const ValueState& state = states_[node.operands[slot]];
      if (state.segment != join.segments[s]) continue;
      const DimMap to_frame = OperandToFrame(graph_, node, slot);
      for (size_t d = 0; d < to_frame.size(); ++d)
        if (to_frame[d] != kNone) dims.emplace_back(state.axes[d], to_frame[d]);
    }
    std::vector<std::pair<int8_t, int8_t>> known;
    for (const auto& [axis, dim] : dims)
      if (join.frame[dim] != kNone) known.emplace_back(axis, join.frame[dim]);
    DimMap remap;
    if (s == 0) {
      join.match = AxisMatch(open.segment.axes);
      for (size_t a = 0; a < open.segment.axes.size(); ++a) remap.push_back(static_cast<int8_t>(a));
    } else {
      const Segment& base = segments_[join.segments[0]].segment;
      const bool both = (base.row_reductions || open.segment.row_reductions) &&
                        (base.column_reductions || open.segment.column_reductions);
      if (both && std::max(segments_[join.segments[0]].fusion, open.fusion) > Fusion::kAll)
        return false;
      remap = join.match.Unite(open.segment.axes, known);
      if (remap.size() != open.segment.axes.size()) return false;
    }
    for (const auto& [axis, dim] : dims) {
      if (join.frame[dim] != kNone && join.frame[dim] != remap[axis]) return false;
      join.frame[dim] = remap[axis];
    }
    join.remaps.push_back(std::move(remap));
  }
  return nodes < kMaxNodes && tensors < kMaxTensors && slots <= kMaxSlots;
}

bool OpenSegments::MatchLeaves(const ir::Node& node, Join& join) const {
  // What is read along certain axes already is best read along them again.
  for (size_t s = 0; s < join.segments.size(); ++s) {
    const OpenSegment& open = segments_[join.segments[s]];
    for (size_t slot = 0; slot < node.operands.size(); ++slot) {
      const auto leaf = open.leaves.find(node.operands[slot]);
      if (leaf == open.leaves.end()) continue;
      const DimMap to_frame = OperandToFrame(graph_, node, slot);
      for (size_t d = 0; d < to_frame.size(); ++d) {
        if (to_frame[d] == kNone || join.frame[to_frame[d]] != kNone) continue;
        const int8_t axis = join.remaps[s][leaf->second[d]];
        if (std::find(join.frame.begin(), join.frame.end(), axis) == join.frame.end())
          join.frame[to_frame[d]] = axis;
      }
    }
  }
  return join.match.Place(FrameExtents(graph_, node), join.frame);
}

bool OpenSegments::MatchReduction(const ir::Node& node, Fusion fusion, Join& join) const {
  const DimMap dims = ReducedDims(graph_, node);
  if (dims.empty()) return true;
  if (join.late) return false;
  DimMap reduced;
  for (int8_t dim : dims) reduced.push_back(join.frame[dim]);
  size_t covered = 0;
  for (int8_t axis : join.frame) covered += axis != kNone;
  if (covered != join.match.axes().size()) return false;

  // The axis along which memory runs: that of the heaviest tensor read, else the last dim.
  int64_t heaviest = -1;
  int8_t inner = kNone;
  for (size_t s = 0; s < join.segments.size(); ++s) {
    const OpenSegment& open = segments_[join.segments[s]];
    if (open.inner == kNone || open.heaviest_bytes <= heaviest) continue;
    heaviest = open.heaviest_bytes;
    inner = join.remaps[s][open.inner];
  }
  if (inner == kNone) {
    const ir::Dims& strides = Strides(node.operands[0]);
    int64_t smallest = 0;
    for (size_t d = 0; d < join.frame.size(); ++d) {
      if (join.frame[d] == kNone || strides[d] <= 0) continue;
      if (inner == kNone || strides[d] <= smallest) inner = join.frame[d], smallest = strides[d];
    }
  }
  join.reduced = join.match.Reduce(reduced, inner);
  if (join.reduced == Role::kNone) return false;
  for (int segment : join.segments) {
    const OpenSegment& open = segments_[segment];
    const bool mixes = join.reduced == Role::kColumn ? open.segment.column_reductions
                                                     : open.segment.row_reductions;
    if (mixes && std::max(open.fusion, fusion) > Fusion::kAll) return false;
  }
  return true;
}

// An epilogue runs over what the late reductions keep, and computes again what it needs besides.
bool OpenSegments::MayUseLate(const ir::Node& node, const Join& join) const {
  for (int8_t axis : join.frame)
    if (axis != kNone && join.match.axes()[axis].role != Role::kColumn) return false;
  for (ValueId operand : node.operands) {
    const ValueState& state = states_[operand];
    if (state.segment != -1 && state.dependent && !state.late &&
        std::find(join.segments.begin(), join.segments.end(), state.segment) != join.segments.end())
      return false;
  }
  return true;
}

void OpenSegments::Commit(NodeId id, Join& join) {
  const ir::Node& node = graph_.node(id);
  const int base = join.segments[0];
  for (size_t s = 1; s < join.segments.size(); ++s) Absorb(base, join.segments[s], join.remaps[s]);
  OpenSegment& open = segments_[base];
  open.segment.axes = join.match.axes();
  open.largest_frame = join.largest_frame;
  open.segment.row_reductions |= join.reduced == Role::kColumn;
  open.segment.column_reductions |= join.reduced == Role::kRow;
  open.fusion = std::max(open.fusion, FusionOf(id));
  ValueState& state = states_[node.results[0]];
  if (IsMap(node.op)) NoteBases(open, node, join.frame);
  for (size_t slot = 0; slot < node.operands.size() && !IsMap(node.op); ++slot) {
    const ValueId operand = node.operands[slot];
    if (graph_.type(operand).scalar || states_[operand].segment == base) continue;
    const DimMap axes = OperandAxes(graph_, node, join.frame, slot);
    if (states_[operand].floating) open.leaves.try_emplace(operand, axes);
    Instantiate(base, operand, axes);
  }
  state.segment = base;
  state.axes = ResultAxes(graph_, node, join.frame);
  state.dependent = join.dependent || join.reduced != Role::kNone;
  state.late = join.late || join.reduced == Role::kRow;
  state.closed = node.op == ir::Op::kSegmentSet || FusionOf(id) == Fusion::kNodeAlone;
  open.defined.push_back(node.results[0]);
  open.instances.insert({node.results[0], state.axes});
  open.segment.nodes.push_back({id, join.frame, state.bases});
  open.slots += IssueSlots(node.op);
  open.tensors += is_output_[node.results[0]];
  if (FusionOf(id) == Fusion::kAll && !IsMap(node.op)) UniteReaders(base, node);
}

void OpenSegments::NoteRead(OpenSegment& open, ValueId id, const DimMap& axes) {
  if (open.leaves.try_emplace(id, axes).second) ++open.tensors;
  NoteInner(open, id, axes);
}

void OpenSegments::NoteInner(OpenSegment& open, ValueId id, const DimMap& axes) {
  const int64_t bytes = Bytes(id);
  if (bytes <= open.heaviest_bytes) return;
  const ir::Dims& strides = Strides(id);
  int8_t inner = kNone;
  int64_t smallest = 0;
  for (size_t d = 0; d < axes.size(); ++d) {
    if (axes[d] == kNone || strides[d] <= 0) continue;
    if (inner == kNone || strides[d] <= smallest) inner = axes[d], smallest = strides[d];
  }
  if (inner == kNone) return;
  open.heaviest_bytes = bytes;
  open.inner = inner;
}

void OpenSegments::Instantiate(int segment, ValueId id, const DimMap& axes) {
  OpenSegment& open = segments_[segment];
  if (!states_[id].floating) return NoteRead(open, id, axes);
  if (!open.instances.insert({id, axes}).second) return;
  const NodeId producer = graph_.value(id).producer;
  const ir::Node& node = graph_.node(producer);
  const DimMap frame = FrameFromResult(graph_, node, axes);
  if (IsMap(node.op)) NoteBases(open, node, frame);
  for (size_t slot = 0; slot < node.operands.size() && !IsMap(node.op); ++slot) {
    if (graph_.type(node.operands[slot]).scalar) continue;
    // At most kMaxFloatingDepth deep.
    Instantiate(segment, node.operands[slot], OperandAxes(graph_, node, frame, slot));
  }
  open.segment.nodes.push_back({producer, frame, states_[id].bases});
  open.slots += IssueSlots(node.op);
}

void OpenSegments::Absorb(int into, int from, const DimMap& remap) {
  OpenSegment& base = segments_[into];
  OpenSegment& other = segments_[from];
  for (ValueId id : other.defined) {
    states_[id].segment = into;
    states_[id].axes = Remapped(states_[id].axes, remap);
    base.defined.push_back(id);
  }
  for (const SegmentNode& node : other.segment.nodes) {
    const DimMap frame = Remapped(node.axes, remap);
    const ir::Node& n = graph_.node(node.node);
    const DimMap axes = ResultAxes(graph_, n, frame);
    if (!base.instances.insert({n.results[0], axes}).second) continue;
    base.segment.nodes.push_back({node.node, frame, node.bases});
    base.slots += IssueSlots(n.op);
  }
  base.cone_nodes += other.cone_nodes;
  for (ValueId id : other.mapped) base.tensors += base.mapped.insert(id).second;
  for (const auto& [id, axes] : other.leaves) {
    if (base.leaves.try_emplace(id, Remapped(axes, remap)).second && !states_[id].floating)
      ++base.tensors;
  }
  for (ValueId id : other.defined) base.tensors += is_output_[id];
  if (other.inner != kNone && other.heaviest_bytes > base.heaviest_bytes) {
    base.heaviest_bytes = other.heaviest_bytes;
    base.inner = remap[other.inner];
  }
  base.segment.row_reductions |= other.segment.row_reductions;
  base.segment.column_reductions |= other.segment.column_reductions;
  base.fusion = std::max(base.fusion, other.fusion);
  base.largest_frame = std::max(base.largest_frame, other.largest_frame);
  other = OpenSegment{};
  other.merged_into = into;
}

// Two segments of one level that read the same large tensor read it once when united.
void OpenSegments::UniteReaders(int segment, const ir::Node& node) {
  const int64_t elements = ir::ElementCount(graph_.type(node.results[0])).value_or(0);
  for (ValueId operand : node.operands) {
    // Through floating values to the tensor in memory.
    while (states_[operand].floating) {
      const ir::Node& producer = graph_.producer(operand);
      if (IsMap(producer.op)) break;
      const auto tensor = std::find_if(producer.operands.begin(), producer.operands.end(),
                                       [&](ValueId id) { return !graph_.type(id).scalar; });
      if (tensor == producer.operands.end()) break;
      operand = *tensor;
    }
    if (states_[operand].floating) continue;
    if (2 * ir::ElementCount(graph_.type(operand)).value_or(0) < elements) continue;
    auto& readers = readers_[{operand, segments_[segment].segment.level}];
    for (int& reader : readers) {
      reader = Resolve(reader);
      if (reader != segment && UniteAlong(operand, reader, segment)) segment = reader;
    }
    if (std::find(readers.begin(), readers.end(), segment) != readers.end()) continue;
    if (readers.size() == kMaxReaders) readers.erase(readers.begin());
    readers.push_back(segment);
  }
}

bool OpenSegments::MayUnite(const OpenSegment& a, const OpenSegment& b) const {
  return std::max(a.fusion, b.fusion) == Fusion::kAll &&
         a.segment.nodes.size() + a.cone_nodes + b.segment.nodes.size() + b.cone_nodes <=
             kMaxNodes &&
         a.tensors + b.tensors <= kMaxTensors && a.slots + b.slots <= kMaxSlots;
}

// Makes `segment` part of `with` if both read `tensor` and one kernel may hold them.
bool OpenSegments::UniteAlong(ValueId tensor, int with, int segment) {
  const OpenSegment& a = segments_[with];
  const OpenSegment& b = segments_[segment];
  if (!MayUnite(a, b)) return false;
  const auto ours = a.leaves.find(tensor), theirs = b.leaves.find(tensor);
  if (ours == a.leaves.end() || theirs == b.leaves.end()) return false;
  std::vector<std::pair<int8_t, int8_t>> known;
  for (size_t d = 0; d < ours->second.size(); ++d)
    if (ours->second[d] != kNone) known.emplace_back(theirs->second[d], ours->second[d]);
  AxisMatch match(a.segment.axes);
  const DimMap remap = match.Unite(b.segment.axes, known);
  if (remap.size() != b.segment.axes.size()) return false;
  if (!IsCovered(match.axes(), std::max(a.largest_frame, b.largest_frame))) return false;
  segments_[with].segment.axes = match.axes();
  Absorb(with, segment, remap);
  return true;
}

void OpenSegments::UniteEqualSpaces() {
  // By level and sorted extents: the last segment of that kind with room.
  absl::flat_hash_map<std::pair<int, std::vector<int64_t>>, int> spaces;
  for (int s = 0; s < static_cast<int>(segments_.size()); ++s) {
    const OpenSegment& open = segments_[s];
    if (open.merged_into >= 0 || open.inner == kNone) continue;
    if (open.segment.row_reductions || open.segment.column_reductions) continue;
    std::vector<int64_t> extents;
    for (const Axis& axis : open.segment.axes) extents.push_back(axis.extent);
    std::sort(extents.begin(), extents.end());
    int& with = spaces.try_emplace({open.segment.level, std::move(extents)}, s).first->second;
    if (with == s) continue;
    if (MayUnite(segments_[with], open)) {
      AxisMatch match(segments_[with].segment.axes);
      const DimMap remap = match.Unite(open.segment.axes, {{open.inner, segments_[with].inner}});
      if (remap.size() == open.segment.axes.size() &&
          match.axes().size() == segments_[with].segment.axes.size()) {
        Absorb(with, s, remap);
        continue;
      }
    }
    with = s;
  }
}

}  // namespace fusiond::schedule
