// ControlServer: control.sock. Accepts connections itself, learns the peer's uid, and hands each
// connection to the grpc::Server of that identity.
//
// gRPC does not tell a handler who calls on a Unix socket; a server of its own for every identity
// does, and gives each its own memory quota and connection limit. Servers of the callback API cost
// no thread each.
//
// Thread-safety: thread-safe; one thread of its own accepts. Ownership: the parts outlive it.
#ifndef FUSIOND_SERVER_CONTROL_CONTROL_SERVER_H_
#define FUSIOND_SERVER_CONTROL_CONTROL_SERVER_H_

#include <memory>
#include <string>
#include <thread>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/base/file.h"
#include "runtime/base/mutex.h"
#include "runtime/channel/socket.h"
#include "server/process/heartbeat.h"
#include "server/service/identity.h"
#include "server/service/kept_listener.h"
#include "server/service/service.h"

namespace fusiond::server {

struct ControlOptions {
  size_t memory_per_identity = size_t{256} << 20;  // what gRPC may buffer
  int connections_per_identity = 1024;
  int max_identities = 1024;
  int ping_interval_ms = 5'000;  // of clients that wait, at least
  // A message of a graph at its limit, with its envelope.
  int max_message_bytes = (16 << 20) + (1 << 20);
  KeptListener::Log log = [](const std::string&, const std::string&) {};
};

class ControlServer {
 public:
  ControlServer(const ControlOptions& options, channel::UnixListener listener, Admission admit,
                const ServiceParts& parts);
  // As Stop without grace.
  ~ControlServer();

  // Starts accepting. Health says NOT_SERVING until SetServing.
  absl::Status Start();
  void SetServing() ABSL_LOCKS_EXCLUDED(mutex_);
  // Health turns NOT_SERVING, nothing more is accepted.
  void BeginDrain() ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends every server; calls still running are cancelled after `grace`. Idempotent.
  void Stop(absl::Duration grace) ABSL_LOCKS_EXCLUDED(mutex_);

  // Has the thread look whether control.sock is still in place (KeptListener).
  void LookAfterSocket() const { Wake(); }
  std::string problem() const { return listener_.problem(); }

  size_t connections() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether the thread still turns.
  bool Responds(absl::Duration timeout) const;

 private:
  struct PerIdentity;

  void Wake() const;
  void AcceptLoop();
  bool OnWake() ABSL_LOCKS_EXCLUDED(mutex_);  // false: stop
  void OnHangUp(uint64_t id) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Adopt(channel::AcceptedConnection connection) ABSL_LOCKS_EXCLUDED(mutex_);
  void SetHealth(bool serving) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<PerIdentity*> ServerFor(const Identity& identity)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const ControlOptions options_;
  KeptListener listener_;
  const Admission admit_;
  const ServiceParts parts_;
  base::UniqueFd epoll_;
  base::UniqueFd wake_;
  Heartbeat heartbeat_;

  mutable base::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool serving_ ABSL_GUARDED_BY(mutex_) = false;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  absl::flat_hash_map<std::string, std::unique_ptr<PerIdentity>> servers_ ABSL_GUARDED_BY(mutex_);
  // Our duplicate of each connection's descriptor, watched for hang-up; gRPC owns the original.
  struct Watched {
    base::UniqueFd fd;
    std::string identity;
  };
  absl::flat_hash_map<uint64_t, Watched> watched_ ABSL_GUARDED_BY(mutex_);
  uint64_t next_watched_ ABSL_GUARDED_BY(mutex_) = 2;  // 0 and 1 name the listener and wake_

  std::thread thread_;
};

}  // namespace fusiond::server

#endif  // FUSIOND_SERVER_CONTROL_CONTROL_SERVER_H_
