#include "runtime/channel/worker_session.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/memfd.h"
#include "runtime/base/status_macros.h"
#include "runtime/channel/entry.h"

namespace fusiond::channel {
namespace {

// Replies never wait: a client that asks without reading the answers fills its socket and is
// dropped.
constexpr absl::Duration kReplyTimeout = absl::ZeroDuration();

Outcome Refusal(CompletionCode code, CompletionReason reason = CompletionReason::kNone,
                uint64_t limit = 0, uint64_t actual = 0, uint32_t index = 0) {
  Outcome outcome;
  outcome.code = code;
  outcome.reason = reason;
  outcome.index = index;
  outcome.limit = limit;
  outcome.actual = actual;
  return outcome;
}

absl::Status UnknownHandle(absl::string_view what, Handle handle) {
  return absl::NotFoundError(
      absl::StrCat(what, " ", handle.slot, ":", handle.generation, " is not of this session"));
}

}  // namespace

WorkerSession::WorkerSession(base::UniqueFd socket, const Negotiated& negotiated, uint64_t epoch,
                             const SessionLimits& limits, Device* device, uint64_t* next_ring_id)
    : socket_(std::move(socket)),
      negotiated_(negotiated),
      epoch_(epoch),
      limits_(limits),
      device_(device),
      next_ring_id_(next_ring_id),
      executables_("executables", limits.max_executables),
      buffers_("buffers", limits.max_buffers) {}

WorkerSession::~WorkerSession() {
  for (const auto& ring : rings_) device_->ForgetRing(ring->id());
}

absl::Status WorkerSession::Start() {
  OpenDeviceReply reply = Make<OpenDeviceReply>();
  reply.head.process = static_cast<uint32_t>(::getpid());
  reply.epoch = epoch_;
  reply.stream_slots = limits_.stream_slots;
  reply.max_rings = limits_.max_rings;
  return Send(fd(), reply, {}, kReplyTimeout);
}

absl::Status WorkerSession::HandleMessage() {
  absl::StatusOr<ReceivedMessage> received = ReceiveMessage(fd(), absl::ZeroDuration());
  if (absl::IsDeadlineExceeded(received.status())) return absl::OkStatus();
  FUSIOND_ASSIGN_OR_RETURN(ReceivedMessage message, std::move(received));
  FUSIOND_ASSIGN_OR_RETURN(MessageType type, PeekType(message));
  if (load_pending_) {
    return absl::InvalidArgumentError("session: a request before the reply to LOAD");
  }
  return Dispatch(type, message);
}

absl::Status WorkerSession::Dispatch(MessageType type, ReceivedMessage& message) {
  switch (type) {
    case MessageType::kOpenRing:
      return OnOpenRing(message);
    case MessageType::kLoad:
      return OnLoad(message);
    case MessageType::kUnload:
      return OnUnload(message);
    case MessageType::kAllocate:
      return OnAllocate(message);
    case MessageType::kImport:
      return OnImport(message);
    case MessageType::kFreeBuffer:
      return OnFreeBuffer(message);
    case MessageType::kGoodbye:
      return OnGoodbye(message);
    default:
      return absl::InvalidArgumentError(absl::StrCat(
          "session: message type ", static_cast<uint32_t>(type), " is not for a worker"));
  }
}

absl::Status WorkerSession::CheckOpen() const {
  if (state_ == WorkerState::kServing) return absl::OkStatus();
  return absl::UnavailableError(state_ == WorkerState::kDraining ? "the worker is draining"
                                                                 : "the worker's context is lost");
}

absl::Status WorkerSession::OnOpenRing(const ReceivedMessage& message) {
  FUSIOND_ASSIGN_OR_RETURN(OpenRing request, DecodeRequest<OpenRing>(message));
  const RingGeometry geometry{request.entries, request.slab_bytes};
  absl::StatusOr<std::shared_ptr<WorkerRing>> ring =
      [&]() -> absl::StatusOr<std::shared_ptr<WorkerRing>> {
    FUSIOND_RETURN_IF_ERROR(CheckOpen());
    FUSIOND_RETURN_IF_ERROR(CheckGeometry(geometry));
    if (rings_.size() >= limits_.max_rings) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "rings of a session: limit is ", limits_.max_rings, ", are ", rings_.size() + 1));
    }
    const uint64_t bytes = RegionABytes(geometry) + RegionBBytes(geometry);
    if (ring_bytes_ + bytes > limits_.max_ring_bytes) {
      return absl::ResourceExhaustedError(absl::StrCat("rings: limit is ", limits_.max_ring_bytes,
                                                       " bytes a session, this would make ",
                                                       ring_bytes_ + bytes));
    }
    return WorkerRing::Create((*next_ring_id_)++, geometry, epoch_, negotiated_.features);
  }();
  if (!ring.ok()) return SendError<OpenRingReply>(fd(), ring.status(), kReplyTimeout);
  OpenRingReply reply = Make<OpenRingReply>();
  reply.entries = geometry.entries;
  reply.slab_bytes = geometry.slab_bytes;
  FUSIOND_RETURN_IF_ERROR(Send(fd(), reply,
                               {(*ring)->region_a_fd(), (*ring)->region_b_fd(),
                                (*ring)->wake_worker_fd(), (*ring)->wake_client_fd()},
                               kReplyTimeout));
  ring_bytes_ += (*ring)->shared_bytes();
  rings_.push_back(*std::move(ring));
  return absl::OkStatus();
}

absl::Status WorkerSession::OnLoad(const ReceivedMessage& message) {
  FUSIOND_ASSIGN_OR_RETURN(Load request, DecodeRequest<Load>(message));
  absl::Status allowed = CheckOpen();
  if (allowed.ok()) allowed = executables_.CheckRoom();
  if (!allowed.ok()) return SendError<LoadReply>(fd(), allowed, kReplyTimeout);
  load_pending_ = true;
  device_->Load(
      DigestOf(request.digest),
      [weak = weak_from_this()](absl::StatusOr<std::shared_ptr<SessionExecutable>> loaded) {
        // A session that ended meanwhile has nobody to tell.
        if (auto session = weak.lock()) session->FinishLoad(std::move(loaded));
      });
  return absl::OkStatus();
}

void WorkerSession::FinishLoad(absl::StatusOr<std::shared_ptr<SessionExecutable>> loaded) {
  load_pending_ = false;
  absl::Status sent = [&]() -> absl::Status {
    if (!loaded.ok()) return SendError<LoadReply>(fd(), loaded.status(), kReplyTimeout);
    LoadReply reply = Make<LoadReply>();
    reply.tensors = (*loaded)->tensors();
    reply.extents = (*loaded)->extents();
    absl::StatusOr<Handle> handle = executables_.Insert(*std::move(loaded));
    if (!handle.ok()) return SendError<LoadReply>(fd(), handle.status(), kReplyTimeout);
    reply.executable = *handle;
    return Send(fd(), reply, {}, kReplyTimeout);
  }();
  // The loop sees the hang-up and ends the session.
  if (!sent.ok()) ::shutdown(fd(), SHUT_RDWR);
}

absl::Status WorkerSession::OnUnload(const ReceivedMessage& message) {
  FUSIOND_ASSIGN_OR_RETURN(Unload request, DecodeRequest<Unload>(message));
  if (!executables_.Remove(request.executable).has_value()) {
    return SendError<UnloadReply>(fd(), UnknownHandle("executable", request.executable),
                                  kReplyTimeout);
  }
  return Send(fd(), Make<UnloadReply>(), {}, kReplyTimeout);
}

absl::Status WorkerSession::OnAllocate(const ReceivedMessage& message) {
  FUSIOND_ASSIGN_OR_RETURN(Allocate request, DecodeRequest<Allocate>(message));
  absl::StatusOr<AllocatedBuffer> allocated = [&]() -> absl::StatusOr<AllocatedBuffer> {
    FUSIOND_RETURN_IF_ERROR(CheckOpen());
    FUSIOND_RETURN_IF_ERROR(buffers_.CheckRoom());
    if (request.bytes == 0) return absl::InvalidArgumentError("ALLOC: bytes must be at least 1");
    return device_->Allocate(request.bytes, static_cast<MemoryKind>(request.kind));
  }();
  if (!allocated.ok()) return SendError<AllocateReply>(fd(), allocated.status(), kReplyTimeout);
  AllocateReply reply = Make<AllocateReply>();
  reply.bytes = allocated->buffer->bytes();
  reply.kind = static_cast<uint32_t>(allocated->kind);
  FUSIOND_ASSIGN_OR_RETURN(reply.buffer, buffers_.Insert(std::move(allocated->buffer)));
  return Send(fd(), reply, {allocated->fd.get()}, kReplyTimeout);
}

absl::Status WorkerSession::OnImport(ReceivedMessage& message) {
  FUSIOND_ASSIGN_OR_RETURN(Import request, DecodeRequest<Import>(message));
  const auto kind = static_cast<MemoryKind>(request.kind);
  absl::StatusOr<std::shared_ptr<SessionBuffer>> imported =
      [&]() -> absl::StatusOr<std::shared_ptr<SessionBuffer>> {
    FUSIOND_RETURN_IF_ERROR(CheckOpen());
    FUSIOND_RETURN_IF_ERROR(buffers_.CheckRoom());
    if ((negotiated_.features & kFeatureImport) == 0) {
      return absl::UnimplementedError("IMPORT was not negotiated");
    }
    if (request.bytes == 0) return absl::InvalidArgumentError("IMPORT: bytes must be at least 1");
    if (kind == MemoryKind::kHost) {
      // Without these seals the client could truncate the memory and kill the worker by SIGBUS.
      FUSIOND_RETURN_IF_ERROR(
          base::CheckSeals(message.fds[0].get(), F_SEAL_SHRINK | F_SEAL_GROW, request.bytes)
              .status());
    }
    return device_->Import(std::move(message.fds[0]), request.bytes, kind);
  }();
  if (!imported.ok()) return SendError<ImportReply>(fd(), imported.status(), kReplyTimeout);
  ImportReply reply = Make<ImportReply>();
  FUSIOND_ASSIGN_OR_RETURN(reply.buffer, buffers_.Insert(*std::move(imported)));
  return Send(fd(), reply, {}, kReplyTimeout);
}

absl::Status WorkerSession::OnFreeBuffer(const ReceivedMessage& message) {
  FUSIOND_ASSIGN_OR_RETURN(FreeBuffer request, DecodeRequest<FreeBuffer>(message));
  if (!buffers_.Remove(request.buffer).has_value()) {
    return SendError<FreeBufferReply>(fd(), UnknownHandle("buffer", request.buffer), kReplyTimeout);
  }
  return Send(fd(), Make<FreeBufferReply>(), {}, kReplyTimeout);
}

absl::Status WorkerSession::OnGoodbye(const ReceivedMessage& message) {
  FUSIOND_RETURN_IF_ERROR(DecodeRequest<Goodbye>(message).status());
  FUSIOND_RETURN_IF_ERROR(Send(fd(), Make<GoodbyeReply>(), {}, kReplyTimeout));
  return absl::CancelledError("session: goodbye");
}

absl::StatusOr<size_t> WorkerSession::ServeRing(const std::shared_ptr<WorkerRing>& ring,
                                                uint32_t batch) {
  batch_.resize(batch);
  FUSIOND_ASSIGN_OR_RETURN(size_t count, ring->submissions().Take(absl::MakeSpan(batch_)));
  if (count == 0) return count;
  TakenTime taken;
  for (size_t i = 0; i < count; ++i) ServeEntry(ring, batch_[i], &taken);
  return count;
}

void WorkerSession::ServeEntry(const std::shared_ptr<WorkerRing>& ring,
                               const SubmissionEntry& entry, TakenTime* taken) {
  const Outcome refusal = StartEntry(ring, entry, taken);
  if (!refusal.ok()) ring->Answer(entry.cookie, refusal);
}

// OK when the entry has been answered or given to the device; otherwise its answer.
Outcome WorkerSession::StartEntry(const std::shared_ptr<WorkerRing>& ring,
                                  const SubmissionEntry& entry, TakenTime* taken) {
  if (state_ == WorkerState::kDraining) return Refusal(CompletionCode::kDraining);
  if (state_ == WorkerState::kLost) return Refusal(CompletionCode::kContextLost);
  Outcome checked =
      CheckEntry(entry, {ring->geometry().slab_bytes, limits_.stream_slots, negotiated_.features});
  if (!checked.ok()) return checked;
  if (entry.deadline_ns != 0 && static_cast<uint64_t>(taken->ns()) >= entry.deadline_ns) {
    return Refusal(CompletionCode::kDeadlineExceeded, CompletionReason::kDeadline,
                   entry.deadline_ns, static_cast<uint64_t>(taken->ns()));
  }
  switch (static_cast<Opcode>(entry.opcode)) {
    case Opcode::kLaunch:
      return StartLaunch(ring, entry, taken->ns());
    case Opcode::kCopy:
      return StartCopy(ring, entry, taken->ns());
    case Opcode::kNop:
      ring->Answer(entry.cookie, Outcome());
  }
  return Outcome();
}

Outcome WorkerSession::StartLaunch(const std::shared_ptr<WorkerRing>& ring,
                                   const SubmissionEntry& entry, int64_t taken_ns) {
  const LaunchBody& launch = entry.launch;
  std::shared_ptr<SessionExecutable>* executable = executables_.Find(launch.executable);
  if (executable == nullptr) {
    return Refusal(CompletionCode::kNotFound, CompletionReason::kExecutable, 0,
                   launch.executable.slot);
  }
  const uint32_t tensors = (*executable)->tensors();
  const uint32_t extents = (*executable)->extents();
  if (launch.tensors != tensors) {
    return Refusal(CompletionCode::kInvalidArgument, CompletionReason::kTensorCount, tensors,
                   launch.tensors);
  }
  if (launch.extents != extents) {
    return Refusal(CompletionCode::kInvalidArgument, CompletionReason::kExtentCount, extents,
                   launch.extents);
  }
  words_.resize(launch.arguments_bytes / sizeof(uint64_t));
  ring->submissions().CopyArguments(launch.arguments_offset, absl::MakeSpan(words_));
  bindings_.clear();
  for (uint32_t i = 0; i < tensors; ++i) {
    TensorArgument argument;
    std::memcpy(&argument, &words_[2 * i], sizeof(argument));
    std::shared_ptr<SessionBuffer>* buffer = buffers_.Find(argument.buffer);
    if (buffer == nullptr) {
      return Refusal(CompletionCode::kNotFound, CompletionReason::kBuffer, 0, argument.buffer.slot,
                     i);
    }
    if (argument.offset > (*buffer)->bytes()) {
      return Refusal(CompletionCode::kInvalidArgument, CompletionReason::kBufferRange,
                     (*buffer)->bytes(), argument.offset, i);
    }
    bindings_.push_back({buffer->get(), argument.offset});
  }
  // Both are plain 8-byte words; the extents start after two words a tensor.
  const auto* values = reinterpret_cast<const int64_t*>(words_.data() + 2 * tensors);
  device_->Launch({{ring->id(), entry.stream_slot},
                   executable->get(),
                   bindings_,
                   absl::MakeConstSpan(values, extents),
                   entry.deadline_ns},
                  Ticket(ring, entry, taken_ns));
  return Outcome();
}

Outcome WorkerSession::StartCopy(const std::shared_ptr<WorkerRing>& ring,
                                 const SubmissionEntry& entry, int64_t taken_ns) {
  const CopyBody& copy = entry.copy;
  const Handle handles[2] = {copy.source, copy.destination};
  const uint64_t offsets[2] = {copy.source_offset, copy.destination_offset};
  TensorBinding ends[2];
  for (uint32_t i = 0; i < 2; ++i) {
    std::shared_ptr<SessionBuffer>* buffer = buffers_.Find(handles[i]);
    if (buffer == nullptr) {
      return Refusal(CompletionCode::kNotFound, CompletionReason::kBuffer, 0, handles[i].slot, i);
    }
    if (!InRange(offsets[i], copy.bytes, (*buffer)->bytes())) {
      return Refusal(CompletionCode::kInvalidArgument, CompletionReason::kBufferRange,
                     (*buffer)->bytes(), SaturatedEnd(offsets[i], copy.bytes), i);
    }
    ends[i] = {buffer->get(), offsets[i]};
  }
  if (ends[0].buffer == ends[1].buffer && ends[0].offset < ends[1].offset + copy.bytes &&
      ends[1].offset < ends[0].offset + copy.bytes) {
    return Refusal(CompletionCode::kInvalidArgument, CompletionReason::kOverlap, 0, 0, 1);
  }
  const StreamKey stream{ring->id(), entry.stream_slot};
  device_->Copy({stream, ends[0], ends[1], copy.bytes, entry.deadline_ns},
                Ticket(ring, entry, taken_ns));
  return Outcome();
}

void WorkerSession::SetState(WorkerState state) {
  state_ = state;
  for (const auto& ring : rings_) ring->SetState(state);
}

uint32_t WorkerSession::in_flight() const {
  uint32_t sum = 0;
  for (const auto& ring : rings_) sum += ring->in_flight();
  return sum;
}

}  // namespace fusiond::channel
