// Text of Column schedules (compiler/schedule/column.h), and of finalise kernels.
//
// Threads accumulate the sums of their columns over their rows in registers, all loads of `unroll`
// rows before the first use of one; rows past the end are read as the last one and not counted.
// Then each column's parts are combined by one thread, in row order.
#ifndef FUSIOND_COMPILER_CODEGEN_COLUMN_H_
#define FUSIOND_COMPILER_CODEGEN_COLUMN_H_

#include "compiler/codegen/kernel.h"
#include "compiler/schedule/kernel_schedule.h"
#include "compiler/schedule/region.h"

namespace fusiond::codegen {

Emission EmitColumn(const schedule::Region& region, const schedule::KernelSchedule& schedule);

// Appends the kernel that completes the late reductions of `region` from `parts` partial results
// each, and their buffers, as scratch. A kernel ahead must have written them: reduction r's to
// scratch buffer r, dense over (parts, kept dims), in the type that memory has for its own.
// `expected_parts`: about as many as there will be.
void AppendFinalise(const schedule::Region& region, const executable::Formula& parts,
                    int64_t expected_parts, Emission& emission);

}  // namespace fusiond::codegen

#endif  // FUSIOND_COMPILER_CODEGEN_COLUMN_H_
