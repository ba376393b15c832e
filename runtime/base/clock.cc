#include "runtime/base/clock.h"

#include <ctime>

namespace fusiond::base {
namespace {

class SystemClock : public Clock {
 public:
  absl::Duration Now() const override {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return absl::DurationFromTimespec(now);
  }
};

}  // namespace

int64_t MonotonicNanos() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

const Clock& Clock::System() {
  static const SystemClock clock;
  return clock;
}

}  // namespace fusiond::base
