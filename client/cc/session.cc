#include "client/cc/session.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/clock.h"
#include "runtime/base/status_macros.h"

namespace fusiond::client {
namespace {

// While a slab is full the worker is at work; it answers within this or is considered stuck.
constexpr absl::Duration kRoomTimeout = absl::Minutes(10);

}  // namespace

std::vector<int64_t> LaunchNumbers(const executable::Executable& executable,
                                   absl::Span<const executable::TensorArg> inputs) {
  std::vector<int64_t> numbers;
  for (size_t i = 0; i < executable.inputs.size(); ++i) {
    const executable::InputSpec& spec = executable.inputs[i];
    for (size_t d = 0; d < spec.shape.size(); ++d) {
      if (spec.shape[d] < 0) numbers.push_back(inputs[i].shape[d]);
    }
  }
  for (size_t i = 0; i < executable.inputs.size(); ++i) {
    if (executable.inputs[i].scalar) numbers.push_back(static_cast<int64_t>(inputs[i].bits));
  }
  return numbers;
}

absl::StatusOr<std::unique_ptr<Session>> Session::Create(
    std::unique_ptr<channel::ClientSession> session) {
  FUSIOND_ASSIGN_OR_RETURN(std::unique_ptr<channel::ClientRing> ring, session->OpenRing());
  return std::unique_ptr<Session>(new Session(std::move(session), std::move(ring)));
}

absl::StatusOr<Buffer> Session::Allocate(uint64_t bytes, MemoryKind kind) {
  FUSIOND_ASSIGN_OR_RETURN(channel::ClientSession::RemoteBuffer remote,
                           session_->Allocate(bytes, kind));
  Buffer buffer;
  buffer.handle = remote.handle;
  buffer.bytes = remote.bytes;
  buffer.kind = remote.kind;
  buffer.fd = std::move(remote.fd);
  if (kind == MemoryKind::kHost) {
    FUSIOND_ASSIGN_OR_RETURN(buffer.mapping, base::Mapping::Map(buffer.fd.get(), bytes, true));
  }
  return buffer;
}

absl::Status Session::Free(const Buffer& buffer) { return session_->Free(buffer.handle); }

absl::StatusOr<RemoteExecutable> Session::Load(const base::Digest& executable_digest) {
  FUSIOND_ASSIGN_OR_RETURN(channel::ClientSession::LoadedExecutable loaded,
                           session_->Load(executable_digest));
  return RemoteExecutable{loaded.handle, loaded.tensors, loaded.extents};
}

absl::Status Session::Unload(const RemoteExecutable& executable) {
  return session_->Unload(executable.handle);
}

void Session::ReapAll() {
  channel::CompletionEntry entries[32];
  while (size_t count = ring_->Reap(entries)) {
    for (size_t i = 0; i < count; ++i) finished_[entries[i].cookie] = entries[i];
  }
}

absl::Status Session::MakeRoom() {
  ReapAll();
  if (ring_->credits() > 0) return absl::OkStatus();
  FUSIOND_RETURN_IF_ERROR(ring_->Wait(kRoomTimeout));
  ReapAll();
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> Session::Launch(const RemoteExecutable& executable,
                                         absl::Span<const Place> tensors,
                                         absl::Span<const int64_t> extents) {
  if (tensors.size() != executable.tensors || extents.size() != executable.extents) {
    return absl::InvalidArgumentError(
        absl::StrCat("launch: expected ", executable.tensors, " tensors and ", executable.extents,
                     " numbers, given ", tensors.size(), " and ", extents.size()));
  }
  absl::InlinedVector<channel::TensorArgument, 16> arguments;
  for (const Place& place : tensors) arguments.push_back({place.buffer->handle, place.offset});
  channel::LaunchCommand command;
  command.executable = executable.handle;
  command.tensors = arguments;
  command.extents = extents;
  command.cookie = next_number_;
  FUSIOND_RETURN_IF_ERROR(MakeRoom());
  absl::Status status = ring_->Launch(command);
  while (absl::IsResourceExhausted(status) &&
         ring_->outstanding() > 0) {  // the argument slab is full
    FUSIOND_RETURN_IF_ERROR(ring_->Wait(kRoomTimeout));
    ReapAll();
    status = ring_->Launch(command);
  }
  FUSIOND_RETURN_IF_ERROR(status);
  ring_->Flush();
  return next_number_++;
}

absl::StatusOr<uint64_t> Session::Copy(const Place& from, const Place& to, uint64_t bytes) {
  channel::CopyCommand command;
  command.source = {from.buffer->handle, from.offset};
  command.destination = {to.buffer->handle, to.offset};
  command.bytes = bytes;
  command.cookie = next_number_;
  FUSIOND_RETURN_IF_ERROR(MakeRoom());
  FUSIOND_RETURN_IF_ERROR(ring_->Copy(command));
  ring_->Flush();
  return next_number_++;
}

absl::StatusOr<LaunchTimes> Session::Wait(uint64_t number, absl::Duration timeout) {
  const absl::Duration deadline = base::Clock::System().Now() + timeout;
  while (true) {
    ReapAll();
    auto found = finished_.find(number);
    if (found != finished_.end()) {
      const channel::CompletionEntry entry = found->second;
      finished_.erase(found);
      FUSIOND_RETURN_IF_ERROR(channel::ToStatus(entry));
      return LaunchTimes{absl::Nanoseconds(static_cast<int64_t>(entry.queue_ns)),
                         absl::Nanoseconds(static_cast<int64_t>(entry.device_ns))};
    }
    if (number == 0 || number >= next_number_ || ring_->outstanding() == 0) {
      return absl::NotFoundError(absl::StrCat("launch ", number, " is not outstanding"));
    }
    FUSIOND_RETURN_IF_ERROR(ring_->Wait(deadline - base::Clock::System().Now()));
  }
}

absl::StatusOr<LaunchTimes> Session::Run(const RemoteExecutable& executable,
                                         absl::Span<const Place> tensors,
                                         absl::Span<const int64_t> extents) {
  FUSIOND_ASSIGN_OR_RETURN(uint64_t number, Launch(executable, tensors, extents));
  return Wait(number);
}

}  // namespace fusiond::client
