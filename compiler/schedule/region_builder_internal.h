// Steps of BuildRegion after the instrs stand: each leaves the region meaning the same.
#ifndef FUSIOND_COMPILER_SCHEDULE_REGION_BUILDER_INTERNAL_H_
#define FUSIOND_COMPILER_SCHEDULE_REGION_BUILDER_INTERNAL_H_

#include "absl/types/span.h"
#include "compiler/schedule/region.h"

namespace fusiond::schedule {

// A store rounds by itself: one of a cast stores the cast's operand.
void StoreUnrounded(Region& region);
// Instrs that no store needs go, with tensors and scalars that no instr names then.
void DropUnused(Region& region);
// Makes dims of the axes, rows first, each group as the heaviest tensors lie in memory, and
// reorders the strides of every access.
void OrderDims(absl::Span<const Axis> axes, Region& region);
// Merges neighbours of one group that every access runs through as one.
void MergeDims(Region& region);
// Fills dims, value_class, stage and late of every instr.
void Classify(Region& region);

}  // namespace fusiond::schedule

#endif  // FUSIOND_COMPILER_SCHEDULE_REGION_BUILDER_INTERNAL_H_
