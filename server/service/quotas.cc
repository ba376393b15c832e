#include "server/service/quotas.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "runtime/base/retry_hint.h"

namespace fusiond::server {
namespace {

// Calls take between microseconds and seconds.
constexpr absl::Duration kCallsRetry = absl::Milliseconds(250);

// Failures that the request itself brought about; the rest is the daemon's or the caller's doing.
bool IsTheRequests(const absl::Status& status) {
  return absl::IsInvalidArgument(status) || absl::IsUnimplemented(status) ||
         absl::IsInternal(status) || absl::IsNotFound(status) ||
         (absl::IsResourceExhausted(status) && !base::RetryHint(status).has_value());
}

}  // namespace

void Quotas::Forgive(Use& use) const {
  const absl::Duration now = clock_.Now();
  use.failures = std::max(
      0.0, use.failures - options_.failures_per_second * absl::ToDoubleSeconds(now - use.since));
  use.since = now;
}

absl::Status Quotas::Begin(const std::string& identity, int64_t bytes) {
  base::MutexLock lock(&mutex_);
  Use& use = uses_[identity];
  Forgive(use);
  if (use.calls >= options_.calls) {
    ++refused_;
    return base::WithRetryHint(
        absl::ResourceExhaustedError(absl::StrFormat("calls of %s at once: limit is %d, are %d",
                                                     identity, options_.calls, use.calls + 1)),
        kCallsRetry);
  }
  if (use.calls > 0 && bytes > options_.bytes - use.bytes) {
    ++refused_;
    return base::WithRetryHint(absl::ResourceExhaustedError(absl::StrFormat(
                                   "bytes that calls of %s take at once: limit is %d, are %d",
                                   identity, options_.bytes, use.bytes + bytes)),
                               kCallsRetry);
  }
  if (use.failures >= options_.failures) {
    ++refused_;
    return base::WithRetryHint(
        absl::ResourceExhaustedError(absl::StrFormat(
            "failing calls of %s: limit is %.0f and %.0f a second, are %.0f", identity,
            options_.failures, options_.failures_per_second, use.failures)),
        absl::Seconds((use.failures - options_.failures + 1) / options_.failures_per_second));
  }
  ++use.calls;
  use.bytes += bytes;
  return absl::OkStatus();
}

void Quotas::End(const std::string& identity, int64_t bytes, const absl::Status& status) {
  base::MutexLock lock(&mutex_);
  const auto found = uses_.find(identity);
  if (found == uses_.end()) return;
  Use& use = found->second;
  Forgive(use);
  --use.calls;
  use.bytes -= bytes;
  if (IsTheRequests(status)) ++use.failures;
  if (use.calls == 0 && use.failures == 0) uses_.erase(found);
}

uint64_t Quotas::refused() const {
  base::MutexLock lock(&mutex_);
  return refused_;
}

}  // namespace fusiond::server
