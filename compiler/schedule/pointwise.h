// Pointwise: regions without reductions. Each thread takes `unroll` vectors of `vector` elements of
// the flattened space, issues all their loads, then computes and stores.
//
// Takes: every region without reductions. An operand that runs across the vectors is gathered
// element by element; Transpose is preferred where it applies.
#ifndef FUSIOND_COMPILER_SCHEDULE_POINTWISE_H_
#define FUSIOND_COMPILER_SCHEDULE_POINTWISE_H_

#include "compiler/schedule/scheduler.h"

namespace fusiond::schedule {

const Scheduler& PointwiseScheduler();

}  // namespace fusiond::schedule

#endif  // FUSIOND_COMPILER_SCHEDULE_POINTWISE_H_
