// Monotonic time. Every timeout, deadline and expiry reads this and never the wall clock, which may
// jump.
//
// Thread-safety: Clock implementations are thread-safe.
#ifndef FUSIOND_RUNTIME_BASE_CLOCK_H_
#define FUSIOND_RUNTIME_BASE_CLOCK_H_

#include <cstdint>

#include "absl/time/time.h"

namespace fusiond::base {

// CLOCK_MONOTONIC in nanoseconds: what Clock::System() reads, for hot paths and shared memory.
int64_t MonotonicNanos();

class Clock {
 public:
  virtual ~Clock() = default;
  // Time since an arbitrary fixed point of this boot (CLOCK_MONOTONIC).
  virtual absl::Duration Now() const = 0;

  // The system's clock; lives for ever.
  static const Clock& System();
};

}  // namespace fusiond::base

#endif  // FUSIOND_RUNTIME_BASE_CLOCK_H_
