#include "runtime/worker/hang_watch.h"

#include "runtime/base/clock.h"
#include "runtime/base/status_macros.h"
#include "runtime/base/thread.h"

namespace fusiond::worker {

absl::Status HangWatch::Start() {
  FUSIOND_ASSIGN_OR_RETURN(thread_, base::StartThread([this] { Run(); }));
  return absl::OkStatus();
}

HangWatch::~HangWatch() {
  {
    base::MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.Signal();
  }
  if (thread_.joinable()) thread_.join();
}

void HangWatch::Run() {
  {
    base::MutexLock lock(&mutex_);
    while (true) {
      if (stopping_) return;
      const int64_t by_ns = by_ns_.load(std::memory_order_relaxed);
      if (by_ns != kNever && base::Clock::System().Now() - grace_ > absl::Nanoseconds(by_ns)) break;
      changed_.WaitWithTimeout(&mutex_, grace_);
    }
  }
  on_stuck_();
}

}  // namespace fusiond::worker
