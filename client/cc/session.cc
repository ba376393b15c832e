#include "client/cc/session.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/clock.h"
#include "runtime/base/status_macros.h"

namespace fusiond::client {
namespace {

constexpr size_t kShownDigits = 16;  // of a digest, in texts

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
    std::unique_ptr<channel::ClientSession> session, const SessionOptions& options) {
  FUSIOND_ASSIGN_OR_RETURN(std::unique_ptr<channel::ClientRing> ring, session->OpenRing());
  return std::unique_ptr<Session>(new Session(std::move(session), std::move(ring), options));
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
  return RemoteExecutable{loaded.handle, executable_digest, loaded.tensors, loaded.extents};
}

absl::Status Session::Unload(const RemoteExecutable& executable) {
  return session_->Unload(executable.handle);
}

void Session::ReapAll() {
  channel::CompletionEntry entries[32];
  while (size_t count = ring_->Reap(entries)) {
    for (size_t i = 0; i < count; ++i) commands_[entries[i].cookie].done = entries[i];
  }
}

absl::Status Session::MakeRoom() {
  ReapAll();
  if (ring_->credits() > 0) return absl::OkStatus();
  FUSIOND_RETURN_IF_ERROR(ring_->Wait(options_.answer_limit));
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
  command.timed = options_.timed;
  FUSIOND_RETURN_IF_ERROR(MakeRoom());
  absl::Status status = ring_->Launch(command);
  while (absl::IsResourceExhausted(status) &&
         ring_->outstanding() > 0) {  // the argument slab is full
    FUSIOND_RETURN_IF_ERROR(ring_->Wait(options_.answer_limit));
    ReapAll();
    status = ring_->Launch(command);
  }
  FUSIOND_RETURN_IF_ERROR(status);
  ring_->Flush();
  commands_[next_number_].executable = executable.digest;
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
  commands_[next_number_];
  return next_number_++;
}

std::string Session::NameOf(uint64_t number, const Command& command) {
  if (command.executable == base::Digest()) return absl::StrCat("copy ", number);
  return absl::StrCat("launch ", number, " of executable ",
                      command.executable.Hex().substr(0, kShownDigits));
}

absl::StatusOr<LaunchTimes> Session::Wait(uint64_t number, absl::Duration timeout) {
  const absl::Duration start = base::Clock::System().Now();
  while (true) {
    ReapAll();
    const auto found = commands_.find(number);
    if (found == commands_.end())
      return absl::NotFoundError(absl::StrCat("launch ", number, " is not outstanding"));
    if (found->second.done.has_value()) {
      const Command command = std::move(found->second);
      commands_.erase(found);
      const absl::Status status = ring_->StatusOf(*command.done);
      if (!status.ok()) {
        return absl::Status(status.code(),
                            absl::StrCat(NameOf(number, command), ": ", status.message()));
      }
      return LaunchTimes{absl::Nanoseconds(static_cast<int64_t>(command.done->queue_ns)),
                         absl::Nanoseconds(static_cast<int64_t>(command.done->device_ns))};
    }
    const absl::Status waited = ring_->Wait(start + timeout - base::Clock::System().Now());
    if (absl::IsDeadlineExceeded(waited)) {
      return absl::DeadlineExceededError(absl::StrCat(
          NameOf(number, found->second), " is not done after ", absl::FormatDuration(timeout), ": ",
          session_->peer(),
          " is stopped, hung or busy; the session stays usable: wait again, or have that process "
          "ended and open another session"));
    }
    FUSIOND_RETURN_IF_ERROR(waited);
  }
}

absl::StatusOr<LaunchTimes> Session::Run(const RemoteExecutable& executable,
                                         absl::Span<const Place> tensors,
                                         absl::Span<const int64_t> extents) {
  FUSIOND_ASSIGN_OR_RETURN(uint64_t number, Launch(executable, tensors, extents));
  return Wait(number);
}

}  // namespace fusiond::client
