#include "server/status_convert.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "runtime/base/retry_hint.h"
#include "runtime/base/utf8.h"

namespace fusiond::server {
namespace {

// gRPC refuses metadata above 8 KiB by default, and percent-encoding triples a byte at worst.
constexpr size_t kMaxText = 2048;

}  // namespace

grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  // The two enumerations have the same numbers by construction (google.rpc.Code).
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()),
                      base::ToUtf8(status.message(), kMaxText));
}

grpc::Status ToGrpc(const absl::Status& status, grpc::CallbackServerContext& context) {
  // As gRPC's own retries read it (gRFC A6).
  if (const std::optional<absl::Duration> wait = base::RetryHint(status)) {
    context.AddTrailingMetadata("grpc-retry-pushback-ms",
                                absl::StrCat(absl::ToInt64Milliseconds(*wait)));
  }
  return ToGrpc(status);
}

}  // namespace fusiond::server
