#include "compiler/schedule/candidates.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "compiler/schedule/column.h"
#include "compiler/schedule/pointwise.h"
#include "compiler/schedule/row_column.h"
#include "compiler/schedule/row_persistent.h"
#include "compiler/schedule/row_stream.h"
#include "compiler/schedule/transpose.h"

namespace fusiond::schedule {
namespace {

// Ties in cost go to the earlier row.
const Scheduler* const kTable[] = {
    &TransposeScheduler(), &PointwiseScheduler(), &RowPersistentScheduler(),
    &RowStreamScheduler(), &RowColumnScheduler(), &ColumnScheduler(),
};

}  // namespace

Candidates FindCandidates(const Region& region, const executable::DeviceInfo& device) {
  Candidates candidates;
  std::vector<std::vector<Candidate>> groups;
  for (const Scheduler* scheduler : kTable) {
    if (const std::string reason = scheduler->applies(region, device); !reason.empty()) {
      candidates.refused.push_back(absl::StrCat(Name(scheduler->id), ": ", reason));
      continue;
    }
    groups.emplace_back();
    for (KernelSchedule& schedule : scheduler->propose(region, device)) {
      const Cost cost = scheduler->estimate(region, schedule, device);
      groups.back().push_back({std::move(schedule), cost});
    }
  }
  std::stable_sort(groups.begin(), groups.end(), [](const auto& a, const auto& b) {
    return a.front().cost.microseconds < b.front().cost.microseconds;
  });
  for (std::vector<Candidate>& group : groups)
    for (Candidate& candidate : group) candidates.accepted.push_back(std::move(candidate));
  return candidates;
}

}  // namespace fusiond::schedule
