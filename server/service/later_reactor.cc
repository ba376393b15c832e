#include "server/service/later_reactor.h"

#include <chrono>
#include <utility>

#include "server/status_convert.h"

namespace fusiond::server {
namespace {

// gRPC's deadlines are of the wall clock; ours are not (F40).
absl::Duration MonotonicDeadline(std::chrono::system_clock::time_point deadline) {
  if (deadline == std::chrono::system_clock::time_point::max()) return absl::InfiniteDuration();
  return base::Clock::System().Now() +
         absl::FromChrono(deadline - std::chrono::system_clock::now());
}

}  // namespace

LaterReactor::LaterReactor(const char* rpc, const Identity& identity, const ServiceParts& parts,
                           grpc::CallbackServerContext* context)
    : rpc_(rpc),
      identity_(identity),
      parts_(parts),
      context_(*context),
      deadline_(MonotonicDeadline(context->deadline())) {
  parts_.tracker->Begin();
}

std::shared_ptr<LaterReactor> LaterReactor::Make(const char* rpc, const Identity& identity,
                                                 const ServiceParts& parts,
                                                 grpc::CallbackServerContext* context) {
  std::shared_ptr<LaterReactor> reactor(new LaterReactor(rpc, identity, parts, context));
  reactor->self_ = reactor;
  return reactor;
}

void LaterReactor::Begin(const google::protobuf::MessageLite& request, std::function<void()> call) {
  const int64_t bytes = BytesOfCall(request);
  absl::Status status = parts_.quotas->Begin(identity_.Name(), bytes);
  if (status.ok()) {
    {
      base::MutexLock lock(&mutex_);
      counted_ = bytes;
    }
    if (parts_.gate->Pass(std::move(call))) return;
    status = StartGate::Full();
  }
  if (Claim()) End(status);
}

bool LaterReactor::Claim() {
  base::MutexLock lock(&mutex_);
  return !std::exchange(claimed_, true);
}

void LaterReactor::End(const absl::Status& status, std::string key, std::string source) {
  parts_.log({rpc_, &identity_, status, std::move(key), std::move(source),
              base::Clock::System().Now() - start_});
  std::optional<int64_t> counted;
  {
    base::MutexLock lock(&mutex_);
    counted = counted_;
  }
  if (counted) parts_.quotas->End(identity_.Name(), *counted, status);
  parts_.tracker->End(status.ok());
  Finish(ToGrpc(status, context_));
}

void LaterReactor::AddCancel(std::function<bool()> cancel) {
  bool now;
  {
    base::MutexLock lock(&mutex_);
    cancels_.push_back(std::move(cancel));
    now = cancelled_;
  }
  if (now) TryCancel();
}

bool LaterReactor::cancelled() const {
  base::MutexLock lock(&mutex_);
  return cancelled_;
}

void LaterReactor::OnCancel() {
  {
    base::MutexLock lock(&mutex_);
    cancelled_ = true;
  }
  TryCancel();
}

void LaterReactor::TryCancel() {
  std::vector<std::function<bool()>> cancels;
  {
    base::MutexLock lock(&mutex_);
    cancels.swap(cancels_);
  }
  for (const std::function<bool()>& cancel : cancels) {
    if (cancel() && Claim()) End(absl::CancelledError("cancelled by the caller"));
  }
}

}  // namespace fusiond::server
