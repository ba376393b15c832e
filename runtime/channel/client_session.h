// The client's end of the channel: greet the supervisor, take leases, open a device, and then ask
// the worker for rings, executables and buffers.
//
//   SupervisorClient::Connect(path) → Lease(digest)…
//                                   → OpenDevice("cpu") → ClientSession → OpenRing, Load, Allocate
//
// A session is bound to one worker life (epoch). When the worker or the daemon goes away, every
// call returns UNAVAILABLE, rings answer what was outstanding with CONTEXT_LOST, all handles are
// void; connect again for a new session. A peer that does not answer (stopped, hung) is waited for
// no longer than ClientOptions::call_timeout: DEADLINE_EXCEEDED names it and ends the session.
#ifndef FUSIOND_RUNTIME_CHANNEL_CLIENT_SESSION_H_
#define FUSIOND_RUNTIME_CHANNEL_CLIENT_SESSION_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "runtime/base/file.h"
#include "runtime/base/mutex.h"
#include "runtime/base/sha256.h"
#include "runtime/channel/client_ring.h"
#include "runtime/channel/device.h"
#include "runtime/channel/messages.h"

namespace fusiond::channel {

// The socket of a client, shared by its session and rings. Thread-safe.
class ClientConnection {
 public:
  // `peer`: how errors name the other end.
  ClientConnection(base::UniqueFd socket, absl::Duration timeout, std::string peer)
      : socket_(std::move(socket)), timeout_(timeout), peer_(std::move(peer)) {}

  int fd() const { return socket_.get(); }
  const std::string& peer() const { return peer_; }
  // From OpenDevice, before rings and threads share the connection.
  void SetPeer(std::string peer) { peer_ = std::move(peer); }

  // Sends a request and receives its reply. One at a time. Anything but a well-formed reply within
  // the timeout closes the connection, since later replies could not be told apart.
  absl::StatusOr<ReceivedMessage> Call(absl::string_view request, absl::Span<const int> fds);

  // True once the peer has hung up or the connection was closed; sticky. Check() asks the system,
  // lost() only remembers.
  bool Check();
  bool lost() const { return lost_.load(std::memory_order_acquire); }
  // Ends the connection for both sides.
  void Close();

  // How the daemon may be asked why the peer, a worker, ended; from OpenDevice, as SetPeer.
  void SetWhy(std::function<absl::StatusOr<std::string>()> ask_why) {
    ask_why_ = std::move(ask_why);
  }
  // Who is gone and, where the daemon says so, why: "the worker of cpu, …, killed by signal 9
  // (KILL)". Asked once, and not after Close. Blocks, a few seconds at most where the daemon does
  // not answer.
  std::string Obituary();

 private:
  const base::UniqueFd socket_;
  const absl::Duration timeout_;
  std::string peer_;
  std::function<absl::StatusOr<std::string>()> ask_why_;
  base::Mutex mutex_;  // held for one Call
  base::Mutex why_mutex_;
  std::optional<std::string> why_ ABSL_GUARDED_BY(why_mutex_);  // empty: nobody says
  std::atomic<bool> lost_{false};
};

class ClientSession {
 public:
  // From SupervisorClient::OpenDevice.
  ClientSession(std::shared_ptr<ClientConnection> connection, const Negotiated& negotiated,
                const OpenDeviceReply& opened);
  // Hangs up: the worker drops everything of this session.
  ~ClientSession();

  // All thread-safe, blocking for one round trip. Errors: UNAVAILABLE (session over), and what the
  // worker answers.

  // `spin`: how long Wait() looks before it sleeps.
  absl::StatusOr<std::unique_ptr<ClientRing>> OpenRing(const RingGeometry& geometry = {},
                                                       absl::Duration spin = DefaultSpinBudget());
  struct LoadedExecutable {
    Handle handle;
    uint32_t tensors;  // that a launch must bring: inputs, then outputs
    uint32_t extents;
  };
  absl::StatusOr<LoadedExecutable> Load(const base::Digest& digest);
  absl::Status Unload(Handle executable);

  struct RemoteBuffer {
    Handle handle;
    uint64_t bytes;
    MemoryKind kind;
    base::UniqueFd fd;  // kHost: a memfd sealed against resizing (checked), to be mapped
  };
  absl::StatusOr<RemoteBuffer> Allocate(uint64_t bytes, MemoryKind kind);
  // `fd` stays the caller's. kHost memory must be a memfd sealed SHRINK and GROW.
  absl::StatusOr<Handle> Import(int fd, uint64_t bytes, MemoryKind kind);
  // The handle is void at once; memory with work in flight is kept until that is done.
  absl::Status Free(Handle buffer);
  // Tells the worker that this is a wanted end, and waits until it knows.
  absl::Status Goodbye();

  uint64_t epoch() const { return epoch_; }
  uint32_t stream_slots() const { return stream_slots_; }
  uint64_t features() const { return features_; }
  // How errors name the worker: device, process, epoch.
  const std::string& peer() const { return connection_->peer(); }
  // True once the worker or daemon has gone; asks the system.
  bool Lost() { return connection_->Check(); }

 private:
  const std::shared_ptr<ClientConnection> connection_;
  const uint64_t features_;
  const uint16_t abi_minor_;
  const uint64_t epoch_;
  const uint32_t stream_slots_;
};

struct ClientOptions {
  absl::Duration connect_timeout = absl::Seconds(5);
  absl::Duration call_timeout = absl::Seconds(60);  // for each answer, of daemon and worker
};

// A connection that is still the supervisor's. Thread-safe, except that OpenDevice consumes it.
class SupervisorClient {
 public:
  // Connects and says HELLO. UNAVAILABLE when no daemon listens at `path`; FAILED_PRECONDITION
  // naming both ABI versions.
  static absl::StatusOr<SupervisorClient> Connect(const std::string& path,
                                                  const ClientOptions& options = {});
  // Says HELLO on a connected socket, whose other end errors name as `peer`.
  static absl::StatusOr<SupervisorClient> Greet(base::UniqueFd socket,
                                                const ClientOptions& options = {},
                                                std::string peer = "the daemon");
  // Where another socket of the same daemon comes from; Connect's own is its path. Without one,
  // errors do not say why a worker ended.
  void SetReconnect(std::function<absl::StatusOr<base::UniqueFd>()> reconnect) {
    reconnect_ = std::move(reconnect);
  }

  // An immutable memfd (seals checked) with the serialised executable, `bytes` long.
  struct LeasedExecutable {
    base::UniqueFd fd;
    uint64_t bytes;
  };
  absl::StatusOr<LeasedExecutable> Lease(const base::Digest& digest);

  // How the worker with this process id, of the same identity, ended; waits until it has. NOT_FOUND
  // where the daemon knows of none, UNIMPLEMENTED where it is older than the question.
  absl::StatusOr<std::string> WhyEnded(uint32_t process);

  // `device`: "cpu" or a device UUID.
  absl::StatusOr<std::unique_ptr<ClientSession>> OpenDevice(absl::string_view device);

  const Negotiated& negotiated() const { return negotiated_; }

 private:
  SupervisorClient(std::shared_ptr<ClientConnection> connection, const Negotiated& negotiated)
      : connection_(std::move(connection)), negotiated_(negotiated) {}

  std::shared_ptr<ClientConnection> connection_;
  Negotiated negotiated_;
  std::function<absl::StatusOr<base::UniqueFd>()> reconnect_;
};

}  // namespace fusiond::channel

#endif  // FUSIOND_RUNTIME_CHANNEL_CLIENT_SESSION_H_
