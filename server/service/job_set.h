// The pool's jobs of one call, cancelled together.
//
// Thread-safety: thread-safe. Ownership: the runner outlives it; callbacks hold whoever made them.
#ifndef FUSIOND_SERVER_SERVICE_JOB_SET_H_
#define FUSIOND_SERVER_SERVICE_JOB_SET_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "runtime/base/mutex.h"
#include "server/engine/job_runner.h"

namespace fusiond::server {

class JobSet {
 public:
  JobSet(std::string tenant, JobRunner* runner) : tenant_(std::move(tenant)), runner_(runner) {}

  // Calls `done` once, on the pool's thread, or here where the pool takes no job.
  void Submit(internal::v1::CompileJob job, const std::function<void(const CompileOutcome&)>& done)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends the jobs that are under way and those that are still submitted: their callbacks come.
  void Cancel() ABSL_LOCKS_EXCLUDED(mutex_);
  // CANCELLED after Cancel.
  absl::Status status() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  const std::string tenant_;
  JobRunner* const runner_;

  mutable base::Mutex mutex_;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<CompileJobId> jobs_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fusiond::server

#endif  // FUSIOND_SERVER_SERVICE_JOB_SET_H_
