#include "server/service/service.h"

#include <memory>

#include "absl/strings/escaping.h"
#include "runtime/base/mutex.h"
#include "runtime/base/status_macros.h"
#include "server/service/warm.h"
#include "server/status_convert.h"

namespace fusiond::server {
namespace {

std::string KeyPrefix(const std::string& key) { return absl::BytesToHexString(key).substr(0, 16); }

// A unary call whose answer may come later and whose caller may leave first. Ends exactly once,
// however these race.
class LaterReactor : public grpc::ServerUnaryReactor {
 public:
  LaterReactor(const char* rpc, const Identity* identity, CallTracker* tracker, const CallLog* log)
      : rpc_(rpc), identity_(identity), tracker_(*tracker), log_(*log) {
    tracker_.Begin();
  }

  // True for the one who may write the response and must then call End.
  bool Claim() {
    base::MutexLock lock(&mutex_);
    return !std::exchange(claimed_, true);
  }
  void End(const absl::Status& status, std::string key = "", std::string source = "") {
    log_({rpc_, identity_, status, std::move(key), std::move(source),
          base::Clock::System().Now() - start_});
    tracker_.End();
    Finish(ToGrpc(status));
  }

  // `cancel` drops the caller's interest and says whether its callback will not come any more.
  // Called at most once.
  void SetCancel(std::function<bool()> cancel) {
    bool now;
    {
      base::MutexLock lock(&mutex_);
      cancel_ = std::move(cancel);
      now = cancelled_;
    }
    if (now) TryCancel();
  }

  void OnCancel() override {
    {
      base::MutexLock lock(&mutex_);
      cancelled_ = true;
    }
    TryCancel();
  }
  // gRPC's last call on the reactor. Callbacks hold a reference of their own.
  void OnDone() override { self_.reset(); }
  void HoldSelf(std::shared_ptr<LaterReactor> self) { self_ = std::move(self); }

 private:
  void TryCancel() {
    std::function<bool()> cancel;
    {
      base::MutexLock lock(&mutex_);
      cancel = std::exchange(cancel_, nullptr);
    }
    if (cancel && cancel() && Claim()) End(absl::CancelledError("cancelled by the caller"));
  }

  const char* const rpc_;
  const Identity* const identity_;
  CallTracker& tracker_;
  const CallLog& log_;
  const absl::Duration start_ = base::Clock::System().Now();
  std::shared_ptr<LaterReactor> self_;

  base::Mutex mutex_;
  bool claimed_ ABSL_GUARDED_BY(mutex_) = false;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  std::function<bool()> cancel_ ABSL_GUARDED_BY(mutex_);
};

std::shared_ptr<LaterReactor> MakeReactor(const char* rpc, const Identity* identity,
                                          CallTracker* tracker, const CallLog* log) {
  auto reactor = std::make_shared<LaterReactor>(rpc, identity, tracker, log);
  reactor->HoldSelf(reactor);
  return reactor;
}

// For calls that answer on the spot.
template <typename Response>
grpc::ServerUnaryReactor* Answer(grpc::CallbackServerContext* context, const char* rpc,
                                 const Identity& identity, const CallLog& log,
                                 absl::StatusOr<Response> answer, Response* response,
                                 absl::Duration start) {
  log({rpc, &identity, answer.status(), "", "", base::Clock::System().Now() - start});
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  if (answer.ok()) *response = *std::move(answer);
  reactor->Finish(ToGrpc(answer.status()));
  return reactor;
}

absl::Duration Now() { return base::Clock::System().Now(); }

}  // namespace

grpc::ServerUnaryReactor* FusiondService::Compile(grpc::CallbackServerContext*,
                                                  const v1::CompileRequest* request,
                                                  v1::CompileResponse* response) {
  std::shared_ptr<LaterReactor> reactor = MakeReactor("Compile", &identity_, &tracker_, &log_);
  LaterReactor* raw = reactor.get();
  CompileEngine::Flight::Ticket ticket =
      logic_.Compile(*request, identity_, CompilePriority::kNormal,
                     [reactor, response](absl::StatusOr<v1::CompileResponse> answer) {
                       if (!reactor->Claim()) return;
                       if (!answer.ok()) return reactor->End(answer.status());
                       response->Swap(&*answer);
                       reactor->End(absl::OkStatus(), KeyPrefix(response->key()),
                                    v1::Source_Name(response->source()));
                     });
  reactor->SetCancel([this, ticket] { return logic_.CancelCompile(ticket); });
  return raw;
}

grpc::ServerWriteReactor<v1::WarmEvent>* FusiondService::Warm(grpc::CallbackServerContext*,
                                                              const v1::WarmRequest* request) {
  return StartWarm(&logic_, &tracker_, identity_, *request);
}

grpc::ServerUnaryReactor* FusiondService::Execute(grpc::CallbackServerContext*,
                                                  const v1::ExecuteRequest* request,
                                                  v1::ExecuteResponse* response) {
  std::shared_ptr<LaterReactor> reactor = MakeReactor("Execute", &identity_, &tracker_, &log_);
  LaterReactor* raw = reactor.get();
  absl::StatusOr<v1::CompileRequest> compile = logic_.CompileRequestOf(*request);
  absl::StatusOr<std::string> device = compile.ok() ? logic_.DeviceFor(*request) : compile.status();
  if (!device.ok()) {
    if (reactor->Claim()) reactor->End(device.status());
    return raw;
  }
  auto kept = std::make_shared<const v1::ExecuteRequest>(*request);
  CompileEngine::Flight::Ticket ticket = logic_.Compile(
      *compile, identity_, CompilePriority::kNormal,
      [this, reactor, response, kept,
       device = *device](absl::StatusOr<v1::CompileResponse> compiled) {
        if (!reactor->Claim()) return;
        if (!compiled.ok()) return reactor->End(compiled.status());
        absl::StatusOr<base::Digest> digest = base::DigestFromBytes(compiled->executable_digest());
        if (!digest.ok()) return reactor->End(digest.status());
        auto bytes =
            std::make_shared<const std::string>(std::move(*compiled->mutable_executable()));
        compiled->clear_executable();
        executor_.Run(
            identity_, device, bytes, *digest, kept,
            [reactor, response, compiled = *compiled](absl::StatusOr<v1::ExecuteResponse> answer) {
              if (!answer.ok()) return reactor->End(answer.status());
              response->Swap(&*answer);
              *response->mutable_compile() = compiled;
              reactor->End(absl::OkStatus(), KeyPrefix(compiled.key()),
                           v1::Source_Name(compiled.source()));
            });
      });
  reactor->SetCancel([this, ticket] { return logic_.CancelCompile(ticket); });
  return raw;
}

grpc::ServerUnaryReactor* FusiondService::GetArtifacts(grpc::CallbackServerContext*,
                                                       const v1::GetArtifactsRequest* request,
                                                       v1::GetArtifactsResponse* response) {
  std::shared_ptr<LaterReactor> reactor = MakeReactor("GetArtifacts", &identity_, &tracker_, &log_);
  LaterReactor* raw = reactor.get();
  logic_.GetArtifacts(*request, identity_,
                      [reactor, response](absl::StatusOr<v1::GetArtifactsResponse> answer) {
                        if (!reactor->Claim()) return;
                        if (answer.ok()) response->Swap(&*answer);
                        reactor->End(answer.status());
                      });
  return raw;
}

grpc::ServerUnaryReactor* FusiondService::Explain(grpc::CallbackServerContext* context,
                                                  const v1::ExplainRequest* request,
                                                  v1::ExplainResponse* response) {
  const absl::Duration start = Now();
  return Answer(context, "Explain", identity_, log_, logic_.Explain(*request), response, start);
}

grpc::ServerUnaryReactor* FusiondService::Devices(grpc::CallbackServerContext* context,
                                                  const v1::DevicesRequest*,
                                                  v1::DevicesResponse* response) {
  const absl::Duration start = Now();
  return Answer(context, "Devices", identity_, log_,
                absl::StatusOr<v1::DevicesResponse>(logic_.Devices()), response, start);
}

grpc::ServerUnaryReactor* FusiondService::Status(grpc::CallbackServerContext* context,
                                                 const v1::StatusRequest*,
                                                 v1::StatusResponse* response) {
  const absl::Duration start = Now();
  return Answer(context, "Status", identity_, log_,
                absl::StatusOr<v1::StatusResponse>(logic_.Status()), response, start);
}

grpc::ServerUnaryReactor* FusiondService::CacheStats(grpc::CallbackServerContext* context,
                                                     const v1::CacheStatsRequest*,
                                                     v1::CacheStatsResponse* response) {
  const absl::Duration start = Now();
  return Answer(context, "CacheStats", identity_, log_,
                absl::StatusOr<v1::CacheStatsResponse>(logic_.CacheStats()), response, start);
}

grpc::ServerUnaryReactor* FusiondService::CacheList(grpc::CallbackServerContext* context,
                                                    const v1::CacheListRequest* request,
                                                    v1::CacheListResponse* response) {
  const absl::Duration start = Now();
  return Answer(context, "CacheList", identity_, log_, logic_.CacheList(*request), response, start);
}

grpc::ServerUnaryReactor* FusiondService::CacheEvict(grpc::CallbackServerContext* context,
                                                     const v1::CacheEvictRequest* request,
                                                     v1::CacheEvictResponse* response) {
  const absl::Duration start = Now();
  return Answer(context, "CacheEvict", identity_, log_, logic_.CacheEvict(*request, identity_),
                response, start);
}

}  // namespace fusiond::server
