// HangWatch: notices from a thread of its own that a loop does not come back from the driver.
//
// The loop declares a hung device lost by itself, unless it is inside the driver: a full launch
// queue, memory that is cleared or freed, a module that is loaded may all wait for the device.
//
// Thread-safety: Expect from any one thread. Ownership: `on_stuck` is called once at most, on the
// watch's thread; the destructor waits for it.
#ifndef FUSIOND_RUNTIME_WORKER_HANG_WATCH_H_
#define FUSIOND_RUNTIME_WORKER_HANG_WATCH_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "runtime/base/mutex.h"

namespace fusiond::worker {

class HangWatch {
 public:
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

  // on_stuck(): `grace` or more has passed since the expected time. Found out within twice `grace`.
  HangWatch(absl::Duration grace, std::function<void()> on_stuck)
      : grace_(grace), on_stuck_(std::move(on_stuck)) {}
  ~HangWatch();
  HangWatch(const HangWatch&) = delete;
  HangWatch& operator=(const HangWatch&) = delete;

  // Begins to watch. RESOURCE_EXHAUSTED: no thread could be started.
  absl::Status Start();
  // By when (CLOCK_MONOTONIC nanoseconds) the caller expects to have called this again. Cost: a
  // store.
  void Expect(int64_t by_ns) { by_ns_.store(by_ns, std::memory_order_relaxed); }
  int64_t expected_ns() const { return by_ns_.load(std::memory_order_relaxed); }

 private:
  void Run();

  const absl::Duration grace_;
  const std::function<void()> on_stuck_;
  std::atomic<int64_t> by_ns_{kNever};  // stands alone: nothing is published with it
  base::Mutex mutex_;
  base::CondVar changed_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace fusiond::worker

#endif  // FUSIOND_RUNTIME_WORKER_HANG_WATCH_H_
