// A JobRunner whose jobs a test answers, by hand or through a function.
//
// Thread-safety: thread-safe.
#ifndef FUSIOND_TESTS_SERVER_FAKE_RUNNER_H_
#define FUSIOND_TESTS_SERVER_FAKE_RUNNER_H_

#include <deque>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "runtime/base/check.h"
#include "runtime/base/mutex.h"
#include "server/engine/job_runner.h"
#include "server/engine/plan_job.h"

namespace fusiond::testing {

class FakeRunner : public server::JobRunner {
 public:
  struct Job {
    server::CompileJobId id = 0;
    server::CompileRequest request;
    server::CompileCallback done;

    bool plan() const { return request.job.has_plan(); }
  };

  absl::StatusOr<server::CompileJobId> Submit(server::CompileRequest request,
                                              server::CompileCallback done) override {
    base::MutexLock lock(&mutex_);
    if (!refusal_.ok()) return refusal_;
    request.job.has_plan() ? ++plans_ : ++images_;
    jobs_.push_back({++last_id_, std::move(request), std::move(done)});
    changed_.SignalAll();
    return last_id_;
  }
  // A job that nobody has taken ends at once; one that was taken is only noted.
  void Cancel(server::CompileJobId id) override {
    server::CompileCallback done;
    {
      base::MutexLock lock(&mutex_);
      cancelled_.push_back(id);
      for (auto job = jobs_.begin(); job != jobs_.end(); ++job) {
        if (job->id != id) continue;
        done = std::move(job->done);
        jobs_.erase(job);
        break;
      }
      changed_.SignalAll();
    }
    if (done) done(server::FailedOutcome(absl::CancelledError("compile job cancelled")));
  }
  void Raise(server::CompileJobId id) override {
    base::MutexLock lock(&mutex_);
    raised_.push_back(id);
    changed_.SignalAll();
  }

  // The next job, as soon as there is one.
  Job Take() {
    base::MutexLock lock(&mutex_);
    while (jobs_.empty()) WaitForChange();
    Job job = std::move(jobs_.front());
    jobs_.pop_front();
    return job;
  }
  std::vector<server::CompileJobId> WaitForCancelled(size_t count) {
    base::MutexLock lock(&mutex_);
    while (cancelled_.size() < count) WaitForChange();
    return cancelled_;
  }
  std::vector<server::CompileJobId> WaitForRaised(size_t count) {
    base::MutexLock lock(&mutex_);
    while (raised_.size() < count) WaitForChange();
    return raised_;
  }
  void Refuse(absl::Status with) {
    base::MutexLock lock(&mutex_);
    refusal_ = std::move(with);
  }
  int plans() const {
    base::MutexLock lock(&mutex_);
    return plans_;
  }
  int images() const {
    base::MutexLock lock(&mutex_);
    return images_;
  }

  // What the real process would answer to a PLAN job, with `mark` behind every source.
  static server::CompileOutcome Planned(const Job& job, const std::string& mark = "") {
    absl::StatusOr<internal::v1::PlanResult> result = server::RunPlanJob(job.request.job.plan());
    if (!result.ok()) return server::FailedOutcome(result.status());
    for (internal::v1::KernelSource& source : *result->mutable_sources())
      source.mutable_text()->append(mark);
    server::CompileOutcome outcome;
    *outcome.reply.mutable_plan() = *std::move(result);
    return outcome;
  }
  // A cubin that says which source it was made of.
  static server::CompileOutcome Compiled(const Job& job, bool spills = false) {
    server::CompileOutcome outcome;
    internal::v1::ImageResult& image = *outcome.reply.mutable_image();
    image.set_cubin(absl::StrCat("cubin of ", job.request.job.image().name(), " ",
                                 job.request.job.image().source().size()));
    image.set_compile_ns(1000);
    image.add_entries()->set_spill_store_bytes(spills ? 8 : 0);
    return outcome;
  }
  // Answers jobs as a well-behaved pool would, until one of `count` image jobs is done.
  void ServeOne() {
    Job job = Take();
    job.done(job.plan() ? Planned(job) : Compiled(job));
  }

 private:
  // Waiting in vain ends this test, and says which it is, before ctest ends them all.
  void WaitForChange() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    FUSIOND_CHECK(!changed_.WaitWithTimeout(&mutex_, absl::Minutes(2)));
  }

  mutable base::Mutex mutex_;
  base::CondVar changed_;
  absl::Status refusal_ ABSL_GUARDED_BY(mutex_);
  server::CompileJobId last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  std::deque<Job> jobs_ ABSL_GUARDED_BY(mutex_);
  std::vector<server::CompileJobId> cancelled_ ABSL_GUARDED_BY(mutex_);
  std::vector<server::CompileJobId> raised_ ABSL_GUARDED_BY(mutex_);
  int plans_ ABSL_GUARDED_BY(mutex_) = 0;
  int images_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace fusiond::testing

#endif  // FUSIOND_TESTS_SERVER_FAKE_RUNNER_H_
