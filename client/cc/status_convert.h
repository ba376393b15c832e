// grpc::Status → absl::Status: same code, same text. The server's twin is server/status_convert.h.
#ifndef FUSIOND_CLIENT_CC_STATUS_CONVERT_H_
#define FUSIOND_CLIENT_CC_STATUS_CONVERT_H_

#include <grpcpp/support/status.h>

#include "absl/status/status.h"

namespace fusiond::client {

inline absl::Status FromGrpc(const grpc::Status& status) {
  // The two enumerations have the same numbers by construction (google.rpc.Code).
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

}  // namespace fusiond::client

#endif  // FUSIOND_CLIENT_CC_STATUS_CONVERT_H_
