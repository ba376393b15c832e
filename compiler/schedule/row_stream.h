// RowStream: row reductions whose row is too long to be held, or needs more than one CTA.
//
// CTAs walk a row in steps of `threads` · `unroll` vectors, once for each dependent pass of
// reductions, and read it anew each time (from L2 where it fits). A row belongs to one CTA, or,
// where rows are few and long, to `splits` CTAs that take its steps in turn: then each pass is a
// kernel, CTAs leave a partial result of each reduction in memory, and whoever needs it combines
// these, all in the same order. What depends on the last reductions alone is a kernel of one warp a
// row.
//
// A sum that depends on the row's mean or maximum is taken in one pass with it (online.h):
// LayerNorm and softmax read their row twice, not three times.
//
// Takes: every region with row reductions and without column reductions, unless its accumulators
// exceed the registers of a thread, or so much is computed again in later passes that storing it is
// cheaper. Full reductions are one row.
#ifndef FUSIOND_COMPILER_SCHEDULE_ROW_STREAM_H_
#define FUSIOND_COMPILER_SCHEDULE_ROW_STREAM_H_

#include <vector>

#include "compiler/schedule/scheduler.h"
#include "compiler/schedule/stages.h"

namespace fusiond::schedule {

const Scheduler& RowStreamScheduler();

// Accumulators of each reduction of `pass` in a thread, a power of two, at most `vector`.
int RowStreamChains(const Region& region, const Pass& pass, int vector);

// What one kernel of a split row does.
struct RowStreamStep {
  // `pass` alone is filled: its rows hold all row values that the kernel needs, of earlier stages
  // too. The last kernel has the row stores.
  Stages stages;
  size_t pass = 0;
  bool walks = false;              // over the columns
  std::vector<uint32_t> incoming;  // reductions of earlier kernels that it needs
  std::vector<bool> needed;        // by instr: what it computes or loads
};
// Requires: a region from WithOnlineReductions, as for RowStreamChains.
std::vector<RowStreamStep> SplitRowStream(const Region& region);

}  // namespace fusiond::schedule

#endif  // FUSIOND_COMPILER_SCHEDULE_ROW_STREAM_H_
