// absl::Status → grpc::Status: the same code, the text made UTF-8 and cut to what fits a gRPC
// trailer. The client's twin is client/cc/status_convert.h.
#ifndef FUSIOND_SERVER_STATUS_CONVERT_H_
#define FUSIOND_SERVER_STATUS_CONVERT_H_

#include <grpcpp/support/status.h>

#include "absl/status/status.h"

namespace fusiond::server {

grpc::Status ToGrpc(const absl::Status& status);

}  // namespace fusiond::server

#endif  // FUSIOND_SERVER_STATUS_CONVERT_H_
