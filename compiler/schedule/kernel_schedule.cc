#include "compiler/schedule/kernel_schedule.h"

#include "absl/strings/str_cat.h"

namespace fusiond::schedule {

const char* Name(SchedulerId id) {
  switch (id) {
    case SchedulerId::kPointwise:
      return "pointwise";
    case SchedulerId::kTranspose:
      return "transpose";
    case SchedulerId::kRowPersistent:
      return "row_persistent";
    case SchedulerId::kRowStream:
      return "row_stream";
    case SchedulerId::kRowColumn:
      return "row_column";
    case SchedulerId::kColumn:
      return "column";
  }
  return "";
}

std::string Print(const KernelSchedule& s) {
  std::string text = absl::StrCat(Name(s.scheduler), "/", s.variant, " threads=", s.threads,
                                  " vector=", s.vector, " unroll=", s.unroll);
  const auto field = [&](const char* name, int64_t value) {
    if (value != 0) absl::StrAppend(&text, " ", name, "=", value);
  };
  field("threads_per_row", s.threads_per_row);
  field("rows_per_cta", s.rows_per_cta);
  field("stages", s.stages);
  field("splits", s.splits);
  field("cluster", s.cluster);
  field("smem_bytes", s.smem_bytes);
  if (s.shared_columns) absl::StrAppend(&text, " columns=shared");
  if (s.unpacked) absl::StrAppend(&text, " elements=unpacked");
  if (s.wide_index) absl::StrAppend(&text, " index=64");
  return text;
}

}  // namespace fusiond::schedule
