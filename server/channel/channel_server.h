// ChannelServer: channel.sock. Accepts connections, answers HELLO and LEASE itself, and passes a
// connection that opens a device on to the identity's worker (workers.h).
//
// Thread-safety: thread-safe; a thread of its own holds all connections and workers, and never
// waits for any peer. Ownership: cache, registry and grants outlive it.
#ifndef FUSIOND_SERVER_CHANNEL_CHANNEL_SERVER_H_
#define FUSIOND_SERVER_CHANNEL_CHANNEL_SERVER_H_

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/fusiond/v1/service.pb.h"
#include "runtime/base/file.h"
#include "runtime/base/mutex.h"
#include "runtime/channel/socket.h"
#include "runtime/channel/supervisor_connection.h"
#include "server/cache/cache.h"
#include "server/channel/workers.h"
#include "server/devices/registry.h"
#include "server/process/heartbeat.h"
#include "server/service/grants.h"
#include "server/service/identity.h"
#include "server/service/kept_listener.h"

namespace fusiond::server {

struct ChannelOptions {
  WorkerOptions workers;
  int connections_per_identity = 256;             // not yet passed to a worker
  int leases_per_identity = 4096;                 // of these connections
  absl::Duration hello_limit = absl::Seconds(5);  // from accept to HELLO; then it is closed
};

class ChannelServer {
 public:
  ChannelServer(ChannelOptions options, channel::UnixListener listener, Admission admit,
                cache::Cache* cache, DeviceRegistry* devices, const Grants* grants);
  // As Stop.
  ~ChannelServer();

  absl::Status Start();
  // A connection as if `identity` had opened one (InlineExecutor).
  absl::StatusOr<base::UniqueFd> ConnectAs(const Identity& identity) ABSL_LOCKS_EXCLUDED(mutex_);
  // Nothing more is accepted, no more workers are started; workers are asked to drain.
  void BeginDrain() ABSL_LOCKS_EXCLUDED(mutex_);
  // True when every worker has ended within `timeout`.
  bool WaitUntilDrained(absl::Duration timeout) const { return workers_.WaitUntilNone(timeout); }
  // Ends the thread and every worker. Idempotent.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

  // Has the thread look whether channel.sock is still in place (KeptListener).
  void LookAfterSocket() const { Wake(); }

  void FillStatus(v1::StatusResponse& status) const;
  // Whether the thread still turns.
  bool Responds(absl::Duration timeout) const;

 private:
  struct Connection {
    uint64_t number = 0;
    std::unique_ptr<channel::SupervisorConnection> channel;
    Identity identity;
    bool greeted = false;                // has said HELLO
    int64_t why = 0;                     // the worker whose end it waits to hear of
    std::vector<cache::Pins::Pin> pins;  // of the leases taken here
  };
  // What connections of one identity hold together.
  struct Held {
    int connections = 0;
    int leases = 0;
  };

  absl::Status Watch(int fd, uint32_t events, uint64_t id);
  void Unwatch(int fd);
  void Wake() const;
  void Loop();
  bool OnWake();  // false: stop
  absl::Status OnListener();
  void AddConnection(base::UniqueFd fd, const Identity& identity);
  void RemoveConnection(uint64_t number);
  // Closes connections that have not said HELLO in time. How long until the next must have, in the
  // form of epoll_wait.
  int CloseSilent();
  void OnConnection(uint64_t number);
  // False: the connection is done with.
  bool Serve(Connection& connection, const channel::SupervisorConnection::Request& request);
  absl::Status ServeWhy(Connection& connection);
  // After a worker's end.
  void AnswerWhy();
  absl::Status ServeLease(Connection& connection, const base::Digest& digest);

  const ChannelOptions options_;
  KeptListener listener_;
  const Admission admit_;
  cache::Cache* const cache_;
  DeviceRegistry* const devices_;
  const Grants* const grants_;
  base::UniqueFd epoll_;
  base::UniqueFd wake_;
  Heartbeat heartbeat_;

  // The thread's own.
  uint64_t next_number_ = 0;
  bool refusing_ = false;  // draining, as the thread knows it
  absl::flat_hash_map<uint64_t, Connection> connections_;
  absl::flat_hash_map<std::string, Held> held_;  // by identity
  // By when connections must have said HELLO, in the order of accept; some have, or are gone.
  std::deque<std::pair<absl::Duration, uint64_t>> silent_;
  Workers workers_;

  mutable base::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<std::pair<base::UniqueFd, Identity>> handed_in_ ABSL_GUARDED_BY(mutex_);

  std::thread thread_;
};

}  // namespace fusiond::server

#endif  // FUSIOND_SERVER_CHANNEL_CHANNEL_SERVER_H_
