// Column: reductions over rows of memory that keep the columns: bias gradients, sums over a batch,
// statistics of batch norm over NHWC.
//
// A CTA takes a tile of columns and walks the rows; `threads_per_row` threads lie along the columns
// with `vector` of them each, the others along the rows, `unroll` rows on the way at once. They
// meet in shared memory in a fixed order. Where tiles alone do not fill the device the rows are cut
// into `splits` parts and a finalise kernel (finalise.h) adds these up.
//
// Takes: any number of column reductions with what they are computed from, elementwise results on
// the way, and an epilogue. Does not take: row reductions.
#ifndef FUSIOND_COMPILER_SCHEDULE_COLUMN_H_
#define FUSIOND_COMPILER_SCHEDULE_COLUMN_H_

#include "compiler/schedule/scheduler.h"

namespace fusiond::schedule {

const Scheduler& ColumnScheduler();

// A schedule without splits with about `threads` threads, fewer where partial results of that many
// would not fit in shared memory. `tile_threads`: that lie along the columns, a power of two.
KernelSchedule ColumnSchedule(const Region& region, int threads, int vector, int tile_threads);

// Where the partial results of reduction `index` (of LateReductions' order) begin in shared memory;
// for index = their number, the bytes of all.
int64_t ColumnSharedOffset(const Region& region, const KernelSchedule& schedule, size_t index);

}  // namespace fusiond::schedule

#endif  // FUSIOND_COMPILER_SCHEDULE_COLUMN_H_
