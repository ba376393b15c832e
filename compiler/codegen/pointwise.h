// Text of Pointwise schedules (compiler/schedule/pointwise.h).
//
// Values that vary along no dim are computed once a thread, those that do not vary along the
// innermost dim once a vector, the rest once an element. All loads of a thread stand before its
// first use of one.
#ifndef FUSIOND_COMPILER_CODEGEN_POINTWISE_H_
#define FUSIOND_COMPILER_CODEGEN_POINTWISE_H_

#include "compiler/codegen/kernel.h"
#include "compiler/schedule/kernel_schedule.h"
#include "compiler/schedule/region.h"

namespace fusiond::codegen {

Emission EmitPointwise(const schedule::Region& region, const schedule::KernelSchedule& schedule);

}  // namespace fusiond::codegen

#endif  // FUSIOND_COMPILER_CODEGEN_POINTWISE_H_
