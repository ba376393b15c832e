// Warm as gRPC calls it: a write stream over a WarmRun.
#ifndef FUSIOND_SERVER_SERVICE_WARM_H_
#define FUSIOND_SERVER_SERVICE_WARM_H_

#include <grpcpp/grpcpp.h>

#include "proto/fusiond/v1/service.pb.h"
#include "server/service/identity.h"
#include "server/service/service.h"

namespace fusiond::server {

// The reactor owns itself and ends with gRPC's OnDone. `parts` and `identity` outlive it.
grpc::ServerWriteReactor<v1::WarmEvent>* StartWarm(const ServiceParts& parts,
                                                   const Identity& identity,
                                                   const v1::WarmRequest& request,
                                                   grpc::CallbackServerContext* context);

}  // namespace fusiond::server

#endif  // FUSIOND_SERVER_SERVICE_WARM_H_
