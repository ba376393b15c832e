// What a schedule keeps on the chip from its one read, or from one row, to its last use: for people
// who ask where registers and shared memory went.
//
// Thread-safety: pure function.
#ifndef FUSIOND_COMPILER_SCHEDULE_HELD_H_
#define FUSIOND_COMPILER_SCHEDULE_HELD_H_

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/schedule/kernel_schedule.h"
#include "compiler/schedule/region.h"

namespace fusiond::schedule {

struct HeldBuffer {
  std::string what;     // "input 0", "%7", "column sum of %9", "ring of 3 stages for input 0"
  bool shared = false;  // in shared memory; else in registers
  int64_t bytes = 0;    // of a CTA's shared memory, of a thread's registers
};

// Without what every kernel has: indices, the vectors of one step, what threads send each other.
std::vector<HeldBuffer> HeldBuffers(const Region& region, const KernelSchedule& schedule);

// "input 0", "output 1", "workspace 2".
std::string NameOf(const Place& place);

}  // namespace fusiond::schedule

#endif  // FUSIOND_COMPILER_SCHEDULE_HELD_H_
