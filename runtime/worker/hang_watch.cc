#include "runtime/worker/hang_watch.h"

#include <utility>

#include "runtime/base/clock.h"

namespace fusiond::worker {

HangWatch::HangWatch(absl::Duration grace, std::function<void()> on_stuck)
    : grace_(grace), on_stuck_(std::move(on_stuck)), thread_([this] { Run(); }) {}

HangWatch::~HangWatch() {
  {
    base::MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.Signal();
  }
  thread_.join();
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
