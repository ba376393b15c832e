// Numbers that a Status carries beside its text, for programs: a completion has room for no text, a
// header for no sentence.
//
// Thread-safety: pure functions.
#ifndef FUSIOND_RUNTIME_BASE_STATUS_NUMBERS_H_
#define FUSIOND_RUNTIME_BASE_STATUS_NUMBERS_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace fusiond::base {

// `status` with `value` under `name`. Requires: not OK.
absl::Status WithNumber(absl::Status status, absl::string_view name, uint64_t value);
std::optional<uint64_t> NumberOf(const absl::Status& status, absl::string_view name);

// What was asked for (0: unknown), all there is, and what of that nobody holds now.
struct MemoryNeed {
  uint64_t needed_bytes = 0;
  uint64_t limit_bytes = 0;
  uint64_t free_bytes = 0;
};
// `status` with these numbers, in its text too.
absl::Status WithMemoryNeed(const absl::Status& status, const MemoryNeed& need);
std::optional<MemoryNeed> MemoryNeedOf(const absl::Status& status);

}  // namespace fusiond::base

#endif  // FUSIOND_RUNTIME_BASE_STATUS_NUMBERS_H_
