// AxisMatch: how several segments and one new node would share axes, tried without touching them.
//
// Begin with one segment, add others, place the node's frame; any step may refuse, and then nothing
// has happened. Axes of one segment are never united with one another: values that meet through two
// different index maps cannot be computed by one kernel.
//
// Thread-safety: thread-compatible. Cost: quadratic in the axes of a segment, which are few (≤ 16).
#ifndef FUSIOND_COMPILER_SCHEDULE_AXIS_MATCH_H_
#define FUSIOND_COMPILER_SCHEDULE_AXIS_MATCH_H_

#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "compiler/schedule/segment.h"

namespace fusiond::schedule {

inline constexpr size_t kMaxAxes = 16;

class AxisMatch {
 public:
  // Axes of the base segment, whose numbering the result keeps (new axes are appended).
  explicit AxisMatch(absl::Span<const Axis> base)
      : axes_(base.begin(), base.end()), split_(HasRoles(base)) {}

  // Unites `other`'s axes with those here. `known`: (axis of other, axis here) that must meet; the
  // rest find partners of equal extent and role, innermost first, or become new axes. A segment
  // with roles takes no new axes. Returns other's axis → axis here, or an empty map when they do
  // not fit.
  DimMap Unite(absl::Span<const Axis> other, absl::Span<const std::pair<int8_t, int8_t>> known);

  // Completes `frame` (frame dim → axis, kNone where still open) for the dims of `extents` that are
  // not 1: an open dim takes a free axis of equal extent, innermost first, or a new one. False when
  // two dims would share an axis or roles forbid a new one.
  bool Place(const ir::Dims& extents, DimMap& frame);

  // Splits the axes in two by what a reduction sums over, or checks that it sums over one whole
  // group. `reduced` are axes; `inner` is the axis along which memory runs fastest. Returns the
  // role of the group summed over, kNone when the reduction does not fit. Requires: `frame` is
  // placed and covers every axis.
  Role Reduce(const DimMap& reduced, int8_t inner);

  const std::vector<Axis>& axes() const { return axes_; }
  bool split() const { return split_; }  // axes have roles

 private:
  static bool HasRoles(absl::Span<const Axis> axes) {
    return !axes.empty() && axes[0].role != Role::kNone;
  }
  // A partner here for an axis of this extent and role that `taken` does not hold yet, or kNone.
  int8_t FindFree(const Axis& axis, absl::Span<const int8_t> taken) const;

  std::vector<Axis> axes_;
  bool split_;
};

}  // namespace fusiond::schedule

#endif  // FUSIOND_COMPILER_SCHEDULE_AXIS_MATCH_H_
