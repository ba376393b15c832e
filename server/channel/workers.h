// Workers: one process per (device, identity), started when a client opens the device.
//
// A worker that ends, by itself or by a fault, is replaced at the next OPEN_DEVICE by another with
// a new epoch, after a pause that grows with quick failures. Each worker has two sockets: over one
// it is given clients' connections, over the other it asks for executables.
//
// Thread-safety: single-thread (the channel server's); List, Ends, HowEnded, counts and
// WaitUntilNone from any thread. Nothing blocks: a worker that does not read what it is sent is
// refused new connections, and is killed where the lost message would leave it waiting for ever.
// Ownership: cache and grants outlive it; the destructor does as KillAll.
#ifndef FUSIOND_SERVER_CHANNEL_WORKERS_H_
#define FUSIOND_SERVER_CHANNEL_WORKERS_H_

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "runtime/base/clock.h"
#include "runtime/base/file.h"
#include "runtime/base/mutex.h"
#include "runtime/channel/supervisor_connection.h"
#include "server/cache/cache.h"
#include "server/process/child_process.h"
#include "server/service/grants.h"
#include "server/service/identity.h"

namespace fusiond::server {

struct WorkerOptions {
  std::vector<std::string> environment;                    // "NAME=value": what CUDA needs
  std::vector<std::string> arguments;                      // besides role, device and driver
  std::string driver_path;                                 // libcuda; empty = by the loader
  absl::Duration restart_pause = absl::Milliseconds(100);  // after a worker's quick end; doubles
  absl::Duration restart_pause_limit = absl::Seconds(10);
  std::function<void(const std::string& level, const std::string& line)> log =
      [](const std::string&, const std::string&) {};
};

class Workers {
 public:
  enum class Event { kFetch, kEnd };
  // Adds a descriptor to the loop: OnEvent(event, number) when it is readable or hangs up.
  using Watch = std::function<absl::Status(int fd, Event event, uint64_t number)>;
  using Unwatch = std::function<void(int fd)>;

  struct Info {
    std::string device;
    std::string identity;
    pid_t pid = 0;
  };
  struct End {
    Info worker;
    std::string how;  // "killed by signal 9 (KILL), not by the daemon"; whole characters, one line
    absl::Duration at;
  };

  Workers(WorkerOptions options, cache::Cache* cache, const Grants* grants, Watch watch,
          Unwatch unwatch);
  ~Workers() { KillAll(); }

  // Hands the connection to the identity's worker of `device`, which is started if there is none.
  // On an error the connection is still the caller's. UNAVAILABLE: after quick failures, or while
  // the worker does not take connections; otherwise as ChildProcess::Spawn.
  absl::Status Adopt(const std::string& device, const Identity& identity,
                     channel::SupervisorConnection& connection);
  // What Watch announced.
  void OnEvent(Event event, uint64_t number);
  // Asks every worker to drain.
  void Terminate();
  // How the identity's worker with this process id ended, the last one that had it: UNAVAILABLE
  // while it runs, NOT_FOUND where none is remembered.
  absl::StatusOr<std::string> HowEnded(const Identity& identity, int64_t pid) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Kills every worker and waits.
  void KillAll();

  std::vector<Info> List() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Of the last ones, the latest last.
  std::deque<End> Ends() const ABSL_LOCKS_EXCLUDED(mutex_);
  struct Counts {
    uint64_t started = 0;
    uint64_t lost = 0;  // ended otherwise than by themselves
  };
  Counts counts() const ABSL_LOCKS_EXCLUDED(mutex_);
  // True when no worker is left within `timeout`.
  bool WaitUntilNone(absl::Duration timeout) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Worker {
    std::unique_ptr<ChildProcess> child;
    base::UniqueFd fetch;
    std::string device;
    Identity identity;
    absl::Duration started;
    std::string killed_for;  // by us; empty: not
    uint64_t oom_kills = 0;  // of the whole machine, when it started
    bool ending = false;     // gets no more connections; its end event is awaited
  };
  struct Pause {
    absl::Duration length;
    absl::Duration until;
  };
  using Key = std::pair<std::string, std::string>;  // device, identity

  Worker* Find(const std::string& device, const std::string& identity);
  absl::StatusOr<Worker*> FindOrStart(const std::string& device, const Identity& identity);
  absl::StatusOr<std::unique_ptr<Worker>> Start(const std::string& device,
                                                const Identity& identity);
  void AnswerFetches(Worker& worker);
  // No more connections for it: it ends by itself, or, with Kill, at once.
  void Retire(Worker& worker);
  void Kill(Worker& worker, absl::string_view why);
  static std::string DescribeEnd(const Worker& worker, const std::optional<ExitStatus>& exit);
  void OnEnded(uint64_t number);
  void NoteEnd(const Worker& worker, bool clean);
  void Publish() ABSL_LOCKS_EXCLUDED(mutex_);

  const WorkerOptions options_;
  cache::Cache* const cache_;
  const Grants* const grants_;
  const Watch watch_;
  const Unwatch unwatch_;

  uint64_t next_number_ = 0;
  absl::flat_hash_map<uint64_t, std::unique_ptr<Worker>> workers_;
  absl::flat_hash_map<Key, Pause> pauses_;

  mutable base::Mutex mutex_;
  mutable base::CondVar changed_;
  std::vector<Info> list_ ABSL_GUARDED_BY(mutex_);  // of workers_, for other threads
  std::deque<End> ends_ ABSL_GUARDED_BY(mutex_);
  Counts counts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fusiond::server

#endif  // FUSIOND_SERVER_CHANNEL_WORKERS_H_
