// Heartbeat: whether a loop still turns. The loop beats once a turn; whoever wants to know wakes it
// and waits for a beat that is newer.
//
// Thread-safety: thread-safe.
#ifndef FUSIOND_SERVER_PROCESS_HEARTBEAT_H_
#define FUSIOND_SERVER_PROCESS_HEARTBEAT_H_

#include <cstdint>

#include "absl/time/time.h"
#include "runtime/base/clock.h"
#include "runtime/base/mutex.h"

namespace fusiond::server {

class Heartbeat {
 public:
  void Beat() {
    base::MutexLock lock(&mutex_);
    ++beats_;
    beaten_.SignalAll();
  }
  uint64_t beats() const {
    base::MutexLock lock(&mutex_);
    return beats_;
  }
  // True once beats() passes `before`.
  bool WaitPast(uint64_t before, absl::Duration timeout) const {
    const absl::Duration deadline = base::Clock::System().Now() + timeout;
    base::MutexLock lock(&mutex_);
    while (beats_ <= before) {
      const absl::Duration left = deadline - base::Clock::System().Now();
      if (left <= absl::ZeroDuration()) return false;
      beaten_.WaitWithTimeout(&mutex_, left);
    }
    return true;
  }

 private:
  mutable base::Mutex mutex_;
  mutable base::CondVar beaten_;
  uint64_t beats_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace fusiond::server

#endif  // FUSIOND_SERVER_PROCESS_HEARTBEAT_H_
