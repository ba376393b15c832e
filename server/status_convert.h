// absl::Status → grpc::Status: the same code, the text made UTF-8 and cut to what fits a gRPC
// trailer; a retry hint becomes trailing metadata. The client's twin is client/cc/status_convert.h.
#ifndef FUSIOND_SERVER_STATUS_CONVERT_H_
#define FUSIOND_SERVER_STATUS_CONVERT_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/status.h>

#include "absl/status/status.h"

namespace fusiond::server {

grpc::Status ToGrpc(const absl::Status& status);
// For a call that is about to finish: also sends the retry hint, if there is one.
grpc::Status ToGrpc(const absl::Status& status, grpc::CallbackServerContext& context);

}  // namespace fusiond::server

#endif  // FUSIOND_SERVER_STATUS_CONVERT_H_
