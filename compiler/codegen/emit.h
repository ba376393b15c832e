// Emit: a region and its schedule to kernels, by the emitter of the schedule's scheduler.
//
// Deterministic: the text depends on region and schedule alone, and names nothing of the graph that
// the region came from, so that equal kernels of different graphs are compiled once.
//
// Thread-safety: pure function.
#ifndef FUSIOND_COMPILER_CODEGEN_EMIT_H_
#define FUSIOND_COMPILER_CODEGEN_EMIT_H_

#include "compiler/codegen/kernel.h"
#include "compiler/schedule/kernel_schedule.h"
#include "compiler/schedule/region.h"

namespace fusiond::codegen {

Emission Emit(const schedule::Region& region, const schedule::KernelSchedule& schedule);

}  // namespace fusiond::codegen

#endif  // FUSIOND_COMPILER_CODEGEN_EMIT_H_
