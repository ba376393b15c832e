// CallTracker: how many calls run, so that a drain ends as soon as the last one has; and how many
// have.
//
// grpc::Server::Shutdown waits its whole deadline for any open stream, so calls are counted here
// instead.
//
// Thread-safety: thread-safe.
#ifndef FUSIOND_SERVER_SERVICE_CALL_TRACKER_H_
#define FUSIOND_SERVER_SERVICE_CALL_TRACKER_H_

#include <cstdint>

#include "absl/time/time.h"
#include "runtime/base/clock.h"
#include "runtime/base/mutex.h"

namespace fusiond::server {

class CallTracker {
 public:
  void Begin() {
    base::MutexLock lock(&mutex_);
    ++counts_.active;
  }
  void End(bool ok) {
    base::MutexLock lock(&mutex_);
    ++counts_.ended;
    if (!ok) ++counts_.failed;
    if (--counts_.active == 0) idle_.SignalAll();
  }
  struct Counts {
    int active = 0;
    uint64_t ended = 0;
    uint64_t failed = 0;  // of these
  };
  Counts counts() const {
    base::MutexLock lock(&mutex_);
    return counts_;
  }
  // True when no call runs any more within `timeout`.
  bool WaitUntilIdle(absl::Duration timeout) {
    const absl::Duration deadline = base::Clock::System().Now() + timeout;
    base::MutexLock lock(&mutex_);
    while (counts_.active > 0) {
      const absl::Duration left = deadline - base::Clock::System().Now();
      if (left <= absl::ZeroDuration()) return false;
      idle_.WaitWithTimeout(&mutex_, left);
    }
    return true;
  }

 private:
  mutable base::Mutex mutex_;
  base::CondVar idle_;
  Counts counts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fusiond::server

#endif  // FUSIOND_SERVER_SERVICE_CALL_TRACKER_H_
