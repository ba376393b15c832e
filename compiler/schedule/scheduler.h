// What a kernel scheduler is: three pure functions over a region and a device.
//
// A scheduler stands in a file pair of its own (pointwise.h, …) and in the table of candidates.cc;
// its emitter stands in compiler/codegen. README.md says how to add one.
//
// Thread-safety: pure functions.
#ifndef FUSIOND_COMPILER_SCHEDULE_SCHEDULER_H_
#define FUSIOND_COMPILER_SCHEDULE_SCHEDULER_H_

#include <string>
#include <vector>

#include "compiler/schedule/kernel_schedule.h"
#include "compiler/schedule/region.h"
#include "runtime/executable/device_info.h"

namespace fusiond::schedule {

struct Cost {
  int64_t dram_bytes = 0;  // read and written, each tensor once a pass
  int kernels = 1;
  double microseconds = 0;
};

struct Scheduler {
  SchedulerId id;
  // Empty when the scheduler takes the region; else why not, in words.
  std::string (*applies)(const Region&, const executable::DeviceInfo&);
  // Schedules to try, the rule's own first; the others are for spill reports. Never empty for a
  // region that applies.
  std::vector<KernelSchedule> (*propose)(const Region&, const executable::DeviceInfo&);
  Cost (*estimate)(const Region&, const KernelSchedule&, const executable::DeviceInfo&);
};

}  // namespace fusiond::schedule

#endif  // FUSIOND_COMPILER_SCHEDULE_SCHEDULER_H_
