// A Status whose cause passes by itself says when to try again: in its text for people, as a
// payload for programs. gRPC's servers send the payload on as grpc-retry-pushback-ms.
//
// Thread-safety: pure functions.
#ifndef FUSIOND_RUNTIME_BASE_RETRY_HINT_H_
#define FUSIOND_RUNTIME_BASE_RETRY_HINT_H_

#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace fusiond::base {

// `status` and that it is worth trying again after about `wait`, in whole milliseconds.
// Requires: not OK.
absl::Status WithRetryHint(const absl::Status& status, absl::Duration wait);
std::optional<absl::Duration> RetryHint(const absl::Status& status);

}  // namespace fusiond::base

#endif  // FUSIOND_RUNTIME_BASE_RETRY_HINT_H_
