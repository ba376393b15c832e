// What an op costs, roughly: for deciding what is worth computing twice.
#ifndef FUSIOND_COMPILER_SCHEDULE_COST_H_
#define FUSIOND_COMPILER_SCHEDULE_COST_H_

#include "compiler/ir/graph.h"

namespace fusiond::schedule {

// Issue slots of one element in f32. Cheap: ≤ 4. erf and tanh take 20-30 in accurate form, IEEE
// division and square root an order of magnitude more than a multiply (counted in SASS); the rest
// are estimates of the same coarseness.
int IssueSlots(ir::Op op);
inline constexpr int kCheapSlots = 4;

// Moves or renames elements and computes nothing.
bool IsView(ir::Op op);
// Takes elements from other places than a frame tells (ir class kMap but permute): it reads memory
// at indices that it computes.
bool IsMap(ir::Op op);

}  // namespace fusiond::schedule

#endif  // FUSIOND_COMPILER_SCHEDULE_COST_H_
