// Text of Transpose schedules (compiler/schedule/transpose.h).
//
// u<i> is the tile of load i in shared memory, w<k> that of store k: rows along a, each of them
// contiguous along b. Loads that run along a go straight to registers, before the tiles are waited
// for.
#ifndef FUSIOND_COMPILER_CODEGEN_TRANSPOSE_H_
#define FUSIOND_COMPILER_CODEGEN_TRANSPOSE_H_

#include "compiler/codegen/kernel.h"
#include "compiler/schedule/kernel_schedule.h"
#include "compiler/schedule/region.h"

namespace fusiond::codegen {

Emission EmitTranspose(const schedule::Region& region, const schedule::KernelSchedule& schedule);

}  // namespace fusiond::codegen

#endif  // FUSIOND_COMPILER_CODEGEN_TRANSPOSE_H_
