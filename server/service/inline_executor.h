// InlineExecutor: Execute's part between a compiled graph and the tensors in the answer.
//
// Opens a session on the caller's own worker, as a client of the channel would, and runs once in
// shared memory. A few threads of its own may wait for workers; calls beyond them queue.
//
// Thread-safety: thread-safe. Ownership: `connect` must work as long as this lives; the destructor
// ends after the running calls.
#ifndef FUSIOND_SERVER_SERVICE_INLINE_EXECUTOR_H_
#define FUSIOND_SERVER_SERVICE_INLINE_EXECUTOR_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "proto/fusiond/v1/service.pb.h"
#include "runtime/base/file.h"
#include "runtime/base/sha256.h"
#include "runtime/executable/executable.h"
#include "server/engine/executor.h"
#include "server/service/logic.h"

namespace fusiond::server {

class InlineExecutor {
 public:
  // A channel connection in the name of `identity`, as if it had been accepted from it.
  using Connect = std::function<absl::StatusOr<base::UniqueFd>(const Identity& identity)>;
  using Callback = std::function<void(absl::StatusOr<v1::ExecuteResponse>)>;

  static constexpr int64_t kMaxOutputBytes = int64_t{16} << 20;

  explicit InlineExecutor(Connect connect, int threads = 4)
      : connect_(std::move(connect)), executor_(threads) {}

  // Runs `executable` (serialised, named by `digest`) on `device`; `done` is called once, on a
  // thread of this object.
  void Run(const Identity& identity, const std::string& device,
           std::shared_ptr<const std::string> executable, const base::Digest& digest,
           std::shared_ptr<const v1::ExecuteRequest> request, Callback done);

 private:
  absl::StatusOr<v1::ExecuteResponse> RunNow(const Identity& identity, const std::string& device,
                                             const std::string& executable,
                                             const base::Digest& digest,
                                             const v1::ExecuteRequest& request);

  const Connect connect_;
  Executor executor_;
};

// Every inline tensor against the executable's inputs: number, dtype, shape, size of the data.
// INVALID_ARGUMENT names input, expected and given.
absl::Status CheckInlineTensors(const executable::Executable& executable,
                                const v1::ExecuteRequest& request);

}  // namespace fusiond::server

#endif  // FUSIOND_SERVER_SERVICE_INLINE_EXECUTOR_H_
