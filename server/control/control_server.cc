#include "server/control/control_server.h"

#include <fcntl.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/server_posix.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "server/process/thread_room.h"

namespace fusiond::server {
namespace {

constexpr uint64_t kListenerId = 0;
constexpr uint64_t kWakeId = 1;
// Of which gRPC starts some with its first server and one with each. It aborts where it cannot.
constexpr int kThreadsOfGrpc = 16;
constexpr char kServiceName[] = "fusiond.v1.Fusiond";

absl::Status Watch(int epoll, int fd, uint32_t events, uint64_t id) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = id;
  if (::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0)
    return base::ErrnoStatus(errno, "epoll_ctl");
  return absl::OkStatus();
}

}  // namespace

struct ControlServer::PerIdentity {
  std::unique_ptr<FusiondService> service;
  std::unique_ptr<grpc::Server> server;  // before the service in destruction
  int connections = 0;

  ~PerIdentity() {
    if (server != nullptr) server->Shutdown(std::chrono::system_clock::now());
    server.reset();
  }
};

ControlServer::ControlServer(const ControlOptions& options, channel::UnixListener listener,
                             Admission admit, const ServiceParts& parts)
    : options_(options),
      listener_(std::move(listener), options.log),
      admit_(std::move(admit)),
      parts_(parts) {
  // Process-wide settings of gRPC; made before the first server is built.
  [[maybe_unused]] static const bool once = [] {
    grpc::EnableDefaultHealthCheckService(true);
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
    return true;
  }();
}

ControlServer::~ControlServer() { Stop(absl::ZeroDuration()); }

absl::Status ControlServer::Start() {
  epoll_.reset(::epoll_create1(EPOLL_CLOEXEC));
  wake_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!epoll_.valid() || !wake_.valid()) return base::ErrnoStatus(errno, "control server");
  FUSIOND_RETURN_IF_ERROR(Watch(epoll_.get(), listener_.listener().fd(), EPOLLIN, kListenerId));
  FUSIOND_RETURN_IF_ERROR(Watch(epoll_.get(), wake_.get(), EPOLLIN, kWakeId));
  thread_ = std::thread([this] { AcceptLoop(); });
  return absl::OkStatus();
}

void ControlServer::Wake() const {
  const uint64_t one = 1;
  // Fails only when the counter is full, and then the thread is woken anyway.
  [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof(one));
}

void ControlServer::AcceptLoop() {
  epoll_event events[16];
  while (true) {
    heartbeat_.Beat();
    const int count = ::epoll_wait(epoll_.get(), events, 16, -1);
    if (count < 0 && errno != EINTR) return;
    for (int i = 0; i < count; ++i) {
      const uint64_t id = events[i].data.u64;
      if (id == kWakeId) {
        if (!OnWake()) return;
      } else if (id == kListenerId) {
        absl::StatusOr<channel::AcceptedConnection> accepted = listener_.listener().Accept();
        const absl::Status adopted =
            accepted.ok() ? Adopt(*std::move(accepted)) : accepted.status();
        if (!adopted.ok() && !absl::IsUnavailable(adopted)) listener_.TellRefusal(adopted);
      } else {
        OnHangUp(id);
      }
    }
  }
}

bool ControlServer::OnWake() {
  uint64_t counter;
  [[maybe_unused]] const ssize_t read = ::read(wake_.get(), &counter, sizeof(counter));
  {
    base::MutexLock lock(&mutex_);
    if (stopping_) return false;
    if (draining_) {
      ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, listener_.listener().fd(), nullptr);
      return true;
    }
  }
  listener_.Keep([this](int fd) { ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr); },
                 [this](int fd) { return Watch(epoll_.get(), fd, EPOLLIN, kListenerId); });
  return true;
}

void ControlServer::OnHangUp(uint64_t id) {
  base::MutexLock lock(&mutex_);
  const auto closed = watched_.find(id);
  if (closed == watched_.end()) return;
  const auto server = servers_.find(closed->second.identity);
  if (server != servers_.end()) --server->second->connections;
  // A watch lives as long as any descriptor of the connection, and gRPC keeps its own while a call
  // runs.
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, closed->second.fd.get(), nullptr);
  watched_.erase(closed);
}

absl::StatusOr<ControlServer::PerIdentity*> ControlServer::ServerFor(const Identity& identity) {
  std::unique_ptr<PerIdentity>& slot = servers_[identity.Name()];
  if (slot != nullptr) return slot.get();
  if (servers_.size() > static_cast<size_t>(options_.max_identities)) {
    servers_.erase(identity.Name());
    return absl::ResourceExhaustedError(absl::StrCat(
        "identities: limit is ", options_.max_identities, ", are ", servers_.size() + 1));
  }
  if (absl::Status room = CheckRoomForThreads(kThreadsOfGrpc); !room.ok()) {
    servers_.erase(identity.Name());
    return room;
  }
  auto per = std::make_unique<PerIdentity>();
  per->service = std::make_unique<FusiondService>(parts_, identity);
  grpc::ResourceQuota quota(identity.Name());
  quota.Resize(options_.memory_per_identity);
  grpc::ServerBuilder builder;
  builder.SetResourceQuota(quota);
  builder.SetMaxReceiveMessageSize(options_.max_message_bytes);
  builder.SetMaxSendMessageSize(-1);
  // Clients ask by pings whether we still turn; without this, gRPC takes more than one in five
  // minutes for an attack.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                             options_.ping_interval_ms);
  builder.RegisterService(per->service.get());
  per->server = builder.BuildAndStart();
  if (per->server == nullptr) {
    servers_.erase(identity.Name());
    return absl::InternalError("gRPC did not start a server");
  }
  for (const char* name : {"", kServiceName})
    per->server->GetHealthCheckService()->SetServingStatus(name, serving_);
  slot = std::move(per);
  return slot.get();
}

// What is refused is closed unread: nothing of a stranger is parsed.
absl::Status ControlServer::Adopt(channel::AcceptedConnection connection) {
  FUSIOND_ASSIGN_OR_RETURN(const Identity identity, admit_(connection.peer));
  base::UniqueFd duplicate(::fcntl(connection.fd.get(), F_DUPFD_CLOEXEC, 3));
  if (!duplicate.valid()) return base::ErrnoStatus(errno, "duplicate it");
  base::MutexLock lock(&mutex_);
  if (draining_) return absl::UnavailableError("the daemon is draining");
  FUSIOND_ASSIGN_OR_RETURN(PerIdentity * server, ServerFor(identity));
  if (server->connections >= options_.connections_per_identity) {
    return absl::ResourceExhaustedError(
        absl::StrCat("connections of ", identity.Name(), ": limit is ",
                     options_.connections_per_identity, ", are ", server->connections + 1));
  }
  const uint64_t id = next_watched_++;
  FUSIOND_RETURN_IF_ERROR(Watch(epoll_.get(), duplicate.get(), EPOLLRDHUP, id));
  ++server->connections;
  watched_.emplace(id, Watched{std::move(duplicate), identity.Name()});
  grpc::AddInsecureChannelFromFd(server->server.get(), connection.fd.release());
  return absl::OkStatus();
}

void ControlServer::SetHealth(bool serving) {
  base::MutexLock lock(&mutex_);
  serving_ = serving;
  for (auto& [name, server] : servers_) {
    for (const char* service : {"", kServiceName})
      server->server->GetHealthCheckService()->SetServingStatus(service, serving);
  }
}

void ControlServer::SetServing() { SetHealth(true); }

void ControlServer::BeginDrain() {
  SetHealth(false);
  {
    base::MutexLock lock(&mutex_);
    draining_ = true;
  }
  Wake();
}

void ControlServer::Stop(absl::Duration grace) {
  {
    base::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  if (thread_.joinable()) {
    Wake();
    thread_.join();
  }
  absl::flat_hash_map<std::string, std::unique_ptr<PerIdentity>> servers;
  {
    base::MutexLock lock(&mutex_);
    servers.swap(servers_);
    watched_.clear();
  }
  const auto deadline = std::chrono::system_clock::now() + absl::ToChronoNanoseconds(grace);
  for (auto& [name, server] : servers) server->server->Shutdown(deadline);
}

size_t ControlServer::connections() const {
  base::MutexLock lock(&mutex_);
  return watched_.size();
}

bool ControlServer::Responds(absl::Duration timeout) const {
  const uint64_t before = heartbeat_.beats();
  Wake();
  return heartbeat_.WaitPast(before, timeout);
}

}  // namespace fusiond::server
