#include "server/channel/channel_server.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <variant>

#include "absl/strings/str_cat.h"
#include "runtime/base/clock.h"
#include "runtime/base/memfd.h"
#include "runtime/base/status_macros.h"

namespace fusiond::server {
namespace {

using Request = channel::SupervisorConnection::Request;

// What an epoll event is about: a kind in the low bits, the number of a connection or worker above.
enum Kind : uint64_t { kListener, kWake, kConnection, kFetch, kEnd };
constexpr uint64_t Id(Kind kind, uint64_t number) { return number << 3 | kind; }

absl::Duration Now() { return base::Clock::System().Now(); }

}  // namespace

ChannelServer::ChannelServer(ChannelOptions options, channel::UnixListener listener,
                             Admission admit, cache::Cache* cache, DeviceRegistry* devices,
                             const Grants* grants)
    : options_(std::move(options)),
      listener_(std::move(listener), options_.workers.log),
      admit_(std::move(admit)),
      cache_(cache),
      devices_(devices),
      grants_(grants),
      workers_(
          options_.workers, cache_, grants_,
          [this](int fd, Workers::Event event, uint64_t number) {
            return event == Workers::Event::kFetch
                       ? Watch(fd, EPOLLIN | EPOLLRDHUP, Id(kFetch, number))
                       : Watch(fd, EPOLLIN, Id(kEnd, number));
          },
          [this](int fd) { Unwatch(fd); }) {}

ChannelServer::~ChannelServer() { Stop(); }

absl::Status ChannelServer::Watch(int fd, uint32_t events, uint64_t id) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = id;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0)
    return base::ErrnoStatus(errno, "epoll_ctl");
  return absl::OkStatus();
}

void ChannelServer::Unwatch(int fd) { ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr); }

void ChannelServer::Wake() const {
  const uint64_t one = 1;
  // Fails only when the counter is full, and then the thread is woken anyway.
  [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof(one));
}

absl::Status ChannelServer::Start() {
  epoll_.reset(::epoll_create1(EPOLL_CLOEXEC));
  wake_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!epoll_.valid() || !wake_.valid()) return base::ErrnoStatus(errno, "channel server");
  FUSIOND_RETURN_IF_ERROR(Watch(listener_.listener().fd(), EPOLLIN, Id(kListener, 0)));
  FUSIOND_RETURN_IF_ERROR(Watch(wake_.get(), EPOLLIN, Id(kWake, 0)));
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
  Wake();
  return std::move(pair.second);
}

void ChannelServer::Loop() {
  epoll_event events[32];
  while (true) {
    heartbeat_.Beat();
    const int count = ::epoll_wait(epoll_.get(), events, 32, CloseSilent());
    if (count < 0 && errno != EINTR) return;
    for (int i = 0; i < count; ++i) {
      const uint64_t number = events[i].data.u64 >> 3;
      switch (static_cast<Kind>(events[i].data.u64 & 7)) {
        case kListener:
          if (const absl::Status served = OnListener();
              !served.ok() && !absl::IsUnavailable(served)) {
            listener_.TellRefusal(served);
          }
          break;
        case kWake:
          if (!OnWake()) return;
          break;
        case kConnection:
          OnConnection(number);
          break;
        case kFetch:
          workers_.OnEvent(Workers::Event::kFetch, number);
          break;
        case kEnd:
          workers_.OnEvent(Workers::Event::kEnd, number);
          AnswerWhy();
          break;
      }
    }
  }
}

bool ChannelServer::OnWake() {
  uint64_t counter;
  [[maybe_unused]] const ssize_t read = ::read(wake_.get(), &counter, sizeof(counter));
  std::deque<std::pair<base::UniqueFd, Identity>> handed_in;
  bool drain;
  {
    base::MutexLock lock(&mutex_);
    if (stopping_) return false;
    handed_in.swap(handed_in_);
    drain = draining_;
  }
  for (auto& [fd, identity] : handed_in) AddConnection(std::move(fd), identity);
  if (drain && !std::exchange(refusing_, true)) {
    Unwatch(listener_.listener().fd());
    workers_.Terminate();
  }
  if (!refusing_) {
    listener_.Keep([this](int fd) { Unwatch(fd); },
                   [this](int fd) { return Watch(fd, EPOLLIN, Id(kListener, 0)); });
  }
  return true;
}

// What is refused is closed unread: nothing of a stranger is parsed.
absl::Status ChannelServer::OnListener() {
  FUSIOND_ASSIGN_OR_RETURN(channel::AcceptedConnection accepted, listener_.listener().Accept());
  FUSIOND_ASSIGN_OR_RETURN(const Identity identity, admit_(accepted.peer));
  const auto held = held_.find(identity.Name());
  if (held != held_.end() && held->second.connections >= options_.connections_per_identity) {
    return absl::ResourceExhaustedError(
        absl::StrCat("connections of ", identity.Name(), " that no worker has yet: limit is ",
                     options_.connections_per_identity, ", are ", held->second.connections + 1));
  }
  AddConnection(std::move(accepted.fd), identity);
  return absl::OkStatus();
}

void ChannelServer::AddConnection(base::UniqueFd fd, const Identity& identity) {
  const uint64_t number = next_number_++;
  if (!Watch(fd.get(), EPOLLIN | EPOLLRDHUP, Id(kConnection, number)).ok()) return;
  ++held_[identity.Name()].connections;
  Connection& connection = connections_[number];
  connection.number = number;
  connection.channel = std::make_unique<channel::SupervisorConnection>(std::move(fd));
  connection.identity = identity;
  silent_.emplace_back(Now() + options_.hello_limit, number);
}

int ChannelServer::CloseSilent() {
  for (; !silent_.empty(); silent_.pop_front()) {
    const auto& [deadline, number] = silent_.front();
    const auto found = connections_.find(number);
    if (found == connections_.end() || found->second.greeted) continue;
    const absl::Duration left = deadline - Now();
    if (left > absl::ZeroDuration())
      return static_cast<int>(absl::ToInt64Milliseconds(absl::Ceil(left, absl::Milliseconds(1))));
    RemoveConnection(number);
  }
  return -1;
}

void ChannelServer::RemoveConnection(uint64_t number) {
  const auto found = connections_.find(number);
  Held& held = held_[found->second.identity.Name()];
  held.leases -= static_cast<int>(found->second.pins.size());
  if (--held.connections == 0) held_.erase(found->second.identity.Name());
  connections_.erase(found);
}

void ChannelServer::OnConnection(uint64_t number) {
  const auto found = connections_.find(number);
  if (found == connections_.end()) return;  // removed earlier in this turn
  absl::StatusOr<Request> request = found->second.channel->Next();
  if (absl::IsDeadlineExceeded(request.status())) return;
  found->second.greeted = request.ok();  // nothing else comes before HELLO
  if (!request.ok() || !Serve(found->second, *request)) RemoveConnection(number);
}

bool ChannelServer::Serve(Connection& connection, const Request& request) {
  if (const auto* lease = std::get_if<channel::SupervisorConnection::LeaseRequest>(&request))
    return ServeLease(connection, lease->digest).ok();
  if (const auto* why = std::get_if<channel::SupervisorConnection::WhyRequest>(&request)) {
    connection.why = why->process;
    return ServeWhy(connection).ok();
  }
  const auto* open = std::get_if<channel::SupervisorConnection::DeviceRequest>(&request);
  if (open == nullptr) return true;  // HELLO, answered already
  absl::Status status = refusing_ ? absl::UnavailableError("the daemon is draining")
                                  : devices_->CheckDevice(open->device);
  if (status.ok()) {
    // The worker will hold the same connection, and a watch lives as long as any descriptor of it.
    const int fd = connection.channel->fd();
    Unwatch(fd);
    status = workers_.Adopt(open->device, connection.identity, *connection.channel);
    if (status.ok()) return false;
    if (!Watch(fd, EPOLLIN | EPOLLRDHUP, Id(kConnection, connection.number)).ok()) return false;
  }
  return connection.channel->RefuseDevice(status).ok();
}

absl::Status ChannelServer::ServeWhy(Connection& connection) {
  const absl::StatusOr<std::string> how = workers_.HowEnded(connection.identity, connection.why);
  if (absl::IsUnavailable(how.status())) return absl::OkStatus();  // once it has ended
  connection.why = 0;
  return connection.channel->SendWhy(how);
}

void ChannelServer::AnswerWhy() {
  std::vector<uint64_t> gone;
  for (auto& [number, connection] : connections_) {
    if (connection.why != 0 && !ServeWhy(connection).ok()) gone.push_back(number);
  }
  for (uint64_t number : gone) RemoveConnection(number);
}

absl::Status ChannelServer::ServeLease(Connection& connection, const base::Digest& digest) {
  Held& held = held_[connection.identity.Name()];
  if (held.leases >= options_.leases_per_identity) {
    return connection.channel->RefuseLease(absl::ResourceExhaustedError(
        absl::StrCat("leases of ", connection.identity.Name(), ": limit is ",
                     options_.leases_per_identity, ", are ", held.leases + 1)));
  }
  auto bytes =
      grants_->Allow(connection.identity, digest) ? cache_->FindExecutable(digest) : std::nullopt;
  if (!bytes) {
    return connection.channel->RefuseLease(
        absl::NotFoundError(absl::StrCat("no executable ", digest.Hex())));
  }
  absl::StatusOr<base::UniqueFd> memfd = base::CreateImmutable("fusiond-lease", *bytes->value);
  if (!memfd.ok()) return connection.channel->RefuseLease(memfd.status());
  connection.pins.push_back(cache_->Pin(digest));
  ++held.leases;
  return connection.channel->SendLease(memfd->get(), bytes->value->size());
}

void ChannelServer::BeginDrain() {
  {
    base::MutexLock lock(&mutex_);
    draining_ = true;
  }
  Wake();
}

void ChannelServer::Stop() {
  {
    base::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  if (!thread_.joinable()) return;
  Wake();
  thread_.join();
  connections_.clear();
  workers_.KillAll();
}

void ChannelServer::FillStatus(v1::StatusResponse& status) const {
  for (const Workers::Info& worker : workers_.List()) {
    v1::StatusResponse::Worker* to = status.add_workers();
    to->set_device(worker.device);
    to->set_identity(worker.identity);
    to->set_pid(worker.pid);
  }
  for (const Workers::End& end : workers_.Ends()) {
    v1::StatusResponse::EndedWorker* to = status.add_ended_workers();
    to->set_device(end.worker.device);
    to->set_identity(end.worker.identity);
    to->set_pid(end.worker.pid);
    to->set_how(end.how);
    to->set_ago_ns(absl::ToInt64Nanoseconds(Now() - end.at));
  }
  const Workers::Counts counts = workers_.counts();
  status.set_workers_started(counts.started);
  status.set_workers_lost(counts.lost);
  if (const std::string problem = listener_.problem(); !problem.empty())
    status.add_degraded(problem);
}

bool ChannelServer::Responds(absl::Duration timeout) const {
  const uint64_t before = heartbeat_.beats();
  Wake();
  return heartbeat_.WaitPast(before, timeout);
}

}  // namespace fusiond::server
