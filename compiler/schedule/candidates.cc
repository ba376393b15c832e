#include "compiler/schedule/candidates.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "compiler/schedule/cluster.h"
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

std::string WhyNotResident(const KernelSchedule& schedule, const executable::DeviceInfo& device) {
  const auto beyond = [](int64_t value, absl::string_view what, int64_t limit) {
    return absl::StrCat("a CTA takes ", value, " ", what, ", the limit is ", limit);
  };
  if (schedule.threads > device.max_threads_per_block)
    return beyond(schedule.threads, "threads", device.max_threads_per_block);
  if (schedule.smem_bytes > device.max_smem_per_block)
    return beyond(schedule.smem_bytes, "bytes of shared memory", device.max_smem_per_block);
  if (schedule.cluster > 1 && !device.has_clusters)
    return absl::StrCat(device.arch, " has no clusters");
  if (schedule.cluster > kMaxCluster) {
    return absl::StrCat("a cluster has ", schedule.cluster, " CTAs, the limit is ", kMaxCluster);
  }
  return "";
}

Candidates FindCandidates(const Region& region, const executable::DeviceInfo& device) {
  Candidates candidates;
  std::vector<std::vector<Candidate>> groups;
  for (const Scheduler* scheduler : kTable) {
    if (const std::string reason = scheduler->applies(region, device); !reason.empty()) {
      candidates.refused.push_back({Name(scheduler->id), reason});
      continue;
    }
    std::vector<Candidate>& group = groups.emplace_back();
    for (KernelSchedule& schedule : scheduler->propose(region, device)) {
      if (std::string reason = WhyNotResident(schedule, device); !reason.empty()) {
        candidates.refused.push_back({Print(schedule), std::move(reason)});
        continue;
      }
      const Cost cost = scheduler->estimate(region, schedule, device);
      group.push_back({std::move(schedule), cost});
    }
    if (group.empty()) groups.pop_back();
  }
  std::stable_sort(groups.begin(), groups.end(), [](const auto& a, const auto& b) {
    return a.front().cost.microseconds < b.front().cost.microseconds;
  });
  for (std::vector<Candidate>& group : groups)
    for (Candidate& candidate : group) candidates.accepted.push_back(std::move(candidate));
  return candidates;
}

}  // namespace fusiond::schedule
