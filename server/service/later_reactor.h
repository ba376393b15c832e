// LaterReactor: a unary call whose answer may come later and whose caller may leave first. Ends
// exactly once, however these race.
//
// Thread-safety: thread-safe. Ownership: owns itself until gRPC's OnDone; callbacks hold references
// of their own. `parts` and `identity` outlive the call, since the service does.
#ifndef FUSIOND_SERVER_SERVICE_LATER_REACTOR_H_
#define FUSIOND_SERVER_SERVICE_LATER_REACTOR_H_

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "runtime/base/clock.h"
#include "runtime/base/mutex.h"
#include "server/service/service.h"

namespace fusiond::server {

class LaterReactor : public grpc::ServerUnaryReactor {
 public:
  static std::shared_ptr<LaterReactor> Make(const char* rpc, const Identity& identity,
                                            const ServiceParts& parts,
                                            grpc::CallbackServerContext* context);

  // Runs `call` once the daemon is ready, within the identity's quota; else ends the call.
  void Begin(const google::protobuf::MessageLite& request, std::function<void()> call);

  // True for the one who may write the response and must then call End.
  bool Claim() ABSL_LOCKS_EXCLUDED(mutex_);
  void End(const absl::Status& status, std::string key = "", std::string source = "");

  // `cancel`, for one step of the call, drops the caller's interest and says whether the step's
  // callback will not come any more. Called at most once, also when the step is over.
  void AddCancel(std::function<bool()> cancel) ABSL_LOCKS_EXCLUDED(mutex_);
  // The caller has left, or its deadline has passed.
  bool cancelled() const ABSL_LOCKS_EXCLUDED(mutex_);
  // As base::Clock::System().Now(); infinite without one.
  absl::Duration deadline() const { return deadline_; }

  void OnCancel() override ABSL_LOCKS_EXCLUDED(mutex_);
  void OnDone() override { self_.reset(); }
  // OnDone and OnCancel run where gRPC notices, without a hop to a thread of its executor, which
  // would be woken for every call: neither blocks.
  bool InternalInlineable() override { return true; }

 private:
  LaterReactor(const char* rpc, const Identity& identity, const ServiceParts& parts,
               grpc::CallbackServerContext* context);
  void TryCancel() ABSL_LOCKS_EXCLUDED(mutex_);

  const char* const rpc_;
  const Identity& identity_;
  const ServiceParts& parts_;
  grpc::CallbackServerContext& context_;
  const absl::Duration start_ = base::Clock::System().Now();
  const absl::Duration deadline_;
  std::shared_ptr<LaterReactor> self_;

  mutable base::Mutex mutex_;
  std::optional<int64_t> counted_ ABSL_GUARDED_BY(mutex_);  // bytes in the quota
  bool claimed_ ABSL_GUARDED_BY(mutex_) = false;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::function<bool()>> cancels_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fusiond::server

#endif  // FUSIOND_SERVER_SERVICE_LATER_REACTOR_H_
