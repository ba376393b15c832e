// ChannelServer: channel.sock and the workers behind it.
//
// One thread accepts connections, answers HELLO and LEASE, starts the identity's worker for
// OPEN_DEVICE and passes the connection on; it serves the workers' requests for executables, and
// notices when a worker ends. A worker is one process per (device, identity); when it ends, by
// itself or by a fault, the next OPEN_DEVICE starts another with a new epoch, after a pause that
// grows with quick failures.
//
// Thread-safety: thread-safe; the thread owns all connections and workers. Ownership: cache and
// registry outlive it.
#ifndef FUSIOND_SERVER_CHANNEL_CHANNEL_SERVER_H_
#define FUSIOND_SERVER_CHANNEL_CHANNEL_SERVER_H_

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
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
#include "server/control/control_server.h"
#include "server/devices/registry.h"
#include "server/process/child_process.h"

namespace fusiond::server {

struct ChannelOptions {
  std::vector<std::string> worker_environment;             // "NAME=value": what CUDA needs
  std::string driver_path;                                 // libcuda; empty = by the loader
  int connections_per_identity = 256;                      // not yet passed to a worker
  int leases_per_identity = 4096;                          // live lease connections' pins
  absl::Duration restart_pause = absl::Milliseconds(100);  // after a worker's quick end; doubles
  absl::Duration restart_pause_limit = absl::Seconds(10);
  std::function<void(const std::string&)> log = [](const std::string&) {};
};

class ChannelServer {
 public:
  ChannelServer(ChannelOptions options, channel::UnixListener listener, Admission admit,
                cache::Cache* cache, DeviceRegistry* devices);
  ~ChannelServer();

  absl::Status Start();
  // A connection as if `identity` had opened one (InlineExecutor).
  absl::StatusOr<base::UniqueFd> ConnectAs(const Identity& identity);
  // No more connections; workers are asked to drain.
  void BeginDrain();
  // Ends the thread and every worker.
  void Stop();

  void FillStatus(v1::StatusResponse& status) const;

 private:
  struct Connection {
    std::unique_ptr<channel::SupervisorConnection> channel;
    Identity identity;
    std::vector<cache::Pins::Pin> pins;  // of the leases taken here
  };
  struct Worker {
    std::unique_ptr<ChildProcess> child;
    base::UniqueFd fetch;
    std::string device;
    std::string identity;
    absl::Duration started;
  };
  struct Pause {
    absl::Duration length;
    absl::Duration until;
  };
  using WorkerKey = std::pair<std::string, std::string>;  // device, identity

  void Loop();
  void OnListener();
  void AddConnection(base::UniqueFd fd, const Identity& identity);
  void OnConnection(uint64_t id);
  absl::Status Serve(Connection& connection, const channel::SupervisorConnection::Request& request,
                     bool& passed);
  absl::Status ServeLease(Connection& connection, const base::Digest& digest);
  absl::Status ServeDevice(Connection& connection, const std::string& device, bool& passed);
  absl::StatusOr<Worker*> WorkerFor(const std::string& device, const Identity& identity);
  absl::StatusOr<std::unique_ptr<Worker>> StartWorker(const std::string& device,
                                                      const Identity& identity);
  void OnFetch(uint64_t id);
  void OnWorkerEnd(uint64_t id);
  absl::Status Watch(int fd, uint32_t events, uint64_t id);

  const ChannelOptions options_;
  channel::UnixListener listener_;
  const Admission admit_;
  cache::Cache* const cache_;
  DeviceRegistry* const devices_;
  base::UniqueFd epoll_;
  base::UniqueFd wake_;

  // The thread's own.
  uint64_t next_id_ = 2;
  absl::flat_hash_map<uint64_t, Connection> connections_;
  absl::flat_hash_map<WorkerKey, Pause> pauses_;

  mutable base::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<std::pair<base::UniqueFd, Identity>> handed_in_ ABSL_GUARDED_BY(mutex_);
  // Written by the thread under the mutex. Two ids a worker: its fetch socket's, and, one more, its
  // end's.
  absl::flat_hash_map<uint64_t, std::unique_ptr<Worker>> workers_ ABSL_GUARDED_BY(mutex_);

  std::thread thread_;
};

}  // namespace fusiond::server

#endif  // FUSIOND_SERVER_CHANNEL_CHANNEL_SERVER_H_
