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

namespace fusiond::server {
namespace {

constexpr uint64_t kListenerId = 0;
constexpr uint64_t kStopId = 1;
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
                             Admission admit, FusiondLogic* logic, InlineExecutor* executor,
                             CallTracker* tracker, CallLog log)
    : options_(options),
      listener_(std::move(listener)),
      admit_(std::move(admit)),
      logic_(logic),
      executor_(executor),
      tracker_(tracker),
      log_(std::move(log)) {
  // Process-wide settings of gRPC; made before the first server is built.
  static const bool once = [] {
    grpc::EnableDefaultHealthCheckService(true);
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
    return true;
  }();
  (void)once;
}

ControlServer::~ControlServer() { Stop(absl::ZeroDuration()); }

absl::Status ControlServer::Start() {
  epoll_.reset(::epoll_create1(EPOLL_CLOEXEC));
  stop_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!epoll_.valid() || !stop_.valid()) return base::ErrnoStatus(errno, "control server");
  FUSIOND_RETURN_IF_ERROR(Watch(epoll_.get(), listener_.fd(), EPOLLIN, kListenerId));
  FUSIOND_RETURN_IF_ERROR(Watch(epoll_.get(), stop_.get(), EPOLLIN, kStopId));
  thread_ = std::thread([this] { AcceptLoop(); });
  return absl::OkStatus();
}

void ControlServer::AcceptLoop() {
  epoll_event events[16];
  while (true) {
    const int count = ::epoll_wait(epoll_.get(), events, 16, -1);
    if (count < 0 && errno != EINTR) return;
    for (int i = 0; i < count; ++i) {
      const uint64_t id = events[i].data.u64;
      if (id == kStopId) return;
      if (id == kListenerId) {
        absl::StatusOr<channel::AcceptedConnection> accepted = listener_.Accept();
        if (accepted.ok()) Adopt(*std::move(accepted));
        continue;
      }
      base::MutexLock lock(&mutex_);
      auto closed = watched_.find(id);
      if (closed == watched_.end()) continue;
      auto server = servers_.find(closed->second.identity);
      if (server != servers_.end()) --server->second->connections;
      watched_.erase(closed);  // closing our duplicate also ends its watch
    }
  }
}

absl::StatusOr<ControlServer::PerIdentity*> ControlServer::ServerFor(const Identity& identity) {
  std::unique_ptr<PerIdentity>& slot = servers_[identity.Name()];
  if (slot != nullptr) return slot.get();
  if (servers_.size() > static_cast<size_t>(options_.max_identities)) {
    servers_.erase(identity.Name());
    return absl::ResourceExhaustedError(
        absl::StrCat("identities: limit is ", options_.max_identities));
  }
  auto per = std::make_unique<PerIdentity>();
  per->service = std::make_unique<FusiondService>(logic_, executor_, tracker_, identity, log_);
  grpc::ResourceQuota quota(identity.Name());
  quota.Resize(options_.memory_per_identity);
  grpc::ServerBuilder builder;
  builder.SetResourceQuota(quota);
  builder.SetMaxReceiveMessageSize(options_.max_message_bytes);
  builder.SetMaxSendMessageSize(-1);
  builder.RegisterService(per->service.get());
  per->server = builder.BuildAndStart();
  if (per->server == nullptr) {
    servers_.erase(identity.Name());
    return absl::InternalError("gRPC did not start a server");
  }
  per->server->GetHealthCheckService()->SetServingStatus(kServiceName, true);
  slot = std::move(per);
  return slot.get();
}

void ControlServer::Adopt(channel::AcceptedConnection connection) {
  absl::StatusOr<Identity> identity = admit_(connection.peer);
  if (!identity.ok()) return;  // closed unread: nothing of a stranger is parsed
  base::UniqueFd duplicate(::fcntl(connection.fd.get(), F_DUPFD_CLOEXEC, 3));
  if (!duplicate.valid()) return;
  base::MutexLock lock(&mutex_);
  if (draining_) return;
  absl::StatusOr<PerIdentity*> server = ServerFor(*identity);
  if (!server.ok() || (*server)->connections >= options_.connections_per_identity) return;
  const uint64_t id = next_watched_++;
  if (!Watch(epoll_.get(), duplicate.get(), EPOLLRDHUP, id).ok()) return;
  ++(*server)->connections;
  watched_.emplace(id, Watched{std::move(duplicate), identity->Name()});
  grpc::AddInsecureChannelFromFd((*server)->server.get(), connection.fd.release());
}

void ControlServer::BeginDrain() {
  base::MutexLock lock(&mutex_);
  draining_ = true;
  for (auto& [name, server] : servers_) {
    server->server->GetHealthCheckService()->SetServingStatus(false);
  }
}

void ControlServer::Stop(absl::Duration grace) {
  if (thread_.joinable()) {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(stop_.get(), &one, sizeof(one));
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

}  // namespace fusiond::server
