// Text of RowColumn schedules (compiler/schedule/row_column.h).
//
// Row i of a team is row first + i · step of the region. Ring: the team's first thread refills a
// stage as soon as every warp of the team has met at the row's first barrier, or, where a thread
// copies for itself, each thread before it reads the next row. After the last row all column sums
// meet in the arena that held the rings, team after team.
#ifndef FUSIOND_COMPILER_CODEGEN_ROW_COLUMN_H_
#define FUSIOND_COMPILER_CODEGEN_ROW_COLUMN_H_

#include "compiler/codegen/kernel.h"
#include "compiler/schedule/kernel_schedule.h"
#include "compiler/schedule/region.h"

namespace fusiond::codegen {

Emission EmitRowColumn(const schedule::Region& region, const schedule::KernelSchedule& schedule);

}  // namespace fusiond::codegen

#endif  // FUSIOND_COMPILER_CODEGEN_ROW_COLUMN_H_
