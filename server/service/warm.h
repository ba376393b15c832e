// Warm: many graphs × many targets, a few at a time, one event each. State machine over a gRPC
// write stream.
#ifndef FUSIOND_SERVER_SERVICE_WARM_H_
#define FUSIOND_SERVER_SERVICE_WARM_H_

#include <grpcpp/grpcpp.h>

#include "proto/fusiond/v1/service.pb.h"
#include "server/service/call_tracker.h"
#include "server/service/logic.h"

namespace fusiond::server {

// The reactor owns itself and ends with gRPC's OnDone.
grpc::ServerWriteReactor<v1::WarmEvent>* StartWarm(FusiondLogic* logic, CallTracker* tracker,
                                                   const Identity& identity,
                                                   const v1::WarmRequest& request);

}  // namespace fusiond::server

#endif  // FUSIOND_SERVER_SERVICE_WARM_H_
