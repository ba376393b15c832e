// RowColumn: row reductions and column reductions over the same data: norm backward, and whatever
// else needs statistics of its rows while it sums its columns.
//
// A persistent CTA an SM; its threads form teams, a row a team, so that one team's barrier is
// hidden by the others. Rows come through a ring of shared memory that each team has to itself:
// bulk copies that an mbarrier awaits (sm_90 and later), copies by every thread for itself (below),
// or, where rows do not allow either, straight into registers. Tensors are read once and stay
// packed in registers from the first pass to the last; column sums stay there for all rows of the
// CTA, and a finalise kernel (finalise.h) adds the CTAs'. Figures: README, "row and column".
//
// Long rows are cut over a cluster of CTAs (sm_90 and later): each takes a run of columns, and the
// warps of all send each other their parts of a row's reductions. That takes about as long as the
// row itself, so the next row's reductions are under way before a row is finished.
//
// Takes: any number of row and column reductions, with several dependent steps. Does not take: rows
// whose tensors and column sums do not fit the registers of a cluster, few long rows.
#ifndef FUSIOND_COMPILER_SCHEDULE_ROW_COLUMN_H_
#define FUSIOND_COMPILER_SCHEDULE_ROW_COLUMN_H_

#include <cstdint>
#include <vector>

#include "compiler/schedule/scheduler.h"
#include "compiler/schedule/stages.h"

namespace fusiond::schedule {

const Scheduler& RowColumnScheduler();

// Elements are computed again in a later pass up to this many issue slots; dearer ones are held.
inline constexpr int kRowColumnMaxAgain = 8;
// In a cluster, where two rows are under way, nothing is held.
inline constexpr int kRowColumnMaxAgainInCluster = 1 << 20;
// Rows whose partial reductions a CTA of a cluster has room for: a warp may send those of row i
// while another still reads those of row i - 3.
inline constexpr int kClusterSlots = 4;
// Stages of a cluster's ring that hold rows under way when one is refilled: row i in its first
// pass, row i - 1 in the others, row i - 2 where a warp lags behind.
inline constexpr int kClusterStagesInUse = 3;

// Where the element loads of a schedule's kernel come from, and its shared memory. Bytes.
struct RowColumnLayout {
  struct Part {
    uint32_t instr = 0;
    int64_t offset = 0;  // in a stage, or of the CTA
  };
  std::vector<Part> ring;            // vary by row; through the ring
  std::vector<uint32_t> direct;      // vary by row; from global memory to registers
  std::vector<Part> shared_columns;  // the same for all rows; in shared memory
  std::vector<uint32_t> columns;     // the same for all rows; in registers
  int64_t columns_of_cta = 0;        // at most; of a cluster each CTA but the last has as many
  int64_t stage_bytes = 0;           // of one row
  int64_t empty = 0;                 // where the barriers of a cluster's stages begin that are read
  int64_t meetings = 0;              // and those of its row reductions
  int64_t slots = 0;                 // where partial row reductions begin; barriers lie before
  int64_t arena = 0;                 // where rings begin; column sums meet there afterwards
  int64_t arena_bytes = 0;
  int64_t bytes() const { return arena + arena_bytes; }
};
RowColumnLayout LayOutRowColumn(const Region& region, const Stages& stages,
                                const KernelSchedule& schedule);

}  // namespace fusiond::schedule

#endif  // FUSIOND_COMPILER_SCHEDULE_ROW_COLUMN_H_
