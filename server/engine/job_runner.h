// Where the engine sends compile jobs: the pool of compile processes, or a fake in tests.
#ifndef FUSIOND_SERVER_ENGINE_JOB_RUNNER_H_
#define FUSIOND_SERVER_ENGINE_JOB_RUNNER_H_

#include <utility>

#include "absl/status/statusor.h"
#include "server/pool/compile_pool.h"
#include "server/pool/job.h"

namespace fusiond::server {

// Thread-safe. All as CompilePool's.
class JobRunner {
 public:
  virtual ~JobRunner() = default;
  virtual absl::StatusOr<CompileJobId> Submit(CompileRequest request, CompileCallback done) = 0;
  virtual void Cancel(CompileJobId id) = 0;
  virtual void Raise(CompileJobId id) = 0;
};

class PoolJobRunner : public JobRunner {
 public:
  // `pool` must outlive this.
  explicit PoolJobRunner(CompilePool* pool) : pool_(pool) {}
  absl::StatusOr<CompileJobId> Submit(CompileRequest request, CompileCallback done) override {
    return pool_->Submit(std::move(request), std::move(done));
  }
  void Cancel(CompileJobId id) override { pool_->Cancel(id); }
  void Raise(CompileJobId id) override { pool_->Raise(id); }

 private:
  CompilePool* const pool_;
};

}  // namespace fusiond::server

#endif  // FUSIOND_SERVER_ENGINE_JOB_RUNNER_H_
