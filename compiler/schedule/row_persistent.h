// RowPersistent: row reductions whose row stays in registers from its one read to its last use:
// norms, softmax and their backwards without column sums, plain sums of short rows.
//
// A team of threads shares a row: part of a warp, a warp, a CTA, or, where a row would take too
// many registers of those, a cluster of CTAs that each take a run of columns (sm_90 and later).
// Each thread holds `unroll` vectors of `vector` columns of every tensor, team-strided.
//
// Takes: row reductions of any number of dependent steps. Does not take: column reductions, rows
// whose tensors do not fit those registers (row_stream), few long rows.
#ifndef FUSIOND_COMPILER_SCHEDULE_ROW_PERSISTENT_H_
#define FUSIOND_COMPILER_SCHEDULE_ROW_PERSISTENT_H_

#include "compiler/schedule/scheduler.h"

namespace fusiond::schedule {

const Scheduler& RowPersistentScheduler();

// Elements are computed again in a later pass up to this many issue slots; dearer ones are held.
inline constexpr int kRowPersistentMaxAgain = 8;

// How vectors lie in a row.
struct RowShape {
  int vector = 1;
  // Tensors that vary along rows and columns all keep their phase: the element where a row begins,
  // modulo `vector`, is the same for each of them, so that aligned vectors are cut at both ends of
  // a row. Else no vector leaves the innermost dim.
  bool shifted = false;
};
RowShape ShapeOfRows(const Region& region);

// Of a schedule with clusters: every CTA's but the last one's.
int64_t RowPersistentColumnsOfCta(const Region& region, const KernelSchedule& schedule);

}  // namespace fusiond::schedule

#endif  // FUSIOND_COMPILER_SCHEDULE_ROW_PERSISTENT_H_
