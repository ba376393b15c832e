#include "runtime/channel/spin.h"

#include <sched.h>

namespace fusiond::channel {

absl::Duration DefaultSpinBudget() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  // With more than 1024 processors the call fails; there are enough of them then.
  if (::sched_getaffinity(0, sizeof(allowed), &allowed) == 0 && CPU_COUNT(&allowed) <= 2) {
    return absl::ZeroDuration();
  }
  return absl::Microseconds(50);
}

}  // namespace fusiond::channel
