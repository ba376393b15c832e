// One compile process as the supervisor sees it: spawned, set up, given one job at a time, killed.
//
// Never blocks: Pump() moves what bytes there are. What arrives is hostile and only cut into frames
// here. The job that runs and its fate are the pool's business.
//
// Thread-safety: single-thread (the pool's loop).
#ifndef FUSIOND_SERVER_POOL_COMPILE_PROCESS_H_
#define FUSIOND_SERVER_POOL_COMPILE_PROCESS_H_

#include <poll.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "proto/fusiond/v1/internal.pb.h"
#include "runtime/base/framing.h"
#include "server/pool/job.h"
#include "server/process/child_process.h"

namespace fusiond::server {

inline constexpr uint32_t kMaxReplyBytes = 64u << 20;

class CompileProcess {
 public:
  enum class State {
    kStarting,  // opens NVRTC, shuts its doors; ends with its CompileReady
    kIdle,
    kBusy,    // `job` is set
    kEnding,  // killed or broken; `job` is set if its fate depends on how the process ends
    kEnded
  };

  // Spawns it and hands it `setup`. Errors: as ChildProcess::Spawn.
  static absl::StatusOr<std::unique_ptr<CompileProcess>> Start(
      const SpawnOptions& spawn, const internal::v1::CompileSetup& setup, absl::Duration now);

  pid_t pid() const { return child_->pid(); }
  // What to wait for: its socket, or its end once that is all that is awaited. A process that dies
  // before shows on the socket.
  pollfd PollFd() const;

  // Whether it has closed its end, as by dying.
  bool HasHungUp() const;

  // Requires: kIdle. `frame` as base::EncodeFrame.
  void Begin(RunningJob job, std::string frame);

  // Sends and receives what is possible now, within a bound. The next message of the process,
  // nullopt if there is none yet; UNAVAILABLE once the process has closed its end,
  // RESOURCE_EXHAUSTED for a message above kMaxReplyBytes.
  absl::StatusOr<std::optional<std::string>> Pump();

  // Sends SIGKILL; kEnding from now on.
  void Kill();
  std::optional<ExitStatus> Reap() { return child_->Reap(); }

  State state = State::kStarting;
  std::optional<RunningJob> job;
  std::string tenant;  // of every job it has had; meaningless while jobs_done == 0
  int jobs_done = 0;
  absl::Duration since;          // when `state` began
  bool ready = false;            // has been past kStarting
  bool without_nvrtc = false;    // told not to open it
  std::string nvrtc_identity;    // once ready; empty without NVRTC
  bool end_expected = false;     // nothing is to be told of its end
  uint64_t last_peak_bytes = 0;  // of its last words

 private:
  explicit CompileProcess(std::unique_ptr<ChildProcess> child) : child_(std::move(child)) {}
  absl::Status Send();
  absl::Status Receive();

  const std::unique_ptr<ChildProcess> child_;
  std::string outgoing_;  // not yet sent
  base::FrameDecoder incoming_{kMaxReplyBytes};
};

}  // namespace fusiond::server

#endif  // FUSIOND_SERVER_POOL_COMPILE_PROCESS_H_
