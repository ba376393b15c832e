#include "runtime/channel/client_session.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/memfd.h"
#include "runtime/base/status_macros.h"

namespace fusiond::channel {
namespace {

constexpr int kSizeSeals = F_SEAL_SHRINK | F_SEAL_GROW;
constexpr char kOpenAnother[] = "this session is over, its handles are void: open another";
// For the daemon to connect, to greet, and to see that a worker has ended.
constexpr absl::Duration kWhyLimit = absl::Seconds(5);

std::string WorkerName(absl::string_view device, const OpenDeviceReply& reply) {
  return absl::StrCat("the worker of ", device,
                      reply.head.process == 0 ? "" : absl::StrCat(", process ", reply.head.process),
                      ", epoch ", absl::Hex(reply.epoch, absl::kZeroPad16));
}

// A reply with the descriptors that came with it.
template <typename Reply>
struct Answer {
  Reply reply;
  ReceivedMessage message;
};

template <typename Reply, typename Request>
absl::StatusOr<Answer<Reply>> CallFor(ClientConnection& connection, const Request& request,
                                      absl::Span<const int> fds = {}) {
  Answer<Reply> answer;
  FUSIOND_ASSIGN_OR_RETURN(
      answer.message,
      connection.Call({reinterpret_cast<const char*>(&request), sizeof(request)}, fds));
  absl::StatusOr<Reply> reply = DecodeReply<Reply>(answer.message);
  if (!reply.ok()) return reply.status();
  answer.reply = *reply;
  return answer;
}

}  // namespace

absl::StatusOr<ReceivedMessage> ClientConnection::Call(absl::string_view request,
                                                       absl::Span<const int> fds) {
  base::MutexLock lock(&mutex_);
  if (lost()) {
    return absl::UnavailableError(
        absl::StrCat("the connection to ", Obituary(), ", is closed; ", kOpenAnother));
  }
  absl::Status sent = SendMessage(fd(), request, fds, timeout_);
  absl::StatusOr<ReceivedMessage> reply =
      sent.ok() ? ReceiveMessage(fd(), timeout_) : absl::StatusOr<ReceivedMessage>(sent);
  if (reply.ok()) return reply;
  if (absl::IsUnavailable(reply.status())) {
    lost_.store(true, std::memory_order_release);  // pairs with the acquire in lost()
    return absl::UnavailableError(absl::StrCat(Obituary(), ", is gone; ", kOpenAnother));
  }
  Close();
  if (absl::IsDeadlineExceeded(reply.status())) {
    return absl::DeadlineExceededError(
        absl::StrCat("no answer from ", peer_, " within ", absl::FormatDuration(timeout_),
                     ": it is stopped, hung or busy. ", kOpenAnother,
                     "; while that process lives it is the same worker"));
  }
  return reply;
}

std::string ClientConnection::Obituary() {
  base::MutexLock lock(&why_mutex_);
  if (!why_.has_value()) {
    absl::StatusOr<std::string> why =
        ask_why_ ? ask_why_() : absl::StatusOr<std::string>(std::string());
    why_ = why.ok() ? *std::move(why) : "";
  }
  return why_->empty() ? peer_ : absl::StrCat(peer_, ", ", *why_);
}

bool ClientConnection::Check() {
  // release: pairs with the acquire in lost(); what the peer wrote before it died is visible.
  if (!lost() && HasHungUp(fd())) lost_.store(true, std::memory_order_release);
  return lost();
}

void ClientConnection::Close() {
  {
    base::MutexLock lock(&why_mutex_);
    if (!why_.has_value()) why_ = "";  // this end's doing
  }
  // The descriptor itself stays open until the last ring is gone, so that its number is not reused
  // under a thread that polls it.
  ::shutdown(fd(), SHUT_RDWR);
  lost_.store(true, std::memory_order_release);  // pairs with the acquire in lost()
}

absl::StatusOr<SupervisorClient> SupervisorClient::Connect(const std::string& path,
                                                           const ClientOptions& options) {
  FUSIOND_ASSIGN_OR_RETURN(base::UniqueFd socket,
                           channel::Connect(path, SOCK_SEQPACKET, options.connect_timeout));
  FUSIOND_ASSIGN_OR_RETURN(SupervisorClient client,
                           Greet(std::move(socket), options, absl::StrCat("the daemon at ", path)));
  client.SetReconnect([path] { return channel::Connect(path, SOCK_SEQPACKET, kWhyLimit); });
  return client;
}

absl::StatusOr<SupervisorClient> SupervisorClient::Greet(base::UniqueFd socket,
                                                         const ClientOptions& options,
                                                         std::string peer) {
  auto connection =
      std::make_shared<ClientConnection>(std::move(socket), options.call_timeout, peer);
  const absl::StatusOr<Answer<HelloReply>> answer = CallFor<HelloReply>(*connection, MakeHello());
  if (absl::IsUnavailable(answer.status())) {
    return absl::UnavailableError(absl::StrCat(
        peer,
        " hangs up at once: it ends, or does not admit this user, or has as many connections "
        "of this user as it takes; its log says which"));
  }
  FUSIOND_RETURN_IF_ERROR(answer.status());
  const Negotiated negotiated{answer->reply.abi_minor, answer->reply.features};
  return SupervisorClient(std::move(connection), negotiated);
}

absl::StatusOr<SupervisorClient::LeasedExecutable> SupervisorClient::Lease(
    const base::Digest& digest) {
  channel::Lease request = Make<channel::Lease>();
  std::copy(digest.bytes.begin(), digest.bytes.end(), request.digest);
  FUSIOND_ASSIGN_OR_RETURN(auto answer, CallFor<LeaseReply>(*connection_, request));
  base::UniqueFd fd = std::move(answer.message.fds[0]);
  FUSIOND_RETURN_IF_ERROR(
      base::CheckSeals(fd.get(), kSizeSeals | F_SEAL_WRITE, answer.reply.bytes).status());
  return LeasedExecutable{std::move(fd), answer.reply.bytes};
}

absl::StatusOr<std::string> SupervisorClient::WhyEnded(uint32_t process) {
  if (negotiated_.abi_minor < 2) {
    return absl::UnimplementedError("the daemon does not say why workers end");
  }
  channel::WhyEnded request = Make<channel::WhyEnded>();
  request.process = process;
  FUSIOND_ASSIGN_OR_RETURN(auto answer, CallFor<WhyEndedReply>(*connection_, request));
  return internal::TextOf(answer.reply.head);
}

absl::StatusOr<std::unique_ptr<ClientSession>> SupervisorClient::OpenDevice(
    absl::string_view device) {
  FUSIOND_ASSIGN_OR_RETURN(channel::OpenDevice request, MakeOpenDevice(device));
  // Who does not answer now may be either.
  connection_->SetPeer(absl::StrCat("the worker of ", device, ", or ", connection_->peer()));
  FUSIOND_ASSIGN_OR_RETURN(auto answer, CallFor<OpenDeviceReply>(*connection_, request));
  connection_->SetPeer(WorkerName(device, answer.reply));
  if (const uint32_t process = answer.reply.head.process; reconnect_ && process != 0) {
    connection_->SetWhy([reconnect = reconnect_, process]() -> absl::StatusOr<std::string> {
      FUSIOND_ASSIGN_OR_RETURN(base::UniqueFd socket, reconnect());
      FUSIOND_ASSIGN_OR_RETURN(SupervisorClient client,
                               Greet(std::move(socket), {kWhyLimit, kWhyLimit}));
      return client.WhyEnded(process);
    });
  }
  return std::make_unique<ClientSession>(std::move(connection_), negotiated_, answer.reply);
}

ClientSession::ClientSession(std::shared_ptr<ClientConnection> connection,
                             const Negotiated& negotiated, const OpenDeviceReply& opened)
    : connection_(std::move(connection)),
      features_(negotiated.features),
      abi_minor_(negotiated.abi_minor),
      epoch_(opened.epoch),
      stream_slots_(opened.stream_slots) {}

ClientSession::~ClientSession() { connection_->Close(); }

absl::StatusOr<std::unique_ptr<ClientRing>> ClientSession::OpenRing(const RingGeometry& geometry,
                                                                    absl::Duration spin) {
  channel::OpenRing request = Make<channel::OpenRing>();
  request.entries = geometry.entries;
  request.slab_bytes = geometry.slab_bytes;
  FUSIOND_ASSIGN_OR_RETURN(auto answer, CallFor<OpenRingReply>(*connection_, request));
  auto& fds = answer.message.fds;
  return ClientRing::Create(connection_, fds[0].get(), fds[1].get(), std::move(fds[2]),
                            std::move(fds[3]), geometry, spin, abi_minor_);
}

absl::StatusOr<ClientSession::LoadedExecutable> ClientSession::Load(const base::Digest& digest) {
  channel::Load request = Make<channel::Load>();
  std::copy(digest.bytes.begin(), digest.bytes.end(), request.digest);
  FUSIOND_ASSIGN_OR_RETURN(auto answer, CallFor<LoadReply>(*connection_, request));
  return LoadedExecutable{answer.reply.executable, answer.reply.tensors, answer.reply.extents};
}

absl::Status ClientSession::Unload(Handle executable) {
  channel::Unload request = Make<channel::Unload>();
  request.executable = executable;
  return CallFor<UnloadReply>(*connection_, request).status();
}

absl::StatusOr<ClientSession::RemoteBuffer> ClientSession::Allocate(uint64_t bytes,
                                                                    MemoryKind kind) {
  channel::Allocate request = Make<channel::Allocate>();
  request.bytes = bytes;
  request.kind = static_cast<uint32_t>(kind);
  FUSIOND_ASSIGN_OR_RETURN(auto answer, CallFor<AllocateReply>(*connection_, request));
  const AllocateReply& reply = answer.reply;
  RemoteBuffer buffer{reply.buffer, reply.bytes, static_cast<MemoryKind>(reply.kind),
                      std::move(answer.message.fds[0])};
  if (buffer.kind == MemoryKind::kHost) {
    FUSIOND_RETURN_IF_ERROR(base::CheckSeals(buffer.fd.get(), kSizeSeals, buffer.bytes).status());
  }
  return buffer;
}

absl::StatusOr<Handle> ClientSession::Import(int fd, uint64_t bytes, MemoryKind kind) {
  channel::Import request = Make<channel::Import>();
  request.bytes = bytes;
  request.kind = static_cast<uint32_t>(kind);
  FUSIOND_ASSIGN_OR_RETURN(auto answer, CallFor<ImportReply>(*connection_, request, {fd}));
  return answer.reply.buffer;
}

absl::Status ClientSession::Free(Handle buffer) {
  channel::FreeBuffer request = Make<channel::FreeBuffer>();
  request.buffer = buffer;
  return CallFor<FreeBufferReply>(*connection_, request).status();
}

absl::Status ClientSession::Goodbye() {
  absl::Status status = CallFor<GoodbyeReply>(*connection_, Make<channel::Goodbye>()).status();
  connection_->Close();
  return status;
}

}  // namespace fusiond::channel
