// Online reductions: two dependent reductions of a row in one pass over it.
//
// The squares around a mean, and the exponentials below a maximum, take two passes: the second
// reads the row again. Where the row is not held that costs more than it gives, so both pairs are
// recognised and the dependent sum becomes a reduction of its own, whose partial results carry what
// it needs of the other one. It is about as exact, for squares more so.
//
// Thread-safety: pure functions.
#ifndef FUSIOND_COMPILER_SCHEDULE_ONLINE_H_
#define FUSIOND_COMPILER_SCHEDULE_ONLINE_H_

#include "compiler/schedule/region.h"

namespace fusiond::schedule {

// In place of
//   sum((x - m)²)    with m = sum(x) / n   a kReduce of x with op kVar,
//   sum(exp(x - m))  with m = max(x)       a kReduce of x with op kExp,
// which stand for just that and depend on no other reduction. Other uses of m and x - m stay.
// Requires: no column reductions.
Region WithOnlineReductions(const Region& region);

bool IsOnline(const Instr& instr);
// Numbers of which a partial result of a reduction consists.
int PartialElements(const Instr& reduction);

}  // namespace fusiond::schedule

#endif  // FUSIOND_COMPILER_SCHEDULE_ONLINE_H_
