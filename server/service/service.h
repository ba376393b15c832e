// FusiondService: the gRPC shell over FusiondLogic, one an identity (callback API: no thread
// waits). Calls that compile, and Devices, pass the start gate and the identity's quota first.
//
// Thread-safety: thread-safe. Ownership: its parts outlive it; it outlives its grpc::Server.
#ifndef FUSIOND_SERVER_SERVICE_SERVICE_H_
#define FUSIOND_SERVER_SERVICE_SERVICE_H_

#include <functional>
#include <string>
#include <utility>

#include "proto/fusiond/v1/service.grpc.pb.h"
#include "server/service/call_tracker.h"
#include "server/service/inline_executor.h"
#include "server/service/logic.h"
#include "server/service/quotas.h"
#include "server/service/start_gate.h"

namespace fusiond::server {

// One finished call, for the log.
struct CallRecord {
  const char* rpc;
  const Identity* identity;
  absl::Status status;
  std::string key;     // hex prefix, where there is one
  std::string source;  // likewise
  absl::Duration took;
};
using CallLog = std::function<void(const CallRecord&)>;

// What a call takes of memory, for the quota: its request, and as much for its answer.
inline int64_t BytesOfCall(const google::protobuf::MessageLite& request) {
  return 2 * static_cast<int64_t>(request.ByteSizeLong());
}

// What the services of all identities share.
struct ServiceParts {
  FusiondLogic* logic = nullptr;
  InlineExecutor* executor = nullptr;
  CallTracker* tracker = nullptr;
  StartGate* gate = nullptr;
  Quotas* quotas = nullptr;
  CallLog log;
};

class FusiondService final : public v1::Fusiond::CallbackService {
 public:
  FusiondService(ServiceParts parts, Identity identity)
      : parts_(std::move(parts)), logic_(*parts_.logic), identity_(std::move(identity)) {}

  grpc::ServerUnaryReactor* Compile(grpc::CallbackServerContext* context,
                                    const v1::CompileRequest* request,
                                    v1::CompileResponse* response) override;
  grpc::ServerWriteReactor<v1::WarmEvent>* Warm(grpc::CallbackServerContext* context,
                                                const v1::WarmRequest* request) override;
  grpc::ServerUnaryReactor* Execute(grpc::CallbackServerContext* context,
                                    const v1::ExecuteRequest* request,
                                    v1::ExecuteResponse* response) override;
  grpc::ServerUnaryReactor* Explain(grpc::CallbackServerContext* context,
                                    const v1::ExplainRequest* request,
                                    v1::ExplainResponse* response) override;
  grpc::ServerUnaryReactor* GetArtifacts(grpc::CallbackServerContext* context,
                                         const v1::GetArtifactsRequest* request,
                                         v1::GetArtifactsResponse* response) override;
  grpc::ServerUnaryReactor* Devices(grpc::CallbackServerContext* context,
                                    const v1::DevicesRequest* request,
                                    v1::DevicesResponse* response) override;
  grpc::ServerUnaryReactor* Status(grpc::CallbackServerContext* context,
                                   const v1::StatusRequest* request,
                                   v1::StatusResponse* response) override;
  grpc::ServerUnaryReactor* CacheStats(grpc::CallbackServerContext* context,
                                       const v1::CacheStatsRequest* request,
                                       v1::CacheStatsResponse* response) override;
  grpc::ServerUnaryReactor* CacheList(grpc::CallbackServerContext* context,
                                      const v1::CacheListRequest* request,
                                      v1::CacheListResponse* response) override;
  grpc::ServerUnaryReactor* CacheEvict(grpc::CallbackServerContext* context,
                                       const v1::CacheEvictRequest* request,
                                       v1::CacheEvictResponse* response) override;

 private:
  const ServiceParts parts_;
  FusiondLogic& logic_;
  const Identity identity_;
};

}  // namespace fusiond::server

#endif  // FUSIOND_SERVER_SERVICE_SERVICE_H_
