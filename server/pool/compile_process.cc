#include "server/pool/compile_process.h"

#include <sys/socket.h>

#include <cerrno>

#include "runtime/base/check.h"
#include "runtime/base/file.h"
#include "runtime/base/status_macros.h"

namespace fusiond::server {
namespace {

constexpr int kReadsPerPump = 16;  // one flooding process must not hold up the others

}  // namespace

absl::StatusOr<std::unique_ptr<CompileProcess>> CompileProcess::Start(
    const SpawnOptions& spawn, const internal::v1::CompileSetup& setup, absl::Duration now) {
  FUSIOND_ASSIGN_OR_RETURN(std::string frame, base::EncodeFrame(setup.SerializeAsString()));
  FUSIOND_ASSIGN_OR_RETURN(std::unique_ptr<ChildProcess> child, ChildProcess::Spawn(spawn));
  std::unique_ptr<CompileProcess> process(new CompileProcess(std::move(child)));
  process->since = now;
  process->outgoing_ = std::move(frame);
  return process;
}

pollfd CompileProcess::PollFd() const {
  if (state == State::kEnding) return {child_->pidfd(), POLLIN, 0};
  const short events = outgoing_.empty() ? POLLIN : POLLIN | POLLOUT;
  return {child_->socket(), events, 0};
}

bool CompileProcess::HasHungUp() const {
  pollfd fd = {child_->socket(), POLLRDHUP, 0};
  return ::poll(&fd, 1, 0) > 0;
}

void CompileProcess::Begin(RunningJob running, std::string frame) {
  FUSIOND_CHECK(state == State::kIdle && outgoing_.empty());
  state = State::kBusy;
  since = running.started;
  tenant = running.pending.request.tenant;
  job = std::move(running);
  outgoing_ = std::move(frame);
}

absl::StatusOr<std::optional<std::string>> CompileProcess::Pump() {
  // A process that died before it read everything may still have answered: receive first.
  absl::Status received = Receive();
  FUSIOND_ASSIGN_OR_RETURN(std::optional<std::string> message, incoming_.Next());
  if (message.has_value()) return message;
  FUSIOND_RETURN_IF_ERROR(received);
  FUSIOND_RETURN_IF_ERROR(Send());
  return std::nullopt;
}

void CompileProcess::Kill() {
  state = State::kEnding;
  child_->Kill();
}

absl::Status CompileProcess::Send() {
  while (!outgoing_.empty()) {
    ssize_t n = ::send(child_->socket(), outgoing_.data(), outgoing_.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return absl::OkStatus();
    if (n < 0) return absl::UnavailableError(base::ErrnoStatus(errno, "send").message());
    outgoing_.erase(0, static_cast<size_t>(n));
  }
  return absl::OkStatus();
}

absl::Status CompileProcess::Receive() {
  char buffer[64 << 10];
  for (int i = 0; i < kReadsPerPump;) {
    ssize_t n = ::recv(child_->socket(), buffer, sizeof(buffer), 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return absl::OkStatus();
    if (n < 0) return absl::UnavailableError(base::ErrnoStatus(errno, "receive").message());
    if (n == 0) return absl::UnavailableError("the process closed its socket");
    incoming_.Append({buffer, static_cast<size_t>(n)});
    ++i;
  }
  return absl::OkStatus();
}

}  // namespace fusiond::server
