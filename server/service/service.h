// FusiondService: the gRPC shell over FusiondLogic, one an identity (callback API: no thread
// waits).
//
// Thread-safety: thread-safe. Ownership: the logic and the tracker outlive it; it outlives its
// grpc::Server.
#ifndef FUSIOND_SERVER_SERVICE_SERVICE_H_
#define FUSIOND_SERVER_SERVICE_SERVICE_H_

#include <functional>
#include <utility>

#include "proto/fusiond/v1/service.grpc.pb.h"
#include "server/service/call_tracker.h"
#include "server/service/inline_executor.h"
#include "server/service/logic.h"

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

class FusiondService final : public v1::Fusiond::CallbackService {
 public:
  FusiondService(FusiondLogic* logic, InlineExecutor* executor, CallTracker* tracker,
                 Identity identity, CallLog log)
      : logic_(*logic),
        executor_(*executor),
        tracker_(*tracker),
        identity_(std::move(identity)),
        log_(std::move(log)) {}

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
  FusiondLogic& logic_;
  InlineExecutor& executor_;
  CallTracker& tracker_;
  const Identity identity_;
  const CallLog log_;
};

}  // namespace fusiond::server

#endif  // FUSIOND_SERVER_SERVICE_SERVICE_H_
