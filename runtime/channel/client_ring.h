// A client thread's way to a worker: queue launches and copies, flush, reap completions.
//
//   ring->Launch({executable, tensors, extents, /*stream_slot=*/0, cookie});
//   ring->Flush();
//   ring->Wait(timeout);  completions = ring->Reap(out);
//
// Every command that was accepted (OK) is answered by exactly one completion, also when the worker
// dies: then with CONTEXT_LOST, after all completions that it still wrote.
//
// Thread-safety: thread-compatible; one ring a thread. Different rings of one session are
// independent. Ownership: keeps what it needs of the session's connection; may outlive the
// ClientSession, whose end it sees as a hang-up.
// Cost: Launch, Copy, Nop, Reap: no allocation, no lock, no system call. Flush: one write when the
// worker sleeps. Wait: spins, then poll.
#ifndef FUSIOND_RUNTIME_CHANNEL_CLIENT_RING_H_
#define FUSIOND_RUNTIME_CHANNEL_CLIENT_RING_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "runtime/base/file.h"
#include "runtime/channel/completion.h"
#include "runtime/channel/region.h"
#include "runtime/channel/ring.h"
#include "runtime/channel/spin.h"

namespace fusiond::channel {

class ClientConnection;

struct LaunchCommand {
  Handle executable{};
  absl::Span<const TensorArgument> tensors;  // inputs, then outputs
  absl::Span<const int64_t> extents;         // all symbolic extents
  uint32_t stream_slot = 0;
  uint64_t cookie = 0;
  // As base::Clock::System().Now(); infinite = none.
  absl::Duration deadline = absl::InfiniteDuration();
  bool timed = false;  // the completion carries device_ns (layout.h, kTimed)
};

struct CopyCommand {
  TensorArgument source{};
  TensorArgument destination{};
  uint64_t bytes = 0;
  uint32_t stream_slot = 0;
  uint64_t cookie = 0;
  absl::Duration deadline = absl::InfiniteDuration();
};

class ClientRing {
 public:
  // From ClientSession::OpenRing. `connection` is watched for hang-up; `abi_minor` as negotiated.
  static absl::StatusOr<std::unique_ptr<ClientRing>> Create(
      std::shared_ptr<ClientConnection> connection, int region_a_fd, int region_b_fd,
      base::UniqueFd wake_worker, base::UniqueFd wake_client, const RingGeometry& geometry,
      absl::Duration spin, uint16_t abi_minor);
  ~ClientRing();

  // Queue one command. RESOURCE_EXHAUSTED: no credit (reap completions) or the argument slab is
  // full (the worker has to catch up); INVALID_ARGUMENT: more tensors or extents than an entry can
  // carry; ABORTED: the session is lost.
  absl::Status Launch(const LaunchCommand& command);
  absl::Status Copy(const CopyCommand& command);
  absl::Status Nop(uint64_t cookie, uint32_t stream_slot = 0);

  // Hands queued commands to the worker.
  void Flush();

  // Takes completions that have arrived; their `cookie` is the command's. Never blocks.
  size_t Reap(absl::Span<CompletionEntry> out);
  // As channel::ToStatus, with the worker that is lost or drains, why, and what to do then. Asks
  // the daemon once a lost worker, which may take a few seconds.
  absl::Status StatusOf(const CompletionEntry& completion) const;
  // Flushes, then waits until Reap would return something. DEADLINE_EXCEEDED after `timeout`,
  // naming the worker (the ring stays usable, and what is outstanding outstanding);
  // FAILED_PRECONDITION when nothing is outstanding.
  absl::Status Wait(absl::Duration timeout);

  // For event loops: while BeginWait() has returned true, wake_fd() becomes readable when
  // completions arrive. Hang-up shows on session_fd() (poll for POLLRDHUP). Call EndWait() before
  // the next Reap. False: completions are there already.
  [[nodiscard]] bool BeginWait();
  void EndWait();
  int wake_fd() const { return wake_client_.get(); }
  int session_fd() const;

  uint32_t outstanding() const { return outstanding_; }
  uint32_t credits() const { return geometry_.entries - outstanding_; }
  WorkerState worker_state() const;

 private:
  ClientRing(std::shared_ptr<ClientConnection> connection, ClientRegions regions,
             base::UniqueFd wake_worker, base::UniqueFd wake_client, const RingGeometry& geometry,
             absl::Duration spin, uint16_t abi_minor);

  absl::Status CheckRoom() const;
  SubmissionEntry& NewEntry(Opcode opcode, uint32_t stream_slot, uint64_t cookie,
                            absl::Duration deadline);
  bool Untrack(CompletionEntry* completion);
  size_t ReapLost(absl::Span<CompletionEntry> out);
  bool Ready() const;
  bool Look() const;
  absl::Status SleepUntil(absl::Duration start, absl::Duration timeout);

  // Constant after construction.
  const std::shared_ptr<ClientConnection> connection_;
  const ClientRegions regions_;
  const base::UniqueFd wake_worker_;
  const base::UniqueFd wake_client_;
  const RingGeometry geometry_;
  const absl::Duration spin_;
  const bool knows_timed_;  // the worker does

  SubmissionProducer submissions_;
  CompletionConsumer completions_;

  // What is outstanding. The cookie on the wire is (generation << 32 | slot), so that an answer
  // that was never asked for is noticed.
  struct Pending {
    uint64_t cookie = 0;
    uint64_t sequence = 0;  // order of submission; 0 = free
    uint32_t generation = 0;
  };
  std::vector<Pending> pending_;
  std::vector<uint32_t> free_;
  uint64_t next_sequence_ = 1;
  uint32_t outstanding_ = 0;
};

}  // namespace fusiond::channel

#endif  // FUSIOND_RUNTIME_CHANNEL_CLIENT_RING_H_
