// KernelSchedule: how one region becomes kernels, as a plain value. Equal regions with equal
// schedules give equal text.
//
// Thread-safety: a value. Fields that a scheduler does not use keep their defaults and are not
// printed.
#ifndef FUSIOND_COMPILER_SCHEDULE_KERNEL_SCHEDULE_H_
#define FUSIOND_COMPILER_SCHEDULE_KERNEL_SCHEDULE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace fusiond::schedule {

enum class SchedulerId : uint8_t {
  kPointwise,
  kTranspose,
  kRowPersistent,
  kRowStream,
  kRowColumn,
  kColumn
};
// "pointwise", "row_persistent", …: in printed schedules and names of kernels.
const char* Name(SchedulerId id);

struct KernelSchedule {
  SchedulerId scheduler = SchedulerId::kPointwise;
  std::string variant;      // a row of variants.h
  int threads = 0;          // of a CTA
  int vector = 1;           // elements that a thread takes side by side
  int unroll = 1;           // vectors of a thread, all of them on the way at once
  int threads_per_row = 0;  // that share a row
  int rows_per_cta = 0;     // at a time
  int stages = 0;           // rows of a ring in shared memory
  int splits = 0;           // parts into which a reduction is cut, each with its own partial result
  int cluster = 0;          // CTAs of a cluster
  int64_t smem_bytes = 0;   // dynamic shared memory of a CTA
  bool shared_columns = false;  // what is the same for all rows lies in shared memory
  bool unpacked = false;        // 16-bit elements of a row are kept converted between passes
  bool wide_index = false;      // 64-bit element indices

  bool operator==(const KernelSchedule&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const KernelSchedule& s) {
    return H::combine(std::move(h), s.scheduler, s.variant, s.threads, s.vector, s.unroll,
                      s.threads_per_row, s.rows_per_cta, s.stages, s.splits, s.cluster,
                      s.smem_bytes, s.shared_columns, s.unpacked, s.wide_index);
  }
};

// One number of a schedule, by name; flags are 0 or 1.
struct ScheduleField {
  absl::string_view name;
  int64_t (*get)(const KernelSchedule&);
  void (*set)(KernelSchedule&, int64_t);
  int64_t most;  // that the field holds
};
// All of them, in the order in which they are printed.
absl::Span<const ScheduleField> ScheduleFields();

// "pointwise/flat{threads=128,vector=8,unroll=2}". Parse(Print(s)) == s.
std::string Print(const KernelSchedule& schedule);
// INVALID_ARGUMENT names what is unknown or malformed, and what there is.
absl::StatusOr<KernelSchedule> ParseSchedule(absl::string_view text);

// What people say of a schedule: "row_column", "row_column/bulk_team", "row_column{threads=512}".
struct SchedulePattern {
  SchedulerId scheduler = SchedulerId::kPointwise;
  std::string variant;                                           // empty: any
  std::vector<std::pair<const ScheduleField*, int64_t>> values;  // in the order of ScheduleFields
};
// As ParseSchedule. Limit: kMaxPatternBytes.
absl::StatusOr<SchedulePattern> ParsePattern(absl::string_view text);
inline constexpr size_t kMaxPatternBytes = 1024;
std::string Print(const SchedulePattern& pattern);
bool Matches(const SchedulePattern& pattern, const KernelSchedule& schedule);

}  // namespace fusiond::schedule

#endif  // FUSIOND_COMPILER_SCHEDULE_KERNEL_SCHEDULE_H_
