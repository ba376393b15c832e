// The thread of a worker: serves all sessions of one identity on one Device.
//
// Visits rings round robin, at most `batch` entries a visit; spins while there is or was just work,
// then sleeps in epoll on sockets and eventfds. One session's protocol error ends that session
// alone.
//
// Thread-safety: single-thread (the one that calls Run), except Stop(). Ownership: owns sessions;
// the Device must outlive it.
#ifndef FUSIOND_RUNTIME_CHANNEL_WORKER_LOOP_H_
#define FUSIOND_RUNTIME_CHANNEL_WORKER_LOOP_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/base/file.h"
#include "runtime/channel/device.h"
#include "runtime/channel/messages.h"
#include "runtime/channel/spin.h"
#include "runtime/channel/worker_session.h"

namespace fusiond::channel {

struct WorkerLoopOptions {
  absl::Duration spin = DefaultSpinBudget();
  uint32_t batch = 32;
  uint32_t max_sessions = 1024;
  SessionLimits limits;
  // Told why each session ended (OK after GOODBYE or hang-up).
  std::function<void(const absl::Status&)> on_session_end = [](const absl::Status&) {};
};

class WorkerLoop {
 public:
  static absl::StatusOr<std::unique_ptr<WorkerLoop>> Create(Device* device,
                                                            WorkerLoopOptions options);
  ~WorkerLoop();

  // Random, one a worker life.
  uint64_t epoch() const { return epoch_; }

  // Serves a connection that has said HELLO and OPEN_DEVICE; answers OPEN_DEVICE.
  absl::Status AddConnection(base::UniqueFd connection, const Negotiated& negotiated);
  // Receives one ADOPT message from the supervisor's SOCK_SEQPACKET socket and serves its
  // connection. UNAVAILABLE when the supervisor has hung up: the worker should exit.
  absl::Status AdoptFrom(int supervisor_socket);
  // Calls `on_ready` whenever `fd` is readable or has hung up. `fd` outlives the loop.
  absl::Status Watch(int fd, std::function<void()> on_ready);

  // Serves until Stop(), the end of Drain() (both OK), or Lose() (its status).
  absl::Status Run();
  // Ends Run soon. Thread-safe.
  void Stop();
  // From now on: status page DRAINING, new entries complete with DRAINING, Run ends when nothing is
  // in flight or `grace` has passed.
  void Drain(absl::Duration grace);
  // The device's context is gone: status page LOST, waiting entries complete with CONTEXT_LOST, Run
  // ends with `why`. May be called by the Device from inside its methods.
  void Lose(absl::Status why);

  size_t sessions() const { return sessions_.size(); }

 private:
  WorkerLoop(Device* device, WorkerLoopOptions options, base::UniqueFd epoll, base::UniqueFd stop,
             uint64_t epoch);

  struct Session {
    std::shared_ptr<WorkerSession> session;
    size_t watched_rings = 0;
  };

  bool ServeRings();
  void PublishRings();
  void LookForEntries();
  template <typename Function>
  void ForEachRing(Function function);
  void HandleEvents(absl::Duration timeout);
  void HandleSession(uint64_t id);
  absl::Status WatchNewRings(Session* session);
  void EndSession(uint64_t id, absl::Status why);
  void Sleep(absl::Duration at_most);
  absl::Duration UntilDrained() const;
  void SetState(WorkerState state);

  // Constant after construction.
  Device* const device_;
  const WorkerLoopOptions options_;
  const base::UniqueFd epoll_;
  const base::UniqueFd stop_;
  const uint64_t epoch_;

  bool stopping_ = false;
  WorkerState state_ = WorkerState::kServing;
  absl::Status lost_;
  absl::Duration drain_deadline_ = absl::InfiniteDuration();
  uint64_t next_id_ = 1;
  uint64_t next_ring_id_ = 1;
  absl::flat_hash_map<uint64_t, Session> sessions_;
  absl::flat_hash_map<uint64_t, std::function<void()>> watches_;
};

}  // namespace fusiond::channel

#endif  // FUSIOND_RUNTIME_CHANNEL_WORKER_LOOP_H_
