// Jobs that wait for a compile process: normal ones before low ones; among those of one priority
// the tenants take turns, and each tenant's jobs go in the order they came.
//
// Turns, so that what one tenant submits, however much, holds up another's only job by one of its
// own and not by all.
//
// Thread-safety: single-thread (the pool's loop). Bounded by the pool's Submit. Cost: linear in the
// jobs that wait, at most some hundreds.
#ifndef FUSIOND_SERVER_POOL_JOB_QUEUE_H_
#define FUSIOND_SERVER_POOL_JOB_QUEUE_H_

#include <deque>
#include <list>
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
  using Want = absl::FunctionRef<bool(const PendingJob&)>;

  void Add(PendingJob job);
  // In front of its tenant's, and that tenant in front of the others: a job that has already had
  // its turn.
  void AddFirst(PendingJob job);

  // Takes out the job that is next among those that `want` is true for, which ends its tenant's
  // turn. `want` sees every tenant's first job, then every second one, and so on, up to that job.
  std::optional<PendingJob> TakeNext(Want want);
  // Takes out a job, or every job, for which `want` is true, in the same order; nobody's turn ends.
  std::optional<PendingJob> Take(Want want);
  std::vector<PendingJob> TakeAll(Want want);

  size_t size(CompilePriority priority) const { return sizes_[Index(priority)]; }
  size_t size() const { return sizes_[0] + sizes_[1]; }
  // How many jobs of each tenant that has some.
  const absl::flat_hash_map<std::string, size_t>& tenants() const { return tenants_; }
  absl::Duration NextDeadline() const;  // infinite if there is none

 private:
  struct TenantJobs {
    std::string tenant;
    std::deque<PendingJob> jobs;  // never empty
  };
  // Whose turn is next comes first.
  using Turns = std::list<TenantJobs>;
  struct Place {
    Turns::iterator tenant;
    size_t job;
  };

  static size_t Index(CompilePriority priority) { return static_cast<size_t>(priority); }
  Turns::iterator TurnOf(const PendingJob& job, bool first);
  static std::optional<Place> Find(Turns& turns, Want want);
  PendingJob Remove(size_t priority, const Place& place);

  Turns turns_[2];  // by priority
  size_t sizes_[2] = {0, 0};
  absl::flat_hash_map<std::string, size_t> tenants_;
};

}  // namespace fusiond::server

#endif  // FUSIOND_SERVER_POOL_JOB_QUEUE_H_
