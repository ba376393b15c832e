#include "runtime/base/retry_hint.h"

#include <cstdint>
#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace fusiond::base {
namespace {

constexpr char kPayload[] = "fusiond/retry-after-ms";

}  // namespace

absl::Status WithRetryHint(const absl::Status& status, absl::Duration wait) {
  const int64_t ms = absl::ToInt64Milliseconds(absl::Ceil(wait, absl::Milliseconds(1)));
  absl::Status hinted(status.code(), absl::StrCat(status.message(), "; try again in ", ms, " ms"));
  hinted.SetPayload(kPayload, absl::Cord(absl::StrCat(ms)));
  return hinted;
}

std::optional<absl::Duration> RetryHint(const absl::Status& status) {
  const absl::optional<absl::Cord> payload = status.GetPayload(kPayload);
  int64_t ms = 0;
  if (!payload.has_value() || !absl::SimpleAtoi(std::string(*payload), &ms)) return std::nullopt;
  return absl::Milliseconds(ms);
}

}  // namespace fusiond::base
