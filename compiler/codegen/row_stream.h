// Text of RowStream schedules (compiler/schedule/row_stream.h).
//
// A pass is a loop over steps: all vectors of a step are loaded, then worked on; what they add to
// is in registers from the first step to the last. Every other pass takes the steps backwards: of a
// row longer than L2 it finds the end there. After a pass the CTA meets as RowPersistent does,
// through shared memory of that pass alone. Where a row is split, each pass is a kernel; thread 0
// of each CTA leaves its partial results in scratch [rows, splits], one buffer a reduction.
#ifndef FUSIOND_COMPILER_CODEGEN_ROW_STREAM_H_
#define FUSIOND_COMPILER_CODEGEN_ROW_STREAM_H_

#include "compiler/codegen/kernel.h"
#include "compiler/schedule/kernel_schedule.h"
#include "compiler/schedule/region.h"

namespace fusiond::codegen {

Emission EmitRowStream(const schedule::Region& region, const schedule::KernelSchedule& schedule);

}  // namespace fusiond::codegen

#endif  // FUSIOND_COMPILER_CODEGEN_ROW_STREAM_H_
