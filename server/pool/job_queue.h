// Jobs that wait for a compile process: normal ones before low ones, each in the order they came.
//
// Thread-safety: single-thread (the pool's loop). Bounded by the pool's Submit. Cost: linear in the
// jobs that wait, at most some hundreds.
#ifndef FUSIOND_SERVER_POOL_JOB_QUEUE_H_
#define FUSIOND_SERVER_POOL_JOB_QUEUE_H_

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "server/pool/job.h"

namespace fusiond::server {

class JobQueue {
 public:
  void Add(PendingJob job);
  // In front of its equals: a job that has already waited.
  void AddFirst(PendingJob job);

  // Takes out the first job for which `want` is true; `want` sees the jobs in order up to it.
  std::optional<PendingJob> TakeFirst(absl::FunctionRef<bool(const PendingJob&)> want);
  // Takes out every job for which `want` is true, in order.
  std::vector<PendingJob> TakeAll(absl::FunctionRef<bool(const PendingJob&)> want);

  size_t size(CompilePriority priority) const { return jobs_[Index(priority)].size(); }
  size_t size() const { return jobs_[0].size() + jobs_[1].size(); }
  // How many jobs of each tenant that has some.
  const absl::flat_hash_map<std::string, size_t>& tenants() const { return tenants_; }
  absl::Duration NextDeadline() const;  // infinite if there is none

 private:
  static size_t Index(CompilePriority priority) { return static_cast<size_t>(priority); }

  std::deque<PendingJob> jobs_[2];
  absl::flat_hash_map<std::string, size_t> tenants_;
};

}  // namespace fusiond::server

#endif  // FUSIOND_SERVER_POOL_JOB_QUEUE_H_
