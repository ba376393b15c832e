// One client connection inside a worker: answers its messages, validates its ring entries, and
// hands work to the Device.
//
// Life: built from an adopted connection → Start() → HandleMessage() whenever the socket is
// readable, ServeRing() in turn → destroyed at GOODBYE, hang-up or a protocol error. Destruction
// drops all names at once; objects and rings with work in flight live until its last completion.
//
// Thread-safety: single-thread (the loop's). Ownership: the Device and limits outlive the session.
#ifndef FUSIOND_RUNTIME_CHANNEL_WORKER_SESSION_H_
#define FUSIOND_RUNTIME_CHANNEL_WORKER_SESSION_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/base/clock.h"
#include "runtime/base/file.h"
#include "runtime/channel/device.h"
#include "runtime/channel/messages.h"
#include "runtime/channel/slot_table.h"
#include "runtime/channel/worker_ring.h"

namespace fusiond::channel {

struct SessionLimits {
  uint32_t max_rings = 64;
  uint32_t max_executables = 16384;
  uint32_t max_buffers = 16384;
  uint32_t stream_slots = 16;                     // a ring
  uint64_t max_ring_bytes = uint64_t{256} << 20;  // shared memory of one session's rings
};

class WorkerSession : public std::enable_shared_from_this<WorkerSession> {
 public:
  // `next_ring_id` is the worker's counter of rings.
  WorkerSession(base::UniqueFd socket, const Negotiated& negotiated, uint64_t epoch,
                const SessionLimits& limits, Device* device, uint64_t* next_ring_id);
  ~WorkerSession();
  WorkerSession(const WorkerSession&) = delete;
  WorkerSession& operator=(const WorkerSession&) = delete;

  int fd() const { return socket_.get(); }
  const std::vector<std::shared_ptr<WorkerRing>>& rings() const { return rings_; }

  // Answers OPEN_DEVICE. A session must be held by a shared_ptr from here on.
  absl::Status Start();
  // Reads and answers one message, if one is there. Any error means that the session must end:
  // UNAVAILABLE after hang-up, CANCELLED after GOODBYE (both a normal end), INVALID_ARGUMENT after
  // a malformed or unexpected message, DEADLINE_EXCEEDED when the client does not read its replies.
  absl::Status HandleMessage();
  // Takes at most `batch` entries of one ring and starts or answers them; returns how many. An
  // error means that the session must end.
  absl::StatusOr<size_t> ServeRing(const std::shared_ptr<WorkerRing>& ring, uint32_t batch);

  // From kDraining on, new entries are answered DRAINING or CONTEXT_LOST and requests UNAVAILABLE.
  void SetState(WorkerState state);
  uint32_t in_flight() const;

 private:
  absl::Status Dispatch(MessageType type, ReceivedMessage& message);
  absl::Status CheckOpen() const;
  absl::Status OnOpenRing(const ReceivedMessage& message);
  absl::Status OnLoad(const ReceivedMessage& message);
  void FinishLoad(absl::StatusOr<std::shared_ptr<SessionExecutable>> loaded);
  absl::Status OnUnload(const ReceivedMessage& message);
  absl::Status OnAllocate(const ReceivedMessage& message);
  absl::Status OnImport(ReceivedMessage& message);
  absl::Status OnFreeBuffer(const ReceivedMessage& message);
  absl::Status OnGoodbye(const ReceivedMessage& message);

  // When a batch was taken; asks the system once, and only if somebody wants to know.
  class TakenTime {
   public:
    int64_t ns() { return ns_ != 0 ? ns_ : ns_ = base::MonotonicNanos(); }

   private:
    int64_t ns_ = 0;
  };
  void ServeEntry(const std::shared_ptr<WorkerRing>& ring, const SubmissionEntry& entry,
                  TakenTime* taken);
  Outcome StartEntry(const std::shared_ptr<WorkerRing>& ring, const SubmissionEntry& entry,
                     TakenTime* taken);
  Outcome StartLaunch(const std::shared_ptr<WorkerRing>& ring, const SubmissionEntry& entry,
                      int64_t taken_ns);
  Outcome StartCopy(const std::shared_ptr<WorkerRing>& ring, const SubmissionEntry& entry,
                    int64_t taken_ns);

  // Constant after construction.
  const base::UniqueFd socket_;
  const Negotiated negotiated_;
  const uint64_t epoch_;
  const SessionLimits limits_;
  Device* const device_;
  uint64_t* const next_ring_id_;

  WorkerState state_ = WorkerState::kServing;
  bool load_pending_ = false;
  uint64_t ring_bytes_ = 0;
  std::vector<std::shared_ptr<WorkerRing>> rings_;
  SlotTable<std::shared_ptr<SessionExecutable>> executables_;
  SlotTable<std::shared_ptr<SessionBuffer>> buffers_;

  // Scratch of one call, kept for its capacity.
  std::vector<SubmissionEntry> batch_;
  std::vector<uint64_t> words_;
  std::vector<TensorBinding> bindings_;
};

}  // namespace fusiond::channel

#endif  // FUSIOND_RUNTIME_CHANNEL_WORKER_SESSION_H_
