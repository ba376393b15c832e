#include "runtime/base/retry_hint.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_numbers.h"

namespace fusiond::base {
namespace {

constexpr char kPayload[] = "fusiond/retry-after-ms";

}  // namespace

absl::Status WithRetryHint(const absl::Status& status, absl::Duration wait) {
  const int64_t ms = absl::ToInt64Milliseconds(absl::Ceil(wait, absl::Milliseconds(1)));
  return WithNumber(
      absl::Status(status.code(), absl::StrCat(status.message(), "; try again in ", ms, " ms")),
      kPayload, static_cast<uint64_t>(ms));
}

std::optional<absl::Duration> RetryHint(const absl::Status& status) {
  const std::optional<uint64_t> ms = NumberOf(status, kPayload);
  if (!ms.has_value()) return std::nullopt;
  return absl::Milliseconds(static_cast<int64_t>(*ms));
}

}  // namespace fusiond::base
