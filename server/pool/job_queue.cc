#include "server/pool/job_queue.h"

#include <algorithm>
#include <utility>

namespace fusiond::server {

JobQueue::Turns::iterator JobQueue::TurnOf(const PendingJob& job, bool first) {
  const size_t priority = Index(job.request.priority);
  Turns& turns = turns_[priority];
  ++tenants_[job.request.tenant];
  ++sizes_[priority];
  auto turn = std::find_if(turns.begin(), turns.end(),
                           [&](const TenantJobs& of) { return of.tenant == job.request.tenant; });
  if (turn == turns.end()) turn = turns.insert(turns.end(), {job.request.tenant, {}});
  if (first) turns.splice(turns.begin(), turns, turn);
  return turn;
}

void JobQueue::Add(PendingJob job) { TurnOf(job, false)->jobs.push_back(std::move(job)); }

void JobQueue::AddFirst(PendingJob job) { TurnOf(job, true)->jobs.push_front(std::move(job)); }

std::optional<JobQueue::Place> JobQueue::Find(Turns& turns, Want want) {
  std::vector<Turns::iterator> left;  // tenants with a job of this round
  for (auto turn = turns.begin(); turn != turns.end(); ++turn) left.push_back(turn);
  for (size_t round = 0; !left.empty(); ++round) {
    for (const Turns::iterator& turn : left) {
      if (want(turn->jobs[round])) return Place{turn, round};
    }
    left.erase(std::remove_if(left.begin(), left.end(),
                              [round](const auto& turn) { return turn->jobs.size() <= round + 1; }),
               left.end());
  }
  return std::nullopt;
}

PendingJob JobQueue::Remove(size_t priority, const Place& place) {
  std::deque<PendingJob>& jobs = place.tenant->jobs;
  const auto at = jobs.begin() + static_cast<ptrdiff_t>(place.job);
  PendingJob job = std::move(*at);
  jobs.erase(at);
  if (jobs.empty()) turns_[priority].erase(place.tenant);
  --sizes_[priority];
  const auto tenant = tenants_.find(job.request.tenant);
  if (--tenant->second == 0) tenants_.erase(tenant);
  return job;
}

std::optional<PendingJob> JobQueue::TakeNext(Want want) {
  for (size_t priority : {0, 1}) {
    Turns& turns = turns_[priority];
    const std::optional<Place> place = Find(turns, want);
    if (!place.has_value()) continue;
    turns.splice(turns.end(), turns, place->tenant);
    return Remove(priority, *place);
  }
  return std::nullopt;
}

std::optional<PendingJob> JobQueue::Take(Want want) {
  for (size_t priority : {0, 1}) {
    if (const std::optional<Place> place = Find(turns_[priority], want))
      return Remove(priority, *place);
  }
  return std::nullopt;
}

std::vector<PendingJob> JobQueue::TakeAll(Want want) {
  std::vector<PendingJob> taken;
  while (std::optional<PendingJob> job = Take(want)) taken.push_back(*std::move(job));
  return taken;
}

absl::Duration JobQueue::NextDeadline() const {
  absl::Duration next = absl::InfiniteDuration();
  for (const Turns& turns : turns_) {
    for (const TenantJobs& of : turns) {
      for (const PendingJob& job : of.jobs) next = std::min(next, job.deadline);
    }
  }
  return next;
}

}  // namespace fusiond::server
