// CompileWork: one compile that leads its flight, from PLAN job to committed executable.
//
// Its steps run one after another on the executor; image jobs, which end in any order, are what the
// mutex is for. It holds itself alive through the callbacks it has given out, and ends by finishing
// its lead exactly once.
//
// Thread-safety: thread-safe. Ownership: shared; the parts it uses outlive it.
#ifndef FUSIOND_SERVER_ENGINE_COMPILE_WORK_H_
#define FUSIOND_SERVER_ENGINE_COMPILE_WORK_H_

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/base/mutex.h"
#include "runtime/executable/executable.h"
#include "server/cache/cache.h"
#include "server/cache/single_flight.h"
#include "server/engine/answer.h"
#include "server/engine/crash_counter.h"
#include "server/engine/executor.h"
#include "server/engine/job_runner.h"
#include "server/engine/request.h"

namespace fusiond::server {

using CompileFlight = cache::SingleFlight<cache::RequestKey, CompileAnswer>;

// The engine's, for its works.
struct CompileParts {
  int max_attempts = 1;  // plans of one request
  cache::Cache* cache = nullptr;
  JobRunner* runner = nullptr;
  Executor* executor = nullptr;
  CrashCounter* crashes = nullptr;
  std::atomic<uint64_t>* fallbacks = nullptr;
};

class CompileWork : public std::enable_shared_from_this<CompileWork> {
 public:
  CompileWork(const CompileParts& parts, std::shared_ptr<const PreparedRequest> request,
              std::string tenant, CompilePriority priority, CompileFlight::Lead lead);

  void Start();
  // Somebody waits now for what was begun at low priority.
  void Raise() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Image {
    std::string cubin;
    bool compiled = false;  // by this work, so that it is to be committed
    bool spills = false;
  };

  void LookAgainThenPlan();
  void Plan();
  void Planned(const CompileOutcome& outcome);
  absl::Status TakePlan(const internal::v1::PlanResult& plan);
  bool UseCanonical();
  void StartImages();
  void ImageDone(const cache::ImageKey& key, CompileOutcome outcome) ABSL_LOCKS_EXCLUDED(mutex_);
  void ImagesDone(bool any_new) ABSL_LOCKS_EXCLUDED(mutex_);
  void Assemble();
  cache::RequestBinding Binding(const executable::Executable& executable) const;
  void Submit(internal::v1::CompileJob job, CompileCallback done) ABSL_LOCKS_EXCLUDED(mutex_);
  void Abandon() ABSL_LOCKS_EXCLUDED(mutex_);
  void CancelJobs() ABSL_LOCKS_EXCLUDED(mutex_);
  void Fail(const CompileOutcome& outcome);
  void Finish(const absl::StatusOr<CompileAnswer>& result) { lead_.Finish(result); }

  const CompileParts parts_;
  const std::shared_ptr<const PreparedRequest> request_;
  const std::string tenant_;
  CompileFlight::Lead lead_;

  // Used by one step at a time.
  int attempt_ = 0;
  internal::v1::PlanResult plan_;
  executable::Executable skeleton_;
  cache::KeyMaterial canonical_;
  std::vector<cache::ImageKeyMaterial> materials_;  // one a source of the plan

  base::Mutex mutex_;
  CompilePriority priority_ ABSL_GUARDED_BY(mutex_);
  bool abandoned_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<CompileJobId> jobs_ ABSL_GUARDED_BY(mutex_);
  size_t images_left_ ABSL_GUARDED_BY(mutex_) = 0;
  std::unique_ptr<CompileOutcome> image_failure_ ABSL_GUARDED_BY(mutex_);
  // Of this plan and of those before it, which may share some.
  absl::flat_hash_map<cache::ImageKey, Image> images_ ABSL_GUARDED_BY(mutex_);
  CompileAnswer answer_;  // its figures of NVRTC: under the mutex while images are compiled
};

}  // namespace fusiond::server

#endif  // FUSIOND_SERVER_ENGINE_COMPILE_WORK_H_
