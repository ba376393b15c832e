#include "server/service/job_set.h"

#include <utility>

namespace fusiond::server {

void JobSet::Submit(internal::v1::CompileJob job,
                    const std::function<void(const CompileOutcome&)>& done) {
  CompileRequest request;
  request.job = std::move(job);
  request.tenant = tenant_;
  absl::StatusOr<CompileJobId> id = runner_->Submit(std::move(request), done);
  if (!id.ok()) return done(FailedOutcome(id.status()));
  bool cancel;
  {
    base::MutexLock lock(&mutex_);
    jobs_.push_back(*id);
    cancel = cancelled_;
  }
  if (cancel) runner_->Cancel(*id);
}

void JobSet::Cancel() {
  std::vector<CompileJobId> jobs;
  {
    base::MutexLock lock(&mutex_);
    cancelled_ = true;
    jobs = jobs_;
  }
  for (CompileJobId job : jobs) runner_->Cancel(job);  // those that have ended are unknown there
}

absl::Status JobSet::status() const {
  base::MutexLock lock(&mutex_);
  return cancelled_ ? absl::CancelledError("cancelled by the caller") : absl::OkStatus();
}

}  // namespace fusiond::server
