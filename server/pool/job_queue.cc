#include "server/pool/job_queue.h"

#include <algorithm>
#include <utility>

namespace fusiond::server {

void JobQueue::Add(PendingJob job) {
  ++tenants_[job.request.tenant];
  jobs_[Index(job.request.priority)].push_back(std::move(job));
}

void JobQueue::AddFirst(PendingJob job) {
  ++tenants_[job.request.tenant];
  jobs_[Index(job.request.priority)].push_front(std::move(job));
}

std::optional<PendingJob> JobQueue::TakeFirst(absl::FunctionRef<bool(const PendingJob&)> want) {
  for (std::deque<PendingJob>& jobs : jobs_) {
    auto it = std::find_if(jobs.begin(), jobs.end(), want);
    if (it == jobs.end()) continue;
    PendingJob job = std::move(*it);
    jobs.erase(it);
    const auto tenant = tenants_.find(job.request.tenant);
    if (--tenant->second == 0) tenants_.erase(tenant);
    return job;
  }
  return std::nullopt;
}

std::vector<PendingJob> JobQueue::TakeAll(absl::FunctionRef<bool(const PendingJob&)> want) {
  std::vector<PendingJob> taken;
  while (std::optional<PendingJob> job = TakeFirst(want)) taken.push_back(*std::move(job));
  return taken;
}

absl::Duration JobQueue::NextDeadline() const {
  absl::Duration next = absl::InfiniteDuration();
  for (const std::deque<PendingJob>& jobs : jobs_) {
    for (const PendingJob& job : jobs) next = std::min(next, job.deadline);
  }
  return next;
}

}  // namespace fusiond::server
