// InlineExecutor: Execute's part between a compiled graph and the tensors in the answer.
//
// Opens a session on the caller's own worker, as a client of the channel would, and runs once in
// shared memory. Threads of its own wait for workers, a few for each identity; calls beyond them
// queue, and an identity whose worker is stuck holds up no other.
//
// Thread-safety: thread-safe. Ownership: `connect` must work as long as this lives; the destructor
// ends after the running calls.
#ifndef FUSIOND_SERVER_SERVICE_INLINE_EXECUTOR_H_
#define FUSIOND_SERVER_SERVICE_INLINE_EXECUTOR_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/fusiond/v1/service.pb.h"
#include "runtime/base/file.h"
#include "runtime/executable/executable.h"
#include "server/service/fair_executor.h"
#include "server/service/identity.h"

namespace fusiond::server {

class InlineExecutor {
 public:
  // A channel connection in the name of `identity`, as if it had been accepted from it.
  using Connect = std::function<absl::StatusOr<base::UniqueFd>(const Identity& identity)>;
  using Callback = std::function<void(absl::StatusOr<v1::ExecuteResponse>)>;

  static constexpr int kThreads = 64;
  static constexpr int kThreadsPerIdentity = 4;
  static constexpr int64_t kMaxOutputBytes = int64_t{16} << 20;

  struct Call {
    Identity identity;
    std::string device;
    const v1::ExecuteRequest* request = nullptr;         // lives until the callback has been called
    std::shared_ptr<v1::CompileResponse> compiled;       // with the executable, which is taken out
    absl::Duration deadline = absl::InfiniteDuration();  // as base::Clock::System().Now()
    std::function<bool()> cancelled = [] { return false; };
  };

  explicit InlineExecutor(Connect connect)
      : connect_(std::move(connect)), executor_(kThreads, kThreadsPerIdentity) {}

  // Runs what was compiled; `done` is called once, on a thread of this object unless the call is
  // refused. Errors: as the channel's and the launch's; CANCELLED and DEADLINE_EXCEEDED leave the
  // launch to its worker; RESOURCE_EXHAUSTED: no thread can be started for it. The answer names the
  // call for Drop.
  uint64_t Run(Call call, Callback done);
  // Ends a call that still waits for a thread, with CANCELLED; a running one looks at
  // Call::cancelled by itself.
  void Drop(uint64_t name) { executor_.Withdraw(name); }

 private:
  absl::StatusOr<v1::ExecuteResponse> RunNow(const Call& call);

  const Connect connect_;
  FairExecutor executor_;
};

// Every inline tensor against the executable's inputs: number, dtype, shape, size of the data.
// INVALID_ARGUMENT names input, expected and given.
absl::Status CheckInlineTensors(const executable::Executable& executable,
                                const v1::ExecuteRequest& request);

}  // namespace fusiond::server

#endif  // FUSIOND_SERVER_SERVICE_INLINE_EXECUTOR_H_
