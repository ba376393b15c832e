#include "compiler/schedule/workspace.h"

#include <algorithm>
#include <numeric>

namespace fusiond::schedule {

using executable::Formula;
using executable::FormulaTerm;

namespace {

int64_t Aligned(int64_t bytes) {
  return (bytes + kWorkspaceAlignment - 1) / kWorkspaceAlignment * kWorkspaceAlignment;
}

// Whether some step needs both.
bool Meet(const WorkspaceBuffer& a, const WorkspaceBuffer& b) {
  return a.first_step <= b.last_step && b.first_step <= a.last_step;
}

struct Placed {
  int64_t begin, end;
  size_t buffer;
};

}  // namespace

WorkspacePlan PlanWorkspace(absl::Span<const WorkspaceBuffer> buffers) {
  WorkspacePlan plan;
  plan.offsets.resize(buffers.size());
  std::vector<size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return buffers[a].bytes.AsConstant().value_or(-1) > buffers[b].bytes.AsConstant().value_or(-1);
  });
  std::vector<Placed> placed;
  int64_t end = 0;
  for (size_t b : order) {
    const std::optional<int64_t> bytes = buffers[b].bytes.AsConstant();
    if (!bytes) continue;
    std::vector<Placed> meets;  // in time
    for (const Placed& other : placed) {
      if (Meet(buffers[other.buffer], buffers[b])) meets.push_back(other);
    }
    std::sort(meets.begin(), meets.end(),
              [](const Placed& x, const Placed& y) { return x.begin < y.begin; });
    int64_t offset = 0;
    for (const Placed& other : meets) {
      if (offset + Aligned(*bytes) <= other.begin) break;
      offset = std::max(offset, other.end);
    }
    placed.push_back({offset, offset + Aligned(*bytes), b});
    end = std::max(end, offset + Aligned(*bytes));
    plan.offsets[b] = Formula::Constant(offset);
  }
  plan.bytes = Formula::Constant(end);
  // Buffers of one formula share a slot in turn: a formula has a limit of terms, a graph any number
  // of buffers.
  std::vector<std::vector<size_t>> slots;
  for (size_t b = 0; b < buffers.size(); ++b) {
    if (buffers[b].bytes.AsConstant()) continue;
    const auto has_room = [&](const std::vector<size_t>& slot) {
      return buffers[slot[0]].bytes == buffers[b].bytes &&
             std::none_of(slot.begin(), slot.end(),
                          [&](size_t o) { return Meet(buffers[o], buffers[b]); });
    };
    const auto slot = std::find_if(slots.begin(), slots.end(), has_room);
    if (slot != slots.end()) {
      plan.offsets[b] = plan.offsets[slot->front()];
      slot->push_back(b);
      continue;
    }
    slots.push_back({b});
    plan.offsets[b] = plan.bytes;
    plan.bytes = Formula::Combine(FormulaTerm::Kind::kAdd, plan.bytes,
                                  Formula::Combine(FormulaTerm::Kind::kRoundUp, buffers[b].bytes,
                                                   Formula::Constant(kWorkspaceAlignment)));
  }
  return plan;
}

}  // namespace fusiond::schedule
