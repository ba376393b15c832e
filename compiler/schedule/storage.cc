#include "compiler/schedule/storage.h"

#include <algorithm>
#include <utility>

namespace fusiond::schedule {
namespace {

using ir::ValueId;

class Planner {
 public:
  Planner(const ir::Graph& graph, absl::Span<const Segment> segments, bool exclusive)
      : graph_(graph), segments_(segments), exclusive_(exclusive) {
    storage_.memory.source.assign(graph.value_count(), Memory::kNoTensor);
    storage_.memory.targets.resize(graph.value_count());
    last_read_.assign(graph.value_count(), kNever);
    for (size_t s = 0; s < segments.size(); ++s) {
      reads_.push_back(Reads(graph, segments[s]));
      for (const Read& read : reads_.back()) last_read_[read.value] = static_cast<int64_t>(s);
    }
  }

  Storage Run(absl::Span<const BufferLayout> inputs, absl::Span<const BufferLayout> outputs) && {
    for (uint32_t i = 0; i < graph_.inputs().size(); ++i) {
      const ValueId id = graph_.inputs()[i];
      if (!graph_.type(id).scalar)
        storage_.memory.source[id] = AddTensor(id, {Place::Kind::kInput, i}, inputs[i]);
    }
    for (size_t s = 0; s < segments_.size(); ++s)
      for (ValueId id : segments_[s].stores) PlaceValue(s, id, outputs);
    return std::move(storage_);
  }

 private:
  static constexpr int64_t kNever = -1;
  // Each is an argument of the kernel that makes the value, and no cut of a segment makes them
  // fewer.
  static constexpr size_t kMaxTargets = 32;
  static constexpr size_t kMaxCopyTargets = 128;

  uint32_t AddTensor(ValueId id, Place place, const BufferLayout& layout) {
    Tensor tensor;
    tensor.place = place;
    tensor.dtype = graph_.type(id).dtype;
    tensor.shape = graph_.type(id).shape;
    tensor.strides = layout.strides;
    tensor.alignment = layout.alignment;
    tensor.shared = place.kind != Place::Kind::kWorkspace && !exclusive_;
    storage_.memory.tensors.push_back(std::move(tensor));
    return static_cast<uint32_t>(storage_.memory.tensors.size() - 1);
  }

  uint32_t AddWorkspace(size_t segment, ValueId id, size_t last) {
    const ir::Type& type = graph_.type(id);
    const int64_t bytes = ir::ElementCount(type).value_or(0) * ir::ByteSize(type.dtype);
    const auto index = static_cast<uint32_t>(storage_.workspace.size());
    storage_.workspace.push_back({bytes, segment, std::max(segment, last)});
    // 256: the alignment of workspace tensors (workspace.h).
    return AddTensor(id, {Place::Kind::kWorkspace, index},
                     {ir::ContiguousStrides(type.shape), 256});
  }

  void PlaceValue(size_t segment, ValueId id, absl::Span<const BufferLayout> outputs) {
    uint32_t source = Memory::kNoTensor;
    std::vector<Copy> copies;
    const auto copy_to = [&](uint32_t tensor) {
      const auto& tensors = storage_.memory.tensors;
      if (copies.empty() || copies.back().to.size() == kMaxCopyTargets ||
          tensors[copies.back().to[0]].strides != tensors[tensor].strides)
        copies.emplace_back();
      copies.back().to.push_back(tensor);
    };
    auto& targets = storage_.memory.targets[id];
    for (uint32_t o = 0; o < graph_.outputs().size(); ++o) {
      const ir::Output& output = graph_.outputs()[o];
      if (output.value != id) continue;
      if (!output.alias_input) {
        const uint32_t tensor = AddTensor(id, {Place::Kind::kOutput, o}, outputs[o]);
        if (targets.size() < kMaxTargets) {
          targets.push_back(tensor);
          source = tensor;
        } else {
          copy_to(tensor);
        }
        continue;
      }
      const uint32_t tensor = storage_.memory.source[graph_.inputs()[*output.alias_input]];
      storage_.memory.tensors[tensor].shared = true;
      if (MayWriteInPlace(segment, id, *output.alias_input)) {
        targets.push_back(tensor);
      } else {
        copy_to(tensor);
      }
    }
    const bool read = last_read_[id] > static_cast<int64_t>(segment);
    if (source == Memory::kNoTensor && (read || !copies.empty())) {
      const size_t last = copies.empty()
                              ? static_cast<size_t>(last_read_[id])
                              : segments_.size() + storage_.copies.size() + copies.size() - 1;
      source = AddWorkspace(segment, id, last);
      targets.push_back(source);
    }
    for (Copy& copy : copies) storage_.copies.push_back({source, std::move(copy.to)});
    storage_.memory.source[id] = source;
  }

  bool MayWriteInPlace(size_t segment, ValueId id, uint32_t input) const {
    const ValueId buffer = graph_.inputs()[input];
    if (last_read_[buffer] > static_cast<int64_t>(segment)) return false;
    const auto writers =
        std::count_if(graph_.outputs().begin(), graph_.outputs().end(),
                      [&](const ir::Output& output) { return output.alias_input == input; });
    if (writers > 1) return false;
    if (last_read_[buffer] < static_cast<int64_t>(segment)) return true;
    DimMap axes;
    for (const SegmentNode& node : segments_[segment].nodes) {
      const ir::Node& ir_node = graph_.node(node.node);
      if (ir_node.results[0] == id) axes = ResultAxes(graph_, ir_node, node.axes);
    }
    // Each element is read and written by one thread only if it lies at one point of the space.
    size_t covered = 0;
    for (int8_t axis : axes) covered += axis != kNone;
    if (covered != segments_[segment].axes.size()) return false;
    for (const Read& read : reads_[segment])
      if (read.value == buffer && (read.mapped || read.axes != axes)) return false;
    return true;
  }

  const ir::Graph& graph_;
  absl::Span<const Segment> segments_;
  const bool exclusive_;
  std::vector<std::vector<Read>> reads_;  // by segment
  std::vector<int64_t> last_read_;        // by value: the last segment that reads it, or kNever
  Storage storage_;
};

}  // namespace

Storage PlanStorage(const ir::Graph& graph, absl::Span<const Segment> segments,
                    absl::Span<const BufferLayout> inputs, absl::Span<const BufferLayout> outputs,
                    bool exclusive) {
  return Planner(graph, segments, exclusive).Run(inputs, outputs);
}

}  // namespace fusiond::schedule
