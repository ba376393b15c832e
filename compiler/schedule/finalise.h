// Finalise: the second step of reductions that many CTAs share, as a region of its own.
//
// Each CTA leaves one partial result of every late reduction, in a buffer [parts, kept dims] a
// reduction. What is left to do is a column reduction over the parts, then the epilogue: a region
// like any other, which the Column emitter writes.
//
// Thread-safety: pure functions.
#ifndef FUSIOND_COMPILER_SCHEDULE_FINALISE_H_
#define FUSIOND_COMPILER_SCHEDULE_FINALISE_H_

#include <cstdint>
#include <vector>

#include "compiler/schedule/kernel_schedule.h"
#include "compiler/schedule/region.h"

namespace fusiond::schedule {

// Reductions that are complete only when the grid has ended, by instr.
std::vector<uint32_t> LateReductions(const Region& region);

// How a part lies in its buffer: the kept dims, outer to inner, possibly cut into factors, so that
// a kernel may write its registers in whatever order suits it. Dense in the kept dims' own order
// when `factors` is empty.
struct PartLayout {
  struct Factor {
    int64_t extent = 1;
    int64_t stride = 0;  // elements
  };
  std::vector<Factor> factors;  // only for one kept dim, whose extent their product is
  int64_t elements = 0;         // of a part, gaps included; 0: dense
};

// `region`'s tensors first, then one a late reduction, in order. Rows are the parts. Requires: late
// reductions.
Region FinaliseRegion(const Region& region, int64_t parts, const PartLayout& layout = {});

// The schedule of a region from FinaliseRegion.
KernelSchedule FinaliseSchedule(const Region& region);

}  // namespace fusiond::schedule

#endif  // FUSIOND_COMPILER_SCHEDULE_FINALISE_H_
