// The table of variants: every form of kernel that a scheduler may propose and its emitter writes.
//
// One row, one structurally different text: tests compile, emulate and check each of them. A
// schedule whose (scheduler, variant) has no row here is a bug that a test catches.
//
// Thread-safety: immutable.
#ifndef FUSIOND_COMPILER_SCHEDULE_VARIANTS_H_
#define FUSIOND_COMPILER_SCHEDULE_VARIANTS_H_

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compiler/schedule/kernel_schedule.h"

namespace fusiond::schedule {

struct Variant {
  SchedulerId scheduler;
  absl::string_view name;
  absl::string_view meaning;
};

absl::Span<const Variant> Variants();
// nullptr when the table has no such row.
const Variant* FindVariant(const KernelSchedule& schedule);

}  // namespace fusiond::schedule

#endif  // FUSIOND_COMPILER_SCHEDULE_VARIANTS_H_
