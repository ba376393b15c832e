// Session: remote launch. Buffers shared with a worker, executables loaded there, launches by one
// ring entry each.
//
//   auto x = session->Allocate(bytes, MemoryKind::kHost);  // x->data() is shared with the worker
//   auto add = session->Load(fusion.executable_digest);
//   session->Run(*add, {{&*a}, {&*b}, {&*out}}, {});  // inputs, outputs; then extents, scalars
//
// Thread-safety: thread-compatible; one session a thread, or one lock around it. Ownership: buffers
// and executables belong to their session and are void once it is lost. Errors: UNAVAILABLE when
// worker or daemon are gone (open a new session: ids are void then), ABORTED when the device's
// context was lost with work in flight, RESOURCE_EXHAUSTED at a quota; bad arguments are named.
// DEADLINE_EXCEEDED when the worker does not answer within SessionOptions::answer_limit (stopped,
// hung, or busy for longer): of Launch, Copy and Wait it leaves the session usable, of any other
// call it ends it. The text names worker, process, launch, executable and what to do.
#ifndef FUSIOND_CLIENT_CC_SESSION_H_
#define FUSIOND_CLIENT_CC_SESSION_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "runtime/base/memfd.h"
#include "runtime/base/sha256.h"
#include "runtime/channel/client_ring.h"
#include "runtime/channel/client_session.h"
#include "runtime/executable/binding.h"
#include "runtime/executable/executable.h"

namespace fusiond::client {

using channel::MemoryKind;

struct Buffer {
  channel::Handle handle;
  uint64_t bytes = 0;
  MemoryKind kind = MemoryKind::kHost;
  base::UniqueFd fd;      // device memory: import it to map the same pages
  base::Mapping mapping;  // host memory

  char* data() const { return mapping.data(); }
};

// A tensor's place: its element 0 stands `offset` bytes into the buffer.
struct Place {
  const Buffer* buffer = nullptr;
  uint64_t offset = 0;
};

struct RemoteExecutable {
  channel::Handle handle;
  base::Digest digest;
  uint32_t tensors =
      0;  // places a launch brings: tensor inputs, then outputs that do not alias an input
  uint32_t extents =
      0;  // numbers: symbolic extents in order, then scalar inputs (i64, or the bits of an f64)
};

// The numbers that a launch of `executable` brings with these inputs.
std::vector<int64_t> LaunchNumbers(const executable::Executable& executable,
                                   absl::Span<const executable::TensorArg> inputs);

struct SessionOptions {
  // How long the worker may take to answer one request, and to complete one launch or copy.
  absl::Duration answer_limit = absl::Minutes(2);
  // Have the worker measure on_device of each launch, which costs a GPU launch some 2 us.
  bool timed = false;
};

struct LaunchTimes {
  absl::Duration queued;     // taken by the worker until started
  absl::Duration on_device;  // started until finished; zero unless SessionOptions::timed
};

class Session {
 public:
  static absl::StatusOr<std::unique_ptr<Session>> Create(
      std::unique_ptr<channel::ClientSession> session, const SessionOptions& options = {});

  // Zeroed memory.
  absl::StatusOr<Buffer> Allocate(uint64_t bytes, MemoryKind kind);
  absl::Status Free(const Buffer& buffer);
  absl::StatusOr<RemoteExecutable> Load(const base::Digest& executable_digest);
  absl::Status Unload(const RemoteExecutable& executable);

  // Queues a launch and returns its number. Launches of one session run in order.
  absl::StatusOr<uint64_t> Launch(const RemoteExecutable& executable,
                                  absl::Span<const Place> tensors,
                                  absl::Span<const int64_t> extents);
  // Copies between host and device buffers, in order with launches.
  absl::StatusOr<uint64_t> Copy(const Place& from, const Place& to, uint64_t bytes);
  // Until launch or copy `number` is done, at most `timeout` (else answer_limit); its own error, if
  // any. Each number may be waited for once, but again after DEADLINE_EXCEEDED: until then the work
  // may still run and touch its buffers.
  absl::StatusOr<LaunchTimes> Wait(uint64_t number, absl::Duration timeout);
  absl::StatusOr<LaunchTimes> Wait(uint64_t number) { return Wait(number, options_.answer_limit); }
  // Launch and Wait.
  absl::StatusOr<LaunchTimes> Run(const RemoteExecutable& executable,
                                  absl::Span<const Place> tensors,
                                  absl::Span<const int64_t> extents);

  // Random, one a worker life; ids are void in another.
  uint64_t epoch() const { return session_->epoch(); }
  // For those who need several rings or their own loop.
  channel::ClientSession& channel_session() { return *session_; }
  channel::ClientRing& ring() { return *ring_; }

 private:
  // A launch or copy that has not been waited for.
  struct Command {
    base::Digest executable;  // zero: a copy
    std::optional<channel::CompletionEntry> done;
  };

  Session(std::unique_ptr<channel::ClientSession> session,
          std::unique_ptr<channel::ClientRing> ring, const SessionOptions& options)
      : session_(std::move(session)), ring_(std::move(ring)), options_(options) {}
  static std::string NameOf(uint64_t number, const Command& command);
  // Makes room for one command, reaping finished ones.
  absl::Status MakeRoom();
  void ReapAll();

  const std::unique_ptr<channel::ClientSession> session_;
  const std::unique_ptr<channel::ClientRing> ring_;
  const SessionOptions options_;
  uint64_t next_number_ = 1;
  absl::flat_hash_map<uint64_t, Command> commands_;  // by number
};

}  // namespace fusiond::client

#endif  // FUSIOND_CLIENT_CC_SESSION_H_
