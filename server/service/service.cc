#include "server/service/service.h"

#include <memory>

#include "absl/strings/escaping.h"
#include "server/service/later_reactor.h"
#include "server/service/warm.h"
#include "server/status_convert.h"

namespace fusiond::server {
namespace {

std::string KeyPrefix(const std::string& key) { return absl::BytesToHexString(key).substr(0, 16); }

// For calls that answer on the spot and cost little.
template <typename Response>
grpc::ServerUnaryReactor* Answer(grpc::CallbackServerContext* context, const char* rpc,
                                 const Identity& identity, const CallLog& log,
                                 absl::StatusOr<Response> answer, Response* response,
                                 absl::Duration start) {
  const absl::Status status = answer.status();
  log({rpc, &identity, status, "", "", base::Clock::System().Now() - start});
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  if (status.ok()) *response = *std::move(answer);
  reactor->Finish(ToGrpc(status, *context));
  return reactor;
}

absl::Duration Now() { return base::Clock::System().Now(); }

}  // namespace

grpc::ServerUnaryReactor* FusiondService::Compile(grpc::CallbackServerContext* context,
                                                  const v1::CompileRequest* request,
                                                  v1::CompileResponse* response) {
  auto reactor = LaterReactor::Make("Compile", identity_, parts_, context);
  reactor->Begin(*request, [this, reactor, request, response] {
    CompileEngine::Ticket ticket =
        logic_.Compile(*request, identity_, CompilePriority::kNormal,
                       [reactor, response](absl::StatusOr<v1::CompileResponse> answer) {
                         if (!reactor->Claim()) return;
                         if (!answer.ok()) return reactor->End(answer.status());
                         response->Swap(&*answer);
                         reactor->End(absl::OkStatus(), KeyPrefix(response->key()),
                                      v1::Source_Name(response->source()));
                       });
    reactor->AddCancel([this, ticket] { return logic_.CancelCompile(ticket); });
  });
  return reactor.get();
}

grpc::ServerWriteReactor<v1::WarmEvent>* FusiondService::Warm(grpc::CallbackServerContext* context,
                                                              const v1::WarmRequest* request) {
  return StartWarm(parts_, identity_, *request, context);
}

grpc::ServerUnaryReactor* FusiondService::Execute(grpc::CallbackServerContext* context,
                                                  const v1::ExecuteRequest* request,
                                                  v1::ExecuteResponse* response) {
  auto reactor = LaterReactor::Make("Execute", identity_, parts_, context);
  reactor->Begin(*request, [this, reactor, request, response] {
    absl::StatusOr<v1::CompileRequest> compile = logic_.CompileRequestOf(*request);
    absl::StatusOr<std::string> device =
        compile.ok() ? logic_.DeviceFor(*request) : compile.status();
    if (!device.ok()) {
      if (reactor->Claim()) reactor->End(device.status());
      return;
    }
    CompileEngine::Ticket ticket = logic_.Compile(
        *compile, identity_, CompilePriority::kNormal,
        [this, reactor, request, response,
         device = *device](absl::StatusOr<v1::CompileResponse> compiled) {
          if (!reactor->Claim()) return;
          if (!compiled.ok()) return reactor->End(compiled.status());
          InlineExecutor::Call call;
          call.identity = identity_;
          call.device = device;
          call.request = request;  // gRPC keeps it until the call has ended
          call.compiled = std::make_shared<v1::CompileResponse>(*std::move(compiled));
          call.deadline = reactor->deadline();
          call.cancelled = [reactor] { return reactor->cancelled(); };
          const uint64_t run = parts_.executor->Run(
              std::move(call), [reactor, response](absl::StatusOr<v1::ExecuteResponse> answer) {
                if (!answer.ok()) return reactor->End(answer.status());
                response->Swap(&*answer);
                reactor->End(absl::OkStatus(), KeyPrefix(response->compile().key()),
                             v1::Source_Name(response->compile().source()));
              });
          // The callback comes all the same.
          reactor->AddCancel([this, run] { return parts_.executor->Drop(run), false; });
        });
    reactor->AddCancel([this, ticket] { return logic_.CancelCompile(ticket); });
  });
  return reactor.get();
}

grpc::ServerUnaryReactor* FusiondService::GetArtifacts(grpc::CallbackServerContext* context,
                                                       const v1::GetArtifactsRequest* request,
                                                       v1::GetArtifactsResponse* response) {
  auto reactor = LaterReactor::Make("GetArtifacts", identity_, parts_, context);
  reactor->Begin(*request, [this, reactor, request, response] {
    std::function<void()> cancel = logic_.GetArtifacts(
        *request, identity_, [reactor, response](absl::StatusOr<v1::GetArtifactsResponse> answer) {
          if (!reactor->Claim()) return;
          if (answer.ok()) response->Swap(&*answer);
          reactor->End(answer.status());
        });
    // The callback comes all the same.
    reactor->AddCancel([cancel = std::move(cancel)] { return cancel(), false; });
  });
  return reactor.get();
}

grpc::ServerUnaryReactor* FusiondService::Explain(grpc::CallbackServerContext* context,
                                                  const v1::ExplainRequest* request,
                                                  v1::ExplainResponse* response) {
  auto reactor = LaterReactor::Make("Explain", identity_, parts_, context);
  reactor->Begin(*request, [this, reactor, request, response] {
    std::function<void()> cancel = logic_.Explain(
        *request, identity_, [reactor, response](absl::StatusOr<v1::ExplainResponse> answer) {
          if (!reactor->Claim()) return;
          if (!answer.ok()) return reactor->End(answer.status());
          response->Swap(&*answer);
          reactor->End(absl::OkStatus(), KeyPrefix(response->key()));
        });
    // The callback comes all the same.
    reactor->AddCancel([cancel = std::move(cancel)] { return cancel(), false; });
  });
  return reactor.get();
}

grpc::ServerUnaryReactor* FusiondService::Devices(grpc::CallbackServerContext* context,
                                                  const v1::DevicesRequest* request,
                                                  v1::DevicesResponse* response) {
  auto reactor = LaterReactor::Make("Devices", identity_, parts_, context);
  reactor->Begin(*request, [this, reactor, response] {
    if (!reactor->Claim()) return;
    *response = logic_.Devices();
    reactor->End(absl::OkStatus());
  });
  return reactor.get();
}

grpc::ServerUnaryReactor* FusiondService::Status(grpc::CallbackServerContext* context,
                                                 const v1::StatusRequest*,
                                                 v1::StatusResponse* response) {
  const absl::Duration start = Now();
  return Answer(context, "Status", identity_, parts_.log,
                absl::StatusOr<v1::StatusResponse>(logic_.Status()), response, start);
}

grpc::ServerUnaryReactor* FusiondService::CacheStats(grpc::CallbackServerContext* context,
                                                     const v1::CacheStatsRequest*,
                                                     v1::CacheStatsResponse* response) {
  const absl::Duration start = Now();
  return Answer(context, "CacheStats", identity_, parts_.log,
                absl::StatusOr<v1::CacheStatsResponse>(logic_.CacheStats()), response, start);
}

grpc::ServerUnaryReactor* FusiondService::CacheList(grpc::CallbackServerContext* context,
                                                    const v1::CacheListRequest* request,
                                                    v1::CacheListResponse* response) {
  const absl::Duration start = Now();
  return Answer(context, "CacheList", identity_, parts_.log, logic_.CacheList(*request), response,
                start);
}

grpc::ServerUnaryReactor* FusiondService::CacheEvict(grpc::CallbackServerContext* context,
                                                     const v1::CacheEvictRequest* request,
                                                     v1::CacheEvictResponse* response) {
  const absl::Duration start = Now();
  return Answer(context, "CacheEvict", identity_, parts_.log,
                logic_.CacheEvict(*request, identity_), response, start);
}

}  // namespace fusiond::server
