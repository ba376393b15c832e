#include "runtime/channel/client_ring.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/clock.h"
#include "runtime/base/status_macros.h"
#include "runtime/channel/client_session.h"

namespace fusiond::channel {
namespace {

// How often the ring is looked at between looks at the clock.
constexpr int kLooks = 32;

uint64_t DeadlineNanos(absl::Duration deadline) {
  if (deadline == absl::InfiniteDuration()) return 0;
  return static_cast<uint64_t>(std::max<int64_t>(1, absl::ToInt64Nanoseconds(deadline)));
}

constexpr char kAgain[] =
    "this session is over, its handles are void: open another, which gets a new worker and epoch";

}  // namespace

absl::StatusOr<std::unique_ptr<ClientRing>> ClientRing::Create(
    std::shared_ptr<ClientConnection> connection, int region_a_fd, int region_b_fd,
    base::UniqueFd wake_worker, base::UniqueFd wake_client, const RingGeometry& geometry,
    absl::Duration spin, uint16_t abi_minor) {
  FUSIOND_ASSIGN_OR_RETURN(ClientRegions regions, MapRegions(region_a_fd, region_b_fd, geometry));
  return std::unique_ptr<ClientRing>(new ClientRing(std::move(connection), std::move(regions),
                                                    std::move(wake_worker), std::move(wake_client),
                                                    geometry, spin, abi_minor));
}

ClientRing::ClientRing(std::shared_ptr<ClientConnection> connection, ClientRegions regions,
                       base::UniqueFd wake_worker, base::UniqueFd wake_client,
                       const RingGeometry& geometry, absl::Duration spin, uint16_t abi_minor)
    : connection_(std::move(connection)),
      regions_(std::move(regions)),
      wake_worker_(std::move(wake_worker)),
      wake_client_(std::move(wake_client)),
      geometry_(geometry),
      spin_(spin),
      knows_timed_(abi_minor >= 3),
      submissions_(regions_.a, regions_.b, geometry),
      completions_(regions_.a, regions_.b, geometry),
      pending_(geometry.entries) {
  free_.reserve(geometry.entries);
  for (uint32_t slot = geometry.entries; slot > 0; --slot) free_.push_back(slot - 1);
}

ClientRing::~ClientRing() = default;

int ClientRing::session_fd() const { return connection_->fd(); }

WorkerState ClientRing::worker_state() const {
  if (connection_->lost()) return WorkerState::kLost;
  // acquire: pairs with the release in WorkerRing::SetState.
  return static_cast<WorkerState>(regions_.b.control->state.value.load(std::memory_order_acquire));
}

absl::Status ClientRing::CheckRoom() const {
  if (connection_->lost()) {
    return absl::AbortedError(absl::StrCat("CONTEXT_LOST: ", connection_->Obituary(),
                                           ", is gone; not started; ", kAgain));
  }
  if (free_.empty()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("ring: all ", geometry_.entries, " credits are outstanding"));
  }
  return absl::OkStatus();
}

// The next slot, with all but its body filled in. Requires: CheckRoom was OK.
SubmissionEntry& ClientRing::NewEntry(Opcode opcode, uint32_t stream_slot, uint64_t cookie,
                                      absl::Duration deadline) {
  const uint32_t slot = free_.back();
  free_.pop_back();
  Pending& pending = pending_[slot];
  pending.cookie = cookie;
  pending.sequence = next_sequence_++;
  ++outstanding_;
  SubmissionEntry& entry = submissions_.Next();
  entry.opcode = static_cast<uint16_t>(opcode);
  entry.flags = 0;
  entry.stream_slot = stream_slot;
  entry.cookie = uint64_t{pending.generation} << 32 | slot;
  entry.deadline_ns = DeadlineNanos(deadline);
  return entry;
}

// Puts the command's own cookie back; false when the worker answers something never asked.
bool ClientRing::Untrack(CompletionEntry* completion) {
  const auto slot = static_cast<uint32_t>(completion->cookie);
  if (slot >= pending_.size()) return false;
  Pending& pending = pending_[slot];
  if (pending.sequence == 0 || pending.generation != completion->cookie >> 32) return false;
  completion->cookie = pending.cookie;
  pending.sequence = 0;
  ++pending.generation;
  free_.push_back(slot);
  --outstanding_;
  return true;
}

absl::Status ClientRing::Launch(const LaunchCommand& command) {
  FUSIOND_RETURN_IF_ERROR(CheckRoom());
  const size_t tensors = command.tensors.size();
  const size_t extents = command.extents.size();
  if (tensors > kMaxTensors || extents > kMaxExtents) {
    return absl::InvalidArgumentError(absl::StrCat("launch: limits are ", kMaxTensors,
                                                   " tensors and ", kMaxExtents, " extents, got ",
                                                   tensors, " and ", extents));
  }
  const size_t tensor_bytes = tensors * sizeof(TensorArgument);
  const size_t extent_bytes = extents * sizeof(int64_t);
  const auto bytes = static_cast<uint32_t>(tensor_bytes + extent_bytes);
  std::optional<SubmissionProducer::Slab> slab = submissions_.AllocateArguments(bytes);
  if (!slab.has_value()) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "ring: no room for ", bytes, " bytes of arguments in a slab of ", geometry_.slab_bytes));
  }
  std::copy(command.tensors.begin(), command.tensors.end(),
            reinterpret_cast<TensorArgument*>(slab->data));
  std::copy(command.extents.begin(), command.extents.end(),
            reinterpret_cast<int64_t*>(slab->data + tensor_bytes));
  SubmissionEntry& entry =
      NewEntry(Opcode::kLaunch, command.stream_slot, command.cookie, command.deadline);
  if (command.timed && knows_timed_) entry.flags = kTimed;
  entry.launch = {.executable = command.executable,
                  .arguments_offset = slab->offset,
                  .arguments_bytes = bytes,
                  .tensors = static_cast<uint16_t>(tensors),
                  .extents = static_cast<uint16_t>(extents),
                  .reserved = {}};
  submissions_.Push();
  return absl::OkStatus();
}

absl::Status ClientRing::Copy(const CopyCommand& command) {
  FUSIOND_RETURN_IF_ERROR(CheckRoom());
  SubmissionEntry& entry =
      NewEntry(Opcode::kCopy, command.stream_slot, command.cookie, command.deadline);
  entry.copy = {command.source.buffer, command.source.offset, command.destination.buffer,
                command.destination.offset, command.bytes};
  submissions_.Push();
  return absl::OkStatus();
}

absl::Status ClientRing::Nop(uint64_t cookie, uint32_t stream_slot) {
  FUSIOND_RETURN_IF_ERROR(CheckRoom());
  SubmissionEntry& entry = NewEntry(Opcode::kNop, stream_slot, cookie, absl::InfiniteDuration());
  for (uint64_t& word : entry.words) word = 0;
  submissions_.Push();
  return absl::OkStatus();
}

void ClientRing::Flush() {
  if (!submissions_.has_unpublished() || !submissions_.Publish()) return;
  // A failed write (EAGAIN) means a counter at its end: the worker is being woken.
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_worker_.get(), &one, sizeof(one));
}

size_t ClientRing::Reap(absl::Span<CompletionEntry> out) {
  // Read before the ring: whatever a dead worker wrote is there once its death is known.
  const bool lost = connection_->lost();
  absl::StatusOr<size_t> taken = completions_.Take(out);
  size_t count = 0;
  bool sound = taken.ok();
  for (size_t i = 0; sound && i < *taken; ++i) {
    sound = Untrack(&out[i]);
    if (sound) ++count;
  }
  // A worker that breaks the protocol is as good as gone.
  if (!sound) connection_->Close();
  if (count == 0 && (lost || !sound)) return ReapLost(out);
  return count;
}

// Answers what is outstanding in place of the worker, oldest first.
size_t ClientRing::ReapLost(absl::Span<CompletionEntry> out) {
  std::vector<std::pair<uint64_t, uint32_t>> waiting;  // sequence, slot
  for (uint32_t slot = 0; slot < pending_.size(); ++slot) {
    if (pending_[slot].sequence != 0) waiting.emplace_back(pending_[slot].sequence, slot);
  }
  std::sort(waiting.begin(), waiting.end());
  const size_t count = std::min(waiting.size(), out.size());
  Outcome outcome;
  outcome.code = CompletionCode::kContextLost;
  for (size_t i = 0; i < count; ++i) {
    const uint32_t slot = waiting[i].second;
    SetCompletion(uint64_t{pending_[slot].generation} << 32 | slot, regions_.epoch, outcome,
                  &out[i]);
    Untrack(&out[i]);
  }
  return count;
}

absl::Status ClientRing::StatusOf(const CompletionEntry& completion) const {
  const absl::Status status = ToStatus(completion);
  std::string what;
  if (completion.code == static_cast<uint32_t>(CompletionCode::kContextLost)) {
    what =
        absl::StrCat(connection_->Obituary(), ", was lost; this may have run, wholly or in part");
  } else if (completion.code == static_cast<uint32_t>(CompletionCode::kDraining)) {
    what = absl::StrCat(connection_->peer(), " ends; this was not started");
  } else {
    return status;
  }
  return absl::Status(status.code(), absl::StrCat(status.message(), ": ", what, "; ", kAgain));
}

bool ClientRing::Ready() const {
  return completions_.Ready() || (outstanding_ > 0 && connection_->lost());
}

// Spins for a microsecond or so.
bool ClientRing::Look() const {
  for (int look = 0; look < kLooks; ++look) {
    if (Ready()) return true;
    CpuRelax();
  }
  return false;
}

absl::Status ClientRing::Wait(absl::Duration timeout) {
  if (outstanding_ == 0) {
    return absl::FailedPreconditionError("ring: nothing is outstanding to wait for");
  }
  Flush();
  if (Ready()) return absl::OkStatus();
  // The clock is asked only once the answer is late.
  if (spin_ > absl::ZeroDuration() && Look()) return absl::OkStatus();
  const absl::Duration start = base::Clock::System().Now();
  const int64_t spin_end_ns = absl::ToInt64Nanoseconds(start + std::min(spin_, timeout));
  while (base::MonotonicNanos() < spin_end_ns) {
    if (Look()) return absl::OkStatus();
  }
  return SleepUntil(start, timeout);
}

absl::Status ClientRing::SleepUntil(absl::Duration start, absl::Duration timeout) {
  while (true) {
    const absl::Duration left = start + timeout - base::Clock::System().Now();
    if (BeginWait()) {
      pollfd fds[2] = {{wake_client_.get(), POLLIN, 0}, {session_fd(), POLLRDHUP, 0}};
      const timespec wait = absl::ToTimespec(std::max(left, absl::ZeroDuration()));
      ::ppoll(fds, 2, left == absl::InfiniteDuration() ? nullptr : &wait, nullptr);
    }
    EndWait();
    if (!completions_.Ready()) connection_->Check();
    if (Ready()) return absl::OkStatus();
    if (left <= absl::ZeroDuration()) {
      return absl::DeadlineExceededError(absl::StrCat("no completion from ", connection_->peer(),
                                                      " within ", absl::FormatDuration(timeout),
                                                      ", ", outstanding_, " outstanding"));
    }
  }
}

bool ClientRing::BeginWait() { return completions_.BeginSleep(); }

void ClientRing::EndWait() {
  completions_.EndSleep();
  // Empties the counter; EAGAIN when nobody woke us.
  uint64_t count;
  [[maybe_unused]] const ssize_t got = ::read(wake_client_.get(), &count, sizeof(count));
}

}  // namespace fusiond::channel
