// How long a side looks at shared memory before it sleeps.
//
// Thread-safety: thread-safe.
#ifndef FUSIOND_RUNTIME_CHANNEL_SPIN_H_
#define FUSIOND_RUNTIME_CHANNEL_SPIN_H_

#include "absl/time/time.h"

namespace fusiond::channel {

// Tells the processor that this is a waiting loop.
inline void CpuRelax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// 50 us; zero when this process may use one or two processors only: there a spinning side takes the
// time that the other needs to answer.
absl::Duration DefaultSpinBudget();

}  // namespace fusiond::channel

#endif  // FUSIOND_RUNTIME_CHANNEL_SPIN_H_
