// Moments: variances in one pass over a row instead of two.
//
// A mean and the sum of squares around it take two passes: the second reads the row again. Where
// the row is not held that costs more than it gives, so the pair is recognised and the squares
// become a reduction of their own, whose partial results carry mean and count and are merged
// (Chan). It is at least as exact.
//
// Thread-safety: pure function.
#ifndef FUSIOND_COMPILER_SCHEDULE_MOMENTS_H_
#define FUSIOND_COMPILER_SCHEDULE_MOMENTS_H_

#include "compiler/schedule/region.h"

namespace fusiond::schedule {

// In place of  sum((x - m)²)  with m = sum(x) / n: a kReduce with op kVar of x, which stands for
// the sum of squared deviations and depends on no other reduction. Other uses of m and x - m stay.
// Requires: no column reductions.
Region WithMoments(const Region& region);

}  // namespace fusiond::schedule

#endif  // FUSIOND_COMPILER_SCHEDULE_MOMENTS_H_
