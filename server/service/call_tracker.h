// CallTracker: how many calls run, so that a drain ends as soon as the last one has, and long
// streams learn of it.
//
// grpc::Server::Shutdown waits its whole deadline for any open stream, so calls are counted here
// instead.
//
// Thread-safety: thread-safe.
#ifndef FUSIOND_SERVER_SERVICE_CALL_TRACKER_H_
#define FUSIOND_SERVER_SERVICE_CALL_TRACKER_H_

#include "absl/time/time.h"
#include "runtime/base/clock.h"
#include "runtime/base/mutex.h"

namespace fusiond::server {

class CallTracker {
 public:
  void Begin() {
    base::MutexLock lock(&mutex_);
    ++active_;
  }
  void End() {
    base::MutexLock lock(&mutex_);
    if (--active_ == 0) idle_.SignalAll();
  }
  int active() const {
    base::MutexLock lock(&mutex_);
    return active_;
  }
  // True when no call runs any more within `timeout`.
  bool WaitUntilIdle(absl::Duration timeout) {
    const absl::Duration deadline = base::Clock::System().Now() + timeout;
    base::MutexLock lock(&mutex_);
    while (active_ > 0) {
      const absl::Duration left = deadline - base::Clock::System().Now();
      if (left <= absl::ZeroDuration()) return false;
      idle_.WaitWithTimeout(&mutex_, left);
    }
    return true;
  }

 private:
  mutable base::Mutex mutex_;
  base::CondVar idle_;
  int active_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace fusiond::server

#endif  // FUSIOND_SERVER_SERVICE_CALL_TRACKER_H_
