// What a worker puts behind its sessions: a device that loads executables, owns buffers and runs
// launches and copies.
//
// The session (worker_session.h) owns the names: it hands out handles, resolves and validates them,
// and calls the device only with objects of that session. The device owns execution.
//
// Thread-safety: every method is called on the loop's thread (worker_loop.h), and every callback
// and Ticket must be used there. Ownership: the Device outlives the WorkerLoop. Session objects are
// shared: the session's table holds one reference until UNLOAD, FREE_BUFFER or the session's end; a
// device that works asynchronously holds another (shared_from_this()) until the work is done, so an
// object with work in flight is freed after its last completion and its memory is never reused
// before.
#ifndef FUSIOND_RUNTIME_CHANNEL_DEVICE_H_
#define FUSIOND_RUNTIME_CHANNEL_DEVICE_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "runtime/base/file.h"
#include "runtime/base/sha256.h"
#include "runtime/channel/completion.h"
#include "runtime/channel/layout.h"

namespace fusiond::channel {

class WorkerRing;

// An executable of one session. The device derives its own type. Constant after construction.
class SessionExecutable : public std::enable_shared_from_this<SessionExecutable> {
 public:
  SessionExecutable(uint32_t tensors, uint32_t extents) : tensors_(tensors), extents_(extents) {}
  virtual ~SessionExecutable() = default;
  SessionExecutable(const SessionExecutable&) = delete;
  SessionExecutable& operator=(const SessionExecutable&) = delete;

  // What a LAUNCH must bring, exactly: inputs then outputs, and all symbolic extents.
  uint32_t tensors() const { return tensors_; }
  uint32_t extents() const { return extents_; }

 private:
  const uint32_t tensors_;
  const uint32_t extents_;
};

// Memory of one session. The device derives its own type. Constant after construction.
class SessionBuffer : public std::enable_shared_from_this<SessionBuffer> {
 public:
  explicit SessionBuffer(uint64_t bytes) : bytes_(bytes) {}
  virtual ~SessionBuffer() = default;
  SessionBuffer(const SessionBuffer&) = delete;
  SessionBuffer& operator=(const SessionBuffer&) = delete;

  uint64_t bytes() const { return bytes_; }

 private:
  const uint64_t bytes_;
};

// What the descriptor that goes with a buffer is. Numbers are part of the ABI.
enum class MemoryKind : uint32_t {
  kHost = 1,    // a memfd sealed against resizing
  kDevice = 2,  // an exported device allocation (CUDA VMM, POSIX descriptor)
};

struct AllocatedBuffer {
  std::shared_ptr<SessionBuffer> buffer;
  MemoryKind kind;
  base::UniqueFd fd;  // for the client; the session closes it after sending
};

// The duty to answer one entry. Move-only; answers exactly once: Finish(), or, when dropped
// unfinished, CONTEXT_LOST with reason kDropped. May outlive its session; the answer then reaches
// nobody.
class Ticket {
 public:
  Ticket(std::shared_ptr<WorkerRing> ring, const SubmissionEntry& entry, int64_t taken_ns)
      : ring_(std::move(ring)),
        cookie_(entry.cookie),
        taken_ns_(taken_ns),
        timed_((entry.flags & kTimed) != 0) {}
  Ticket(Ticket&&) = default;
  Ticket& operator=(Ticket&& other) noexcept;
  ~Ticket();

  void Finish(const Outcome& outcome);
  // CLOCK_MONOTONIC when the worker took the entry; Outcome::queue_ns counts from here.
  int64_t taken_ns() const { return taken_ns_; }
  // Whether Outcome::device_ns is asked for; it goes to nobody else.
  bool timed() const { return timed_; }

 private:
  std::shared_ptr<WorkerRing> ring_;  // null when answered
  uint64_t cookie_;
  int64_t taken_ns_;
  bool timed_;
};

// Identifies an ordered stream of work: entries of one ring with one stream slot.
struct StreamKey {
  uint64_t ring;  // unique in the worker's life
  uint32_t slot;
  bool operator==(const StreamKey&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const StreamKey& k) {
    return H::combine(std::move(h), k.ring, k.slot);
  }
};

struct TensorBinding {
  SessionBuffer* buffer;
  uint64_t offset;  // bytes, at most buffer->bytes()
};

// Spans and pointers are valid during the call only; shared_from_this() on the objects to keep
// them.
struct LaunchRequest {
  StreamKey stream;
  SessionExecutable* executable;
  absl::Span<const TensorBinding> tensors;  // executable->tensors() of them
  absl::Span<const int64_t> extents;        // executable->extents() of them, any values
  uint64_t deadline_ns;                     // CLOCK_MONOTONIC, 0 = none; not yet passed
};

// Both ranges are inside their buffers; they do not overlap.
struct CopyRequest {
  StreamKey stream;
  TensorBinding source;
  TensorBinding destination;
  uint64_t bytes;
  uint64_t deadline_ns;
};

class Device {
 public:
  virtual ~Device() = default;

  using LoadCallback = std::function<void(absl::StatusOr<std::shared_ptr<SessionExecutable>>)>;
  // Makes the executable ready to launch. `done` is called once, now or later; other sessions are
  // served meanwhile. Errors: NOT_FOUND (unknown digest), FAILED_PRECONDITION (cannot run here),
  // RESOURCE_EXHAUSTED.
  virtual void Load(const base::Digest& digest, LoadCallback done) = 0;

  // Zeroed memory of exactly `bytes` > 0 bytes. RESOURCE_EXHAUSTED names limit and actual.
  virtual absl::StatusOr<AllocatedBuffer> Allocate(uint64_t bytes, MemoryKind kind) = 0;
  // The client's own memory. Host memory was found sealed against resizing and large enough.
  virtual absl::StatusOr<std::shared_ptr<SessionBuffer>> Import(base::UniqueFd fd, uint64_t bytes,
                                                                MemoryKind kind) = 0;

  // Start work and finish `ticket` now or from Poll(). Work of one stream runs in order of the
  // calls. The device checks tensor extents against buffer bounds and alignment, since only it
  // knows the executable's shapes.
  virtual void Launch(const LaunchRequest& request, Ticket ticket) = 0;
  virtual void Copy(const CopyRequest& request, Ticket ticket) = 0;

  // Finishes tickets of work that has ended. Returns how long the loop may sleep before it polls
  // again: zero = poll on, infinite = nothing is in flight.
  virtual absl::Duration Poll() = 0;
  // The ring is closed: nothing new comes from its streams; work in flight goes on.
  virtual void ForgetRing(uint64_t ring) = 0;
};

}  // namespace fusiond::channel

#endif  // FUSIOND_RUNTIME_CHANNEL_DEVICE_H_
