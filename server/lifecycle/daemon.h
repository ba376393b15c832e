// Daemon: the supervisor, put together. Opens the cache, starts compile processes, probes devices,
// listens, serves until told to stop, drains.
//
// Thread-safety: single-thread (main's), but for RequestStop and RequestProbe, which are
// async-signal-safe.
#ifndef FUSIOND_SERVER_LIFECYCLE_DAEMON_H_
#define FUSIOND_SERVER_LIFECYCLE_DAEMON_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "compiler/ir/limits.h"

namespace fusiond::server {

struct DaemonOptions {
  std::string sockets;  // folder for control.sock and channel.sock
  std::string state;    // folder for the cache; empty = memory only
  bool admit_all =
      false;  // a service admits every uid that can open its sockets; a private daemon only its own
  unsigned socket_mode = 0600;
  bool allow_network_fs = false;

  std::string nvrtc_path;
  std::vector<std::string> nvrtc_folders;
  bool nvrtc_root_owned_only = false;
  int compile_processes = 0;                        // 0 = as many as processors and memory allow
  int64_t compile_memory_bytes = int64_t{4} << 30;  // of one process
  absl::Duration compile_limit = absl::Seconds(60);

  std::string driver_path;
  std::vector<std::string> worker_environment;

  int64_t cache_memory_bytes = int64_t{256} << 20;
  ir::Limits limits;
  absl::Duration drain_grace = absl::Seconds(5);
  std::string version;
};

// Exit codes of the daemon, for units and scripts.
enum DaemonExit {
  kDaemonOk = 0,
  kDaemonFailed = 1,
  kDaemonUsage = 2,
  kDaemonAddressInUse = 3,  // another daemon listens there
  kDaemonStateInUse = 4,    // another daemon holds the state folder
};

using LogLine = std::function<void(const std::string& level, const std::string& line)>;

class Daemon {
 public:
  // Everything up to listening. ALREADY_EXISTS: another daemon listens there. ABORTED: another
  // daemon holds the state folder.
  static absl::StatusOr<std::unique_ptr<Daemon>> Start(const DaemonOptions& options, LogLine log);
  ~Daemon();

  // Serves until RequestStop, then drains. `ready` is called once clients are served, `stopping`
  // when a drain begins.
  void Run(const std::function<void()>& ready, const std::function<void()>& stopping);

  // Async-signal-safe.
  void RequestStop();
  void RequestProbe();

 private:
  struct Parts;
  explicit Daemon(std::unique_ptr<Parts> parts);
  void ProbeDevices();
  void FollowNvrtc();
  void Drain();

  const std::unique_ptr<Parts> parts_;
};

}  // namespace fusiond::server

#endif  // FUSIOND_SERVER_LIFECYCLE_DAEMON_H_
