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

const Clock& Clock::System() {
  static const SystemClock clock;
  return clock;
}

}  // namespace fusiond::base
