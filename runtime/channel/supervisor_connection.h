// The supervisor's part of a channel connection: from accept until the connection is passed to a
// worker.
//
// Thread-safety: single-thread (the accept loop's). Never blocks: call Next() when the socket is
// readable. Any error of Next() means: close.
#ifndef FUSIOND_RUNTIME_CHANNEL_SUPERVISOR_CONNECTION_H_
#define FUSIOND_RUNTIME_CHANNEL_SUPERVISOR_CONNECTION_H_

#include <string>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/base/file.h"
#include "runtime/base/sha256.h"
#include "runtime/channel/messages.h"

namespace fusiond::channel {

class SupervisorConnection {
 public:
  explicit SupervisorConnection(base::UniqueFd socket) : socket_(std::move(socket)) {}

  struct HelloDone {};  // HELLO was answered
  struct LeaseRequest {
    base::Digest digest;
  };
  struct DeviceRequest {
    std::string device;  // as the client named it: "cpu" or a UUID
  };
  struct WhyRequest {
    uint32_t process;  // the worker whose end is asked for
  };
  using Request = std::variant<HelloDone, LeaseRequest, DeviceRequest, WhyRequest>;

  int fd() const { return socket_.get(); }

  // Reads one message. HELLO is answered here (a wrong ABI major gets its FAILED_PRECONDITION and
  // is then returned as an error). Errors: UNAVAILABLE (hang-up), DEADLINE_EXCEEDED (nothing there:
  // the one error after which the connection stays), INVALID_ARGUMENT (malformed or out of order),
  // FAILED_PRECONDITION (ABI).
  absl::StatusOr<Request> Next();

  // Answers a LeaseRequest: `memfd` immutable (base::CreateImmutable), `bytes` long.
  absl::Status SendLease(int memfd, uint64_t bytes);
  absl::Status RefuseLease(const absl::Status& why);

  // Answers a WhyRequest.
  absl::Status SendWhy(const absl::StatusOr<std::string>& how);

  // Answers a DeviceRequest: refuse it (the client may ask again), or pass the connection to the
  // worker that listens at the other end of `worker_socket` (WorkerLoop::AdoptFrom) and close our
  // copy.
  absl::Status RefuseDevice(const absl::Status& why);
  absl::Status PassTo(int worker_socket, absl::Duration timeout) &&;

 private:
  base::UniqueFd socket_;
  bool greeted_ = false;
  Negotiated negotiated_;
};

}  // namespace fusiond::channel

#endif  // FUSIOND_RUNTIME_CHANNEL_SUPERVISOR_CONNECTION_H_
