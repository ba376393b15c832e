// Daemon: the supervisor, put together. Opens the cache, starts compile processes, probes devices,
// listens, serves until told to stop, drains.
//
// Clients can connect as soon as Start returns; calls that compile wait until the compile processes
// have said which NVRTC they have and the first probe is done (StartGate), typically 100 ms.
//
// Thread-safety: single-thread (main's), but for RequestStop and RequestReload, which are
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
  std::string sockets;       // folder for control.sock and channel.sock
  std::string state;         // folder for the cache; empty = memory only
  bool memory_only = false;  // that is as it was asked for
  // Sockets that already listen (socket activation); -1 = made in `sockets`.
  int control_fd = -1;
  int channel_fd = -1;
  // A service admits every uid that can open its sockets; a private daemon only its own.
  bool admit_all = false;
  unsigned socket_mode = 0600;
  bool allow_network_fs = false;

  std::string nvrtc_path;
  std::vector<std::string> nvrtc_folders;
  bool nvrtc_root_owned_only = false;
  int compile_processes = 0;                        // 0 = as many as processors and memory allow
  int64_t compile_memory_bytes = int64_t{1} << 30;  // of one process
  absl::Duration compile_limit = absl::Seconds(60);
  // "NAME=value". Nothing that NVRTC reads options from: keys do not know of them.
  std::vector<std::string> compile_environment;

  std::string driver_path;
  std::vector<std::string> worker_environment;  // also of probes
  std::vector<std::string> worker_arguments;    // besides those that say what it is

  // At most; less where less memory is available (server/README.md).
  int64_t cache_memory_bytes = int64_t{256} << 20;
  int64_t call_memory_bytes = int64_t{1} << 30;  // of one identity
  ir::Limits limits;
  absl::Duration drain_grace = absl::Seconds(5);
  absl::Duration watchdog = absl::ZeroDuration();  // how often `alive` must be called; 0 = never
  std::string version;
  bool log_hits = false;  // also calls that the cache answers
};

// A call whose message is at its limit, its answer, and something besides.
constexpr int64_t kLeastCallMemory = int64_t{40} << 20;

// Exit codes of the daemon, for units and scripts.
enum DaemonExit {
  kDaemonOk = 0,
  kDaemonFailed = 1,
  kDaemonUsage = 2,
  kDaemonAddressInUse = 3,  // another daemon listens there
  kDaemonStateInUse = 4,    // another daemon holds the state folder
};

using LogLine = std::function<void(const std::string& level, const std::string& line)>;

// What main hears of. All are called on its own thread.
struct DaemonEvents {
  // Once calls that compile are served; `cache`: where it is, in words.
  std::function<void(const std::string& cache)> ready = [](const std::string&) {};
  std::function<void()> stopping = [] {};  // when a drain begins
  // A drain waits for this part of ours from here on; a literal.
  std::function<void(const char* part)> waits_for = [](const char*) {};
  std::function<void()> alive = [] {};  // all threads turn
};

class Daemon {
 public:
  // Everything up to listening. ALREADY_EXISTS: another daemon listens there. ABORTED: another
  // daemon holds the state folder.
  static absl::StatusOr<std::unique_ptr<Daemon>> Start(const DaemonOptions& options, LogLine log);
  ~Daemon();

  // Serves until RequestStop, then drains.
  void Run(const DaemonEvents& events);

  // Async-signal-safe.
  void RequestStop();
  // Looks for GPUs and NVRTC once more.
  void RequestReload();

 private:
  struct Parts;
  explicit Daemon(std::unique_ptr<Parts> parts);
  void FollowNvrtc();
  void MakeReady(const DaemonEvents& events);
  std::string DescribeCache() const;
  // Whether what we made on disk is still there; makes it anew where it is not.
  void LookAfterFiles();
  bool AllAlive();
  void Drain(const DaemonEvents& events);

  const std::unique_ptr<Parts> parts_;
};

}  // namespace fusiond::server

#endif  // FUSIOND_SERVER_LIFECYCLE_DAEMON_H_
