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

// By instr: whether it is computed before the grid ends, for a late reduction or for a store on the
// way. Late instrs are not.
std::vector<bool> ComputedBefore(const Region& region);

// `region`'s tensors first, then one a late reduction, in order: its parts, each dense over the
// kept dims. Rows are the parts. Requires: late reductions.
Region FinaliseRegion(const Region& region, int64_t parts);

// The schedule of a region from FinaliseRegion.
KernelSchedule FinaliseSchedule(const Region& region);

}  // namespace fusiond::schedule

#endif  // FUSIOND_COMPILER_SCHEDULE_FINALISE_H_
