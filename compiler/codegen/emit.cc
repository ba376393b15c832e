#include "compiler/codegen/emit.h"

#include "compiler/codegen/column.h"
#include "compiler/codegen/pointwise.h"
#include "compiler/codegen/row_column.h"
#include "compiler/codegen/row_persistent.h"
#include "compiler/codegen/row_stream.h"
#include "compiler/codegen/transpose.h"
#include "runtime/base/check.h"

namespace fusiond::codegen {

using schedule::SchedulerId;

Emission Emit(const schedule::Region& region, const schedule::KernelSchedule& schedule) {
  switch (schedule.scheduler) {
    case SchedulerId::kPointwise:
      return EmitPointwise(region, schedule);
    case SchedulerId::kTranspose:
      return EmitTranspose(region, schedule);
    case SchedulerId::kRowPersistent:
      return EmitRowPersistent(region, schedule);
    case SchedulerId::kRowStream:
      return EmitRowStream(region, schedule);
    case SchedulerId::kRowColumn:
      return EmitRowColumn(region, schedule);
    case SchedulerId::kColumn:
      return EmitColumn(region, schedule);
  }
  FUSIOND_CHECK(false);  // no scheduler proposes what has no emitter
  return {};
}

}  // namespace fusiond::codegen
