#include "server/service/warm.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/clock.h"
#include "server/service/warm_run.h"
#include "server/status_convert.h"

namespace fusiond::server {
namespace {

class WarmReactor : public grpc::ServerWriteReactor<v1::WarmEvent>, public WarmRun::Output {
 public:
  WarmReactor(const ServiceParts& parts, const Identity& identity, const v1::WarmRequest& request,
              grpc::CallbackServerContext* context)
      : parts_(parts), identity_(identity), context_(*context), bytes_(BytesOfCall(request)) {
    parts_.tracker->Begin();
    FusiondLogic* const logic = parts.logic;
    WarmRun::Compiler compiler;
    compiler.compile = [logic, identity](const v1::CompileRequest& compile,
                                         WarmRun::Compiler::Callback done) {
      return logic->Compile(compile, identity, CompilePriority::kLow, std::move(done));
    };
    compiler.cancel = [logic](const CompileEngine::Ticket& ticket) {
      return logic->CancelCompile(ticket);
    };
    compiler.draining = [logic] { return logic->draining(); };
    compiler.max_items = logic->options().max_warm_items;
    run_ = std::make_shared<WarmRun>(std::move(compiler), request, this);
  }

  void Start() {
    const absl::Status within = parts_.quotas->Begin(identity_.Name(), bytes_);
    if (!within.ok()) return run_->Refuse(within);
    counted_ = true;
    if (!parts_.gate->Pass([run = run_] { run->Start(); })) run_->Refuse(StartGate::Full());
  }

  void Write(const v1::WarmEvent* event) override {
    if (event->has_summary()) summary_ = event->summary();
    StartWrite(event);
  }
  void End(const absl::Status& status) override {
    parts_.log({"Warm", &identity_, status, "",
                absl::StrCat("total:", summary_.total(), ",compiled:", summary_.compiled(),
                             ",cached:", summary_.cached(), ",failed:", summary_.failed()),
                base::Clock::System().Now() - start_});
    if (counted_) parts_.quotas->End(identity_.Name(), bytes_, status);
    parts_.tracker->End(status.ok());
    Finish(ToGrpc(status, context_));
  }

  void OnWriteDone(bool ok) override { run_->Written(ok); }
  void OnCancel() override { run_->Cancel(); }
  void OnDone() override { delete this; }

 private:
  const ServiceParts& parts_;
  const Identity& identity_;
  grpc::CallbackServerContext& context_;
  const absl::Duration start_ = base::Clock::System().Now();
  const int64_t bytes_;
  bool counted_ = false;
  v1::WarmEvent::Summary summary_;
  std::shared_ptr<WarmRun> run_;
};

}  // namespace

grpc::ServerWriteReactor<v1::WarmEvent>* StartWarm(const ServiceParts& parts,
                                                   const Identity& identity,
                                                   const v1::WarmRequest& request,
                                                   grpc::CallbackServerContext* context) {
  auto* reactor = new WarmReactor(parts, identity, request, context);
  reactor->Start();
  return reactor;
}

}  // namespace fusiond::server
