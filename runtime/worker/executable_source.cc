#include "runtime/worker/executable_source.h"

#include <fcntl.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/memfd.h"
#include "runtime/base/status_macros.h"
#include "runtime/channel/socket.h"
#include "runtime/executable/serialise.h"

namespace fusiond::worker {
namespace {

constexpr absl::Duration kSendTimeout = absl::Seconds(5);
constexpr uint64_t kMaxExecutableBytes = uint64_t{1} << 30;

template <typename T>
absl::string_view AsBytes(const T& message) {
  return {reinterpret_cast<const char*>(&message), sizeof(message)};
}

template <typename T>
absl::StatusOr<T> FromBytes(const channel::ReceivedMessage& message) {
  T value;
  if (message.size != sizeof(value)) {
    return absl::InvalidArgumentError(absl::StrCat("executable fetch: message of ", sizeof(value),
                                                   " bytes expected, is ", message.size));
  }
  std::memcpy(&value, message.bytes, sizeof(value));
  return value;
}

absl::StatusOr<executable::Executable> ReadExecutable(const FetchReply& reply, int fd,
                                                      const base::Digest& digest) {
  if (reply.code != 0) {
    const size_t length = strnlen(reply.text, sizeof(reply.text));
    return absl::Status(static_cast<absl::StatusCode>(reply.code),
                        absl::string_view(reply.text, length));
  }
  if (fd < 0 || reply.bytes == 0 || reply.bytes > kMaxExecutableBytes) {
    return absl::InternalError("executable fetch: reply without an executable");
  }
  FUSIOND_RETURN_IF_ERROR(
      base::CheckSeals(fd, F_SEAL_SHRINK | F_SEAL_WRITE, static_cast<size_t>(reply.bytes))
          .status());
  FUSIOND_ASSIGN_OR_RETURN(base::Mapping mapping, base::Mapping::Map(fd, reply.bytes, false));
  if (executable::ExecutableDigest(mapping.view()) != digest) {
    return absl::InternalError(
        absl::StrCat("executable fetch: bytes are not those of ", digest.Hex()));
  }
  return executable::Deserialise(mapping.view());
}

}  // namespace

void SupervisorSource::Fetch(const base::Digest& digest, Callback done) {
  FetchRequest request;
  request.id = next_id_++;
  std::copy(digest.bytes.begin(), digest.bytes.end(), request.digest);
  absl::Status sent = channel::SendMessage(socket_.get(), AsBytes(request), {}, kSendTimeout);
  if (!sent.ok()) return done(sent);
  pending_.emplace(request.id, Pending{digest, std::move(done)});
}

void SupervisorSource::OnReadable() {
  while (true) {
    absl::StatusOr<channel::ReceivedMessage> message =
        channel::ReceiveMessage(socket_.get(), absl::ZeroDuration());
    if (absl::IsDeadlineExceeded(message.status())) return;
    if (!message.ok()) {
      for (auto& [id, pending] : std::exchange(pending_, {})) {
        pending.done(absl::UnavailableError("the daemon is gone"));
      }
      return;
    }
    absl::StatusOr<FetchReply> reply = FromBytes<FetchReply>(*message);
    if (!reply.ok()) continue;
    auto found = pending_.find(reply->id);
    if (found == pending_.end()) continue;
    Pending pending = std::move(found->second);
    pending_.erase(found);
    pending.done(
        ReadExecutable(*reply, message->fds.empty() ? -1 : message->fds[0].get(), pending.digest));
  }
}

absl::StatusOr<FetchRequest> ReceiveFetchRequest(int socket) {
  FUSIOND_ASSIGN_OR_RETURN(channel::ReceivedMessage message,
                           channel::ReceiveMessage(socket, absl::ZeroDuration()));
  return FromBytes<FetchRequest>(message);
}

absl::Status SendFetchReply(int socket, uint64_t id, int memfd, uint64_t bytes) {
  FetchReply reply;
  reply.id = id;
  reply.bytes = bytes;
  return channel::SendMessage(socket, AsBytes(reply), {&memfd, 1}, absl::ZeroDuration());
}

absl::Status SendFetchError(int socket, uint64_t id, const absl::Status& why) {
  FetchReply reply;
  reply.id = id;
  reply.code = static_cast<uint32_t>(why.code());
  const size_t length = std::min(why.message().size(), sizeof(reply.text) - 1);
  std::memcpy(reply.text, why.message().data(), length);
  return channel::SendMessage(socket, AsBytes(reply), {}, absl::ZeroDuration());
}

}  // namespace fusiond::worker
