// Transpose: regions without reductions in which tensors run along different dims. A CTA takes a
// tile of two dims: the innermost, `a`, and the one along which the others run, `b`. What runs
// along b passes through shared memory, so that both sides move in whole vectors.
//
// Takes: regions with a load or store that varies along both and is contiguous along b only. What
// runs along a third dim is gathered element by element.
#ifndef FUSIOND_COMPILER_SCHEDULE_TRANSPOSE_H_
#define FUSIOND_COMPILER_SCHEDULE_TRANSPOSE_H_

#include <cstdint>
#include <vector>

#include "compiler/schedule/scheduler.h"

namespace fusiond::schedule {

// Of a region and a schedule: threads_per_row threads of `vector` elements lie along a,
// rows_per_cta elements along b.
struct TransposeTile {
  struct Part {
    uint32_t index = 0;  // of the load's instr, or of the store
    int64_t offset = 0;  // bytes in shared memory
    int64_t pitch = 0;   // elements from one along a to the next
  };

  int a = 0, b = 0;                    // dims
  int64_t a_extent = 1, b_extent = 1;  // of the tile
  int b_vector = 1;                    // elements side by side along b
  std::vector<Part> loads, stores;
  int64_t bytes = 0;  // of shared memory
};
TransposeTile LayOutTranspose(const Region& region, const KernelSchedule& schedule);

const Scheduler& TransposeScheduler();

}  // namespace fusiond::schedule

#endif  // FUSIOND_COMPILER_SCHEDULE_TRANSPOSE_H_
