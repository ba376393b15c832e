// Text of RowPersistent schedules (compiler/schedule/row_persistent.h).
//
// Every tensor of a row is loaded before the first pass; passes run over registers. A team larger
// than a warp meets once a pass, through shared memory of that pass alone, so that one barrier is
// enough.
#ifndef FUSIOND_COMPILER_CODEGEN_ROW_PERSISTENT_H_
#define FUSIOND_COMPILER_CODEGEN_ROW_PERSISTENT_H_

#include "compiler/codegen/kernel.h"
#include "compiler/schedule/kernel_schedule.h"
#include "compiler/schedule/region.h"

namespace fusiond::codegen {

Emission EmitRowPersistent(const schedule::Region& region,
                           const schedule::KernelSchedule& schedule);

}  // namespace fusiond::codegen

#endif  // FUSIOND_COMPILER_CODEGEN_ROW_PERSISTENT_H_
