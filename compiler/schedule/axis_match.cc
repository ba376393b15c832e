#include "compiler/schedule/axis_match.h"

#include <algorithm>

namespace fusiond::schedule {
namespace {

bool Contains(absl::Span<const int8_t> list, int8_t axis) {
  return std::find(list.begin(), list.end(), axis) != list.end();
}

bool Agree(Role a, Role b) { return a == b || a == Role::kNone || b == Role::kNone; }

}  // namespace

int8_t AxisMatch::FindFree(const Axis& axis, absl::Span<const int8_t> taken) const {
  for (int8_t a = static_cast<int8_t>(axes_.size()) - 1; a >= 0; --a) {
    if (axes_[a].extent == axis.extent && Agree(axes_[a].role, axis.role) && !Contains(taken, a))
      return a;
  }
  return kNone;
}

DimMap AxisMatch::Unite(absl::Span<const Axis> other,
                        absl::Span<const std::pair<int8_t, int8_t>> known) {
  DimMap remap(other.size(), kNone);
  for (const auto& [theirs, ours] : known) {
    if (remap[theirs] == ours) continue;
    if (remap[theirs] != kNone || Contains(remap, ours)) return {};
    if (!Agree(other[theirs].role, axes_[ours].role)) return {};
    remap[theirs] = ours;
  }
  const bool other_split = HasRoles(other);
  std::vector<Axis> united = axes_;
  for (int8_t b = static_cast<int8_t>(other.size()) - 1; b >= 0; --b) {
    if (remap[b] == kNone) remap[b] = FindFree(other[b], remap);
    if (remap[b] != kNone) continue;
    if (split_ || united.size() == kMaxAxes) return {};
    remap[b] = static_cast<int8_t>(united.size());
    united.push_back(other[b]);
  }
  if (other_split) {
    // Every axis gets its role from the other side, so each must have met one there.
    for (int8_t a = 0; a < static_cast<int8_t>(axes_.size()); ++a)
      if (!Contains(remap, a)) return {};
    for (size_t b = 0; b < other.size(); ++b) united[remap[b]].role = other[b].role;
    split_ = true;
  }
  axes_ = std::move(united);
  return remap;
}

bool AxisMatch::Place(const ir::Dims& extents, DimMap& frame) {
  for (size_t d = 0; d < frame.size(); ++d) {
    if (frame[d] == kNone) continue;
    for (size_t e = 0; e < d; ++e)
      if (frame[e] == frame[d]) return false;
  }
  for (int d = static_cast<int>(frame.size()) - 1; d >= 0; --d)
    if (frame[d] == kNone && extents[d] != 1) frame[d] = FindFree({extents[d]}, frame);
  for (size_t d = 0; d < frame.size(); ++d) {
    if (frame[d] != kNone || extents[d] == 1) continue;
    if (split_ || axes_.size() == kMaxAxes) return false;
    frame[d] = static_cast<int8_t>(axes_.size());
    axes_.push_back({extents[d]});
  }
  return true;
}

Role AxisMatch::Reduce(const DimMap& reduced, int8_t inner) {
  if (!split_) {
    const bool rows = Contains(reduced, inner) || reduced.size() == axes_.size();
    for (size_t a = 0; a < axes_.size(); ++a) {
      const bool summed = Contains(reduced, static_cast<int8_t>(a));
      axes_[a].role = summed == rows ? Role::kColumn : Role::kRow;
    }
    split_ = true;
    return rows ? Role::kColumn : Role::kRow;
  }
  const Role role = axes_[reduced[0]].role;
  size_t group = 0;
  for (const Axis& axis : axes_) group += axis.role == role;
  if (group != reduced.size()) return Role::kNone;
  for (int8_t a : reduced)
    if (axes_[a].role != role) return Role::kNone;
  return role;
}

}  // namespace fusiond::schedule
