#include "server/channel/channel_server.h"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/clock.h"
#include "runtime/base/memfd.h"
#include "runtime/base/status_macros.h"
#include "runtime/worker/executable_source.h"

namespace fusiond::server {
namespace {

constexpr uint64_t kListenerId = 0;
constexpr uint64_t kWakeId = 1;
constexpr absl::Duration kPassTimeout = absl::Seconds(5);
// A worker that ends sooner than this after its start counts as a quick failure.
constexpr absl::Duration kQuick = absl::Seconds(30);

absl::Duration Now() { return base::Clock::System().Now(); }

}  // namespace

ChannelServer::ChannelServer(ChannelOptions options, channel::UnixListener listener,
                             Admission admit, cache::Cache* cache, DeviceRegistry* devices)
    : options_(std::move(options)),
      listener_(std::move(listener)),
      admit_(std::move(admit)),
      cache_(cache),
      devices_(devices) {}

ChannelServer::~ChannelServer() { Stop(); }

absl::Status ChannelServer::Watch(int fd, uint32_t events, uint64_t id) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = id;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0)
    return base::ErrnoStatus(errno, "epoll_ctl");
  return absl::OkStatus();
}

absl::Status ChannelServer::Start() {
  epoll_.reset(::epoll_create1(EPOLL_CLOEXEC));
  wake_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!epoll_.valid() || !wake_.valid()) return base::ErrnoStatus(errno, "channel server");
  FUSIOND_RETURN_IF_ERROR(Watch(listener_.fd(), EPOLLIN, kListenerId));
  FUSIOND_RETURN_IF_ERROR(Watch(wake_.get(), EPOLLIN, kWakeId));
  thread_ = std::thread([this] { Loop(); });
  return absl::OkStatus();
}

absl::StatusOr<base::UniqueFd> ChannelServer::ConnectAs(const Identity& identity) {
  FUSIOND_ASSIGN_OR_RETURN(auto pair, channel::SocketPair());
  {
    base::MutexLock lock(&mutex_);
    if (stopping_ || draining_) return absl::UnavailableError("the daemon is draining");
    handed_in_.emplace_back(std::move(pair.first), identity);
  }
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof(one));
  return std::move(pair.second);
}

void ChannelServer::Loop() {
  epoll_event events[32];
  while (true) {
    const int count = ::epoll_wait(epoll_.get(), events, 32, -1);
    if (count < 0 && errno != EINTR) return;
    for (int i = 0; i < count; ++i) {
      const uint64_t id = events[i].data.u64;
      if (id == kListenerId) {
        OnListener();
      } else if (id == kWakeId) {
        uint64_t counter;
        [[maybe_unused]] const ssize_t read = ::read(wake_.get(), &counter, sizeof(counter));
        std::deque<std::pair<base::UniqueFd, Identity>> handed_in;
        {
          base::MutexLock lock(&mutex_);
          if (stopping_) return;
          handed_in.swap(handed_in_);
        }
        for (auto& [fd, identity] : handed_in) AddConnection(std::move(fd), identity);
      } else if (connections_.contains(id)) {
        OnConnection(id);
      } else if (id % 2 == 0) {
        OnFetch(id);
      } else {
        OnWorkerEnd(id - 1);
      }
    }
  }
}

void ChannelServer::OnListener() {
  absl::StatusOr<channel::AcceptedConnection> accepted = listener_.Accept();
  if (!accepted.ok()) return;
  absl::StatusOr<Identity> identity = admit_(accepted->peer);
  if (!identity.ok()) return;  // closed unread
  {
    base::MutexLock lock(&mutex_);
    if (draining_) return;
  }
  const std::string name = identity->Name();
  const auto same = std::count_if(connections_.begin(), connections_.end(), [&](const auto& entry) {
    return entry.second.identity.Name() == name;
  });
  if (same >= options_.connections_per_identity) return;
  AddConnection(std::move(accepted->fd), *identity);
}

void ChannelServer::AddConnection(base::UniqueFd fd, const Identity& identity) {
  const uint64_t id = next_id_;
  next_id_ += 2;  // a worker takes two, and ids are told apart by parity
  if (!Watch(fd.get(), EPOLLIN | EPOLLRDHUP, id).ok()) return;
  connections_[id] = {std::make_unique<channel::SupervisorConnection>(std::move(fd)), identity, {}};
}

void ChannelServer::OnConnection(uint64_t id) {
  Connection& connection = connections_[id];
  absl::StatusOr<channel::SupervisorConnection::Request> request = connection.channel->Next();
  if (absl::IsDeadlineExceeded(request.status())) return;
  bool passed = false;
  absl::Status status = request.ok() ? Serve(connection, *request, passed) : request.status();
  if (!status.ok() || passed) connections_.erase(id);
}

absl::Status ChannelServer::Serve(Connection& connection,
                                  const channel::SupervisorConnection::Request& request,
                                  bool& passed) {
  if (const auto* lease = std::get_if<channel::SupervisorConnection::LeaseRequest>(&request)) {
    return ServeLease(connection, lease->digest);
  }
  if (const auto* device = std::get_if<channel::SupervisorConnection::DeviceRequest>(&request)) {
    return ServeDevice(connection, device->device, passed);
  }
  return absl::OkStatus();  // HELLO was answered
}

absl::Status ChannelServer::ServeLease(Connection& connection, const base::Digest& digest) {
  if (connection.pins.size() >= static_cast<size_t>(options_.leases_per_identity)) {
    return connection.channel->RefuseLease(absl::ResourceExhaustedError(
        absl::StrCat("leases of one connection: limit is ", options_.leases_per_identity)));
  }
  auto bytes = cache_->FindExecutable(digest);
  if (!bytes) {
    return connection.channel->RefuseLease(
        absl::NotFoundError(absl::StrCat("no executable ", digest.Hex())));
  }
  absl::StatusOr<base::UniqueFd> memfd = base::CreateImmutable("fusiond-lease", *bytes->value);
  if (!memfd.ok()) return connection.channel->RefuseLease(memfd.status());
  connection.pins.push_back(cache_->Pin(digest));
  return connection.channel->SendLease(memfd->get(), bytes->value->size());
}

absl::Status ChannelServer::ServeDevice(Connection& connection, const std::string& device,
                                        bool& passed) {
  absl::Status known = devices_->CheckDevice(device);
  if (!known.ok()) return connection.channel->RefuseDevice(known);
  for (int attempt = 0; attempt < 2; ++attempt) {
    absl::StatusOr<Worker*> worker = WorkerFor(device, connection.identity);
    if (!worker.ok()) return connection.channel->RefuseDevice(worker.status());
    if (channel::HasHungUp((*worker)->child->socket())) {
      // It ended between two events; its end will be seen, start another now.
      base::MutexLock lock(&mutex_);
      for (auto it = workers_.begin(); it != workers_.end(); ++it) {
        if (it->second.get() == *worker) {
          workers_.erase(it);
          break;
        }
      }
      continue;
    }
    FUSIOND_RETURN_IF_ERROR(
        std::move(*connection.channel).PassTo((*worker)->child->socket(), kPassTimeout));
    passed = true;
    return absl::OkStatus();
  }
  return connection.channel->RefuseDevice(absl::UnavailableError("the worker keeps ending"));
}

absl::StatusOr<ChannelServer::Worker*> ChannelServer::WorkerFor(const std::string& device,
                                                                const Identity& identity) {
  const std::string name = identity.Name();
  {
    base::MutexLock lock(&mutex_);
    for (auto& [id, worker] : workers_) {
      if (worker->device == device && worker->identity == name) return worker.get();
    }
  }
  auto pause = pauses_.find({device, name});
  if (pause != pauses_.end() && Now() < pause->second.until) {
    return absl::UnavailableError(absl::StrCat("the worker of ", device,
                                               " ended too soon after its start; next try in ",
                                               absl::FormatDuration(pause->second.until - Now())));
  }
  FUSIOND_ASSIGN_OR_RETURN(std::unique_ptr<Worker> started, StartWorker(device, identity));
  const uint64_t id = next_id_;
  next_id_ += 2;
  FUSIOND_RETURN_IF_ERROR(Watch(started->fetch.get(), EPOLLIN | EPOLLRDHUP, id));
  FUSIOND_RETURN_IF_ERROR(Watch(started->child->pidfd(), EPOLLIN, id + 1));
  Worker* worker = started.get();
  base::MutexLock lock(&mutex_);
  workers_[id] = std::move(started);
  return worker;
}

absl::StatusOr<std::unique_ptr<ChannelServer::Worker>> ChannelServer::StartWorker(
    const std::string& device, const Identity& identity) {
  auto worker = std::make_unique<Worker>();
  worker->device = device;
  worker->identity = identity.Name();
  worker->started = Now();
  SpawnOptions spawn;
  spawn.arguments = {"--role=worker", absl::StrCat("--device=", device)};
  if (!options_.driver_path.empty())
    spawn.arguments.push_back(absl::StrCat("--driver=", options_.driver_path));
  spawn.environment = options_.worker_environment;
  spawn.socket_type = SOCK_SEQPACKET;
  FUSIOND_ASSIGN_OR_RETURN(worker->child, ChildProcess::Spawn(spawn));
  // The second socket travels over the first: the worker's first message.
  FUSIOND_ASSIGN_OR_RETURN(auto fetch, channel::SocketPair());
  worker->fetch = std::move(fetch.first);
  const int theirs = fetch.second.get();
  FUSIOND_RETURN_IF_ERROR(
      channel::SendMessage(worker->child->socket(), "fetch", {&theirs, 1}, kPassTimeout));
  options_.log(absl::StrCat("worker started: device=", device, " identity=", worker->identity,
                            " pid=", worker->child->pid()));
  return worker;
}

void ChannelServer::OnFetch(uint64_t id) {
  base::MutexLock lock(&mutex_);
  auto found = workers_.find(id);
  if (found == workers_.end()) return;
  Worker& worker = *found->second;
  while (true) {
    absl::StatusOr<worker::FetchRequest> request = worker::ReceiveFetchRequest(worker.fetch.get());
    if (absl::IsUnavailable(request.status())) {
      ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, worker.fetch.get(), nullptr);  // its end follows
      return;
    }
    if (!request.ok()) return;
    base::Digest digest;
    std::copy(std::begin(request->digest), std::end(request->digest), digest.bytes.begin());
    auto bytes = cache_->FindExecutable(digest);
    if (!bytes) {
      worker::SendFetchError(worker.fetch.get(), request->id,
                             absl::NotFoundError(absl::StrCat("no executable ", digest.Hex())))
          .IgnoreError();  // a worker that is gone shows as its end
      continue;
    }
    absl::StatusOr<base::UniqueFd> memfd =
        base::CreateImmutable("fusiond-executable", *bytes->value);
    absl::Status sent =
        memfd.ok() ? worker::SendFetchReply(worker.fetch.get(), request->id, memfd->get(),
                                            bytes->value->size())
                   : worker::SendFetchError(worker.fetch.get(), request->id, memfd.status());
    if (!sent.ok()) return;
  }
}

void ChannelServer::OnWorkerEnd(uint64_t id) {
  std::unique_ptr<Worker> worker;
  {
    base::MutexLock lock(&mutex_);
    auto found = workers_.find(id);
    if (found == workers_.end()) return;
    worker = std::move(found->second);
    workers_.erase(found);
  }
  std::optional<ExitStatus> exit = worker->child->Reap();
  const bool clean = exit.has_value() && exit->signal == 0 && exit->exit_code == 0;
  options_.log(absl::StrCat("worker ended: device=", worker->device, " identity=", worker->identity,
                            " pid=", worker->child->pid(), " ",
                            exit.has_value() ? exit->ToString() : "?"));
  const WorkerKey key{worker->device, worker->identity};
  if (clean || Now() - worker->started > kQuick) {
    pauses_.erase(key);
    return;
  }
  Pause& pause = pauses_[key];
  pause.length = pause.length == absl::ZeroDuration()
                     ? options_.restart_pause
                     : std::min(2 * pause.length, options_.restart_pause_limit);
  pause.until = Now() + pause.length;
}

void ChannelServer::BeginDrain() {
  base::MutexLock lock(&mutex_);
  draining_ = true;
  for (auto& [id, worker] : workers_) ::kill(worker->child->pid(), SIGTERM);
}

void ChannelServer::Stop() {
  {
    base::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  if (thread_.joinable()) {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof(one));
    thread_.join();
  }
  base::MutexLock lock(&mutex_);
  workers_.clear();  // kills and waits
}

void ChannelServer::FillStatus(v1::StatusResponse& status) const {
  base::MutexLock lock(&mutex_);
  for (const auto& [id, worker] : workers_) {
    v1::StatusResponse::Worker* to = status.add_workers();
    to->set_device(worker->device);
    to->set_identity(worker->identity);
    to->set_pid(worker->child->pid());
  }
}

}  // namespace fusiond::server
