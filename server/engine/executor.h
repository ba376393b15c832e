// Executor: a few threads for work that may read the disk or takes milliseconds, so that neither
// the pool's thread nor gRPC's ever waits for it.
//
// Thread-safety: thread-safe. Ownership: the destructor runs what is queued and joins.
#ifndef FUSIOND_SERVER_ENGINE_EXECUTOR_H_
#define FUSIOND_SERVER_ENGINE_EXECUTOR_H_

#include <deque>
#include <thread>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "runtime/base/mutex.h"

namespace fusiond::server {

class Executor {
 public:
  explicit Executor(int threads);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  void Run(absl::AnyInvocable<void()> work) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Loop();

  base::Mutex mutex_;
  base::CondVar changed_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<absl::AnyInvocable<void()>> queue_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_;
};

}  // namespace fusiond::server

#endif  // FUSIOND_SERVER_ENGINE_EXECUTOR_H_
