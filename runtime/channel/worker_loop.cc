#include "runtime/channel/worker_loop.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/clock.h"
#include "runtime/base/status_macros.h"

namespace fusiond::channel {
namespace {

// What epoll events carry: a session's or watch's id, or one of these.
constexpr uint64_t kRingId = 0;
constexpr uint64_t kStopId = ~uint64_t{0};

// While busy, how often sockets are looked at. A look costs a system call.
constexpr int64_t kEventInterval_ns = 50'000;

// How often rings are looked at between looks at the clock and the device.
constexpr int kLooks = 32;

absl::Status AddToEpoll(int epoll, int fd, uint32_t events, uint64_t id) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = id;
  if (::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0) {
    return base::ErrnoStatus(errno, "add to epoll");
  }
  return absl::OkStatus();
}

// Needed before close: an eventfd that the client holds too would stay registered. Cannot fail for
// a descriptor that was added.
void RemoveFromEpoll(int epoll, int fd) { ::epoll_ctl(epoll, EPOLL_CTL_DEL, fd, nullptr); }

}  // namespace

absl::StatusOr<std::unique_ptr<WorkerLoop>> WorkerLoop::Create(Device* device,
                                                               WorkerLoopOptions options) {
  base::UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.valid()) return base::ErrnoStatus(errno, "create epoll");
  base::UniqueFd stop(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!stop.valid()) return base::ErrnoStatus(errno, "create eventfd");
  FUSIOND_RETURN_IF_ERROR(AddToEpoll(epoll.get(), stop.get(), EPOLLIN, kStopId));
  uint64_t epoch = 0;
  while (epoch == 0) {
    if (::getrandom(&epoch, sizeof(epoch), 0) != sizeof(epoch)) {
      return base::ErrnoStatus(errno, "draw a random epoch");
    }
  }
  return std::unique_ptr<WorkerLoop>(
      new WorkerLoop(device, std::move(options), std::move(epoll), std::move(stop), epoch));
}

WorkerLoop::WorkerLoop(Device* device, WorkerLoopOptions options, base::UniqueFd epoll,
                       base::UniqueFd stop, uint64_t epoch)
    : device_(device),
      options_(std::move(options)),
      epoll_(std::move(epoll)),
      stop_(std::move(stop)),
      epoch_(epoch) {}

WorkerLoop::~WorkerLoop() = default;

absl::Status WorkerLoop::AddConnection(base::UniqueFd connection, const Negotiated& negotiated) {
  absl::Status admitted = absl::OkStatus();
  if (state_ != WorkerState::kServing) {
    admitted = absl::UnavailableError("the worker is draining");
  } else if (sessions_.size() >= options_.max_sessions) {
    admitted = absl::ResourceExhaustedError(absl::StrCat(
        "sessions of a worker: limit is ", options_.max_sessions, ", are ", sessions_.size() + 1));
  }
  if (!admitted.ok()) {
    // Best effort: the client sees the hang-up in any case.
    SendError<OpenDeviceReply>(connection.get(), admitted, absl::ZeroDuration()).IgnoreError();
    return admitted;
  }
  const uint64_t id = next_id_++;
  auto session = std::make_shared<WorkerSession>(std::move(connection), negotiated, epoch_,
                                                 options_.limits, device_, &next_ring_id_);
  FUSIOND_RETURN_IF_ERROR(session->Start());
  FUSIOND_RETURN_IF_ERROR(AddToEpoll(epoll_.get(), session->fd(), EPOLLIN | EPOLLRDHUP, id));
  sessions_[id].session = std::move(session);
  return absl::OkStatus();
}

absl::Status WorkerLoop::AdoptFrom(int supervisor_socket) {
  FUSIOND_ASSIGN_OR_RETURN(ReceivedMessage message,
                           ReceiveMessage(supervisor_socket, absl::ZeroDuration()));
  FUSIOND_ASSIGN_OR_RETURN(Adopt adopt, DecodeRequest<Adopt>(message));
  return AddConnection(std::move(message.fds[0]), {adopt.abi_minor, adopt.features});
}

absl::Status WorkerLoop::Watch(int fd, std::function<void()> on_ready) {
  const uint64_t id = next_id_++;
  FUSIOND_RETURN_IF_ERROR(AddToEpoll(epoll_.get(), fd, EPOLLIN | EPOLLRDHUP, id));
  watches_[id] = std::move(on_ready);
  return absl::OkStatus();
}

absl::Status WorkerLoop::Run() {
  const int64_t spin_ns = absl::ToInt64Nanoseconds(options_.spin);
  int64_t last_work_ns = base::MonotonicNanos();
  int64_t last_events_ns = last_work_ns;
  while (!stopping_) {
    const bool worked = ServeRings();
    absl::Duration idle = device_->Poll();
    PublishRings();
    if (!worked && state_ == WorkerState::kLost) return lost_;
    if (!worked && state_ == WorkerState::kDraining) {
      const absl::Duration left = UntilDrained();
      if (left <= absl::ZeroDuration()) return absl::OkStatus();
      idle = std::min(idle, left);
    }
    const int64_t now_ns = base::MonotonicNanos();
    if (worked) last_work_ns = now_ns;
    if (worked || idle <= absl::ZeroDuration() || now_ns - last_work_ns < spin_ns) {
      if (now_ns - last_events_ns < kEventInterval_ns) {
        if (!worked && idle == absl::InfiniteDuration()) LookForEntries();
        continue;
      }
      HandleEvents(absl::ZeroDuration());
    } else {
      Sleep(idle);
    }
    last_events_ns = now_ns;
  }
  return absl::OkStatus();
}

void WorkerLoop::Stop() {
  const uint64_t one = 1;
  // Cannot fail: the counter is never near its end.
  [[maybe_unused]] const ssize_t written = ::write(stop_.get(), &one, sizeof(one));
}

void WorkerLoop::Drain(absl::Duration grace) {
  if (state_ != WorkerState::kServing) return;
  drain_deadline_ = base::Clock::System().Now() + grace;
  SetState(WorkerState::kDraining);
}

void WorkerLoop::Lose(absl::Status why) {
  if (state_ == WorkerState::kLost) return;
  lost_ = std::move(why);
  SetState(WorkerState::kLost);
}

void WorkerLoop::SetState(WorkerState state) {
  state_ = state;
  for (auto& [id, entry] : sessions_) entry.session->SetState(state);
}

// Zero or less once nothing is in flight or the grace is over.
absl::Duration WorkerLoop::UntilDrained() const {
  uint32_t in_flight = 0;
  for (const auto& [id, entry] : sessions_) in_flight += entry.session->in_flight();
  if (in_flight == 0) return absl::ZeroDuration();
  return drain_deadline_ - base::Clock::System().Now();
}

bool WorkerLoop::ServeRings() {
  bool worked = false;
  std::vector<std::pair<uint64_t, absl::Status>> failed;
  for (auto& [id, entry] : sessions_) {
    for (const auto& ring : entry.session->rings()) {
      absl::StatusOr<size_t> served = entry.session->ServeRing(ring, options_.batch);
      if (!served.ok()) {
        failed.emplace_back(id, served.status());
        break;
      }
      if (*served == 0) continue;
      worked = true;
      ring->Publish();
    }
  }
  for (auto& [id, why] : failed) EndSession(id, why);
  return worked;
}

template <typename Function>
void WorkerLoop::ForEachRing(Function function) {
  for (auto& [id, entry] : sessions_) {
    for (const auto& ring : entry.session->rings()) function(*ring);
  }
}

void WorkerLoop::PublishRings() {
  ForEachRing([](WorkerRing& ring) { ring.Publish(); });
}

// Spins until a ring has entries, for a microsecond or so: nothing else is looked at, so that the
// answer to the next entry starts at once.
void WorkerLoop::LookForEntries() {
  bool found = false;
  for (int look = 0; look < kLooks && !found; ++look) {
    CpuRelax();
    ForEachRing([&](WorkerRing& ring) { found = found || ring.submissions().Ready(); });
  }
}

void WorkerLoop::Sleep(absl::Duration at_most) {
  bool empty = true;
  ForEachRing([&](WorkerRing& ring) { empty = ring.submissions().BeginSleep() && empty; });
  HandleEvents(empty ? at_most : absl::ZeroDuration());
}

void WorkerLoop::HandleEvents(absl::Duration timeout) {
  epoll_event events[64];
  const timespec wait = absl::ToTimespec(timeout);
  const int count = ::epoll_pwait2(epoll_.get(), events, std::size(events),
                                   timeout == absl::InfiniteDuration() ? nullptr : &wait, nullptr);
  ForEachRing([](WorkerRing& ring) { ring.submissions().EndSleep(); });
  for (int i = 0; i < count; ++i) {
    const uint64_t id = events[i].data.u64;
    if (id == kRingId) continue;  // its purpose was to end the sleep
    if (id == kStopId) {
      stopping_ = true;
    } else if (auto watch = watches_.find(id); watch != watches_.end()) {
      watch->second();
    } else {
      HandleSession(id);
    }
  }
}

void WorkerLoop::HandleSession(uint64_t id) {
  auto found = sessions_.find(id);
  if (found == sessions_.end()) return;  // ended by an earlier event
  absl::Status status = found->second.session->HandleMessage();
  if (status.ok()) status = WatchNewRings(&found->second);
  if (!status.ok()) EndSession(id, std::move(status));
}

absl::Status WorkerLoop::WatchNewRings(Session* session) {
  const auto& rings = session->session->rings();
  for (; session->watched_rings < rings.size(); ++session->watched_rings) {
    // Edge-triggered and never read: the client could make a read block by emptying the counter.
    FUSIOND_RETURN_IF_ERROR(AddToEpoll(
        epoll_.get(), rings[session->watched_rings]->wake_worker_fd(), EPOLLIN | EPOLLET, kRingId));
  }
  return absl::OkStatus();
}

void WorkerLoop::EndSession(uint64_t id, absl::Status why) {
  auto found = sessions_.find(id);
  Session session = std::move(found->second);
  sessions_.erase(found);
  RemoveFromEpoll(epoll_.get(), session.session->fd());
  for (size_t i = 0; i < session.watched_rings; ++i) {
    RemoveFromEpoll(epoll_.get(), session.session->rings()[i]->wake_worker_fd());
  }
  if (absl::IsUnavailable(why) || absl::IsCancelled(why)) why = absl::OkStatus();
  options_.on_session_end(why);
}

}  // namespace fusiond::channel
