#include "server/pool/compile_pool.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "runtime/base/clock.h"
#include "runtime/base/retry_hint.h"

namespace fusiond::server {
namespace {

// About what a compile takes; nobody knows which of the waiting ones are quick.
constexpr absl::Duration kFullQueueRetry = absl::Milliseconds(250);

absl::Duration Now() { return base::Clock::System().Now(); }

// poll's milliseconds, rounded up so that the deadline has passed when it returns; -1: for ever.
int PollTimeout(absl::Duration wait) {
  if (wait == absl::InfiniteDuration()) return -1;
  const int64_t ms = absl::ToInt64Milliseconds(absl::Ceil(wait, absl::Milliseconds(1)));
  return static_cast<int>(std::clamp<int64_t>(ms, 0, 3'600'000));
}

}  // namespace

absl::StatusOr<std::unique_ptr<CompilePool>> CompilePool::Create(CompilePoolOptions options) {
  if (options.processes < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("compile pool: at least 1 process, given ", options.processes));
  }
  base::UniqueFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.valid()) return base::ErrnoStatus(errno, "eventfd of the compile pool");
  std::unique_ptr<CompilePool> pool(new CompilePool(std::move(options), std::move(wake)));
  pool->thread_ = std::thread([p = pool.get()] { p->Loop(); });
  return pool;
}

CompilePool::~CompilePool() { Shutdown(absl::ZeroDuration()); }

absl::StatusOr<CompileJobId> CompilePool::Submit(CompileRequest request, CompileCallback done) {
  if (const size_t bytes = request.job.ByteSizeLong(); bytes > options_.max_job_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("compile job: limit is ", options_.max_job_bytes, " bytes, given ", bytes));
  }
  PendingJob job;
  job.submitted = Now();
  job.deadline = job.submitted + request.timeout;
  job.request = std::move(request);
  job.done = std::move(done);
  base::MutexLock lock(&mutex_);
  if (stop_at_.has_value()) return absl::UnavailableError("the compile pool shuts down");
  if (queued_ >= options_.queue_limit) {
    return base::WithRetryHint(
        absl::ResourceExhaustedError(absl::StrCat(
            "compile queue full: limit is ", options_.queue_limit, " jobs, ", queued_, " wait")),
        kFullQueueRetry);
  }
  size_t& of_tenant = queued_by_tenant_[job.request.tenant];
  if (of_tenant >= options_.queue_limit_per_tenant) {
    return base::WithRetryHint(absl::ResourceExhaustedError(absl::StrCat(
                                   "compile queue: limit of ", job.request.tenant, " is ",
                                   options_.queue_limit_per_tenant, " jobs, ", of_tenant, " wait")),
                               kFullQueueRetry);
  }
  ++of_tenant;
  ++queued_;
  job.id = next_id_++;
  inbox_.push_back(std::move(job));
  Wake();
  return inbox_.back().id;
}

void CompilePool::Cancel(CompileJobId id) {
  base::MutexLock lock(&mutex_);
  cancelled_.push_back(id);
  Wake();
}

void CompilePool::Raise(CompileJobId id) {
  base::MutexLock lock(&mutex_);
  raised_.push_back(id);
  Wake();
}

void CompilePool::Refresh() {
  base::MutexLock lock(&mutex_);
  refresh_ = true;
  Wake();
}

void CompilePool::Shutdown(absl::Duration grace) {
  {
    base::MutexLock lock(&mutex_);
    const absl::Duration stop_at = Now() + grace;
    stop_at_ = std::min(stop_at, stop_at_.value_or(stop_at));
    Wake();
  }
  if (thread_.joinable()) thread_.join();
}

CompilePoolStatus CompilePool::GetStatus() const {
  base::MutexLock lock(&mutex_);
  return status_;
}

absl::StatusOr<internal::v1::NvrtcInfo> CompilePool::WaitForNvrtc(absl::Duration timeout) const {
  const absl::Duration deadline = Now() + timeout;
  base::MutexLock lock(&mutex_);
  while (!status_.nvrtc.has_value() && status_.nvrtc_missing.empty() &&
         status_.start_failures == 0) {
    const absl::Duration left = deadline - Now();
    if (left <= absl::ZeroDuration()) break;
    published_.WaitWithTimeout(&mutex_, left);
  }
  if (status_.nvrtc.has_value()) return *status_.nvrtc;
  if (!status_.nvrtc_missing.empty()) return absl::NotFoundError(status_.nvrtc_missing);
  return absl::UnavailableError(status_.last_start_failure.empty()
                                    ? "no compile process is ready yet"
                                    : status_.last_start_failure);
}

void CompilePool::Wake() const {
  const uint64_t one = 1;
  // Fails only if the counter is full, and then the thread is woken anyway.
  [[maybe_unused]] ssize_t n = ::write(wake_.get(), &one, sizeof(one));
}

void CompilePool::Loop() {
  while (true) {
    heartbeat_.Beat();
    const absl::Duration now = Now();
    TakeInbox(now);
    if (!aborted_) scheduler_.Step(now);
    // The status comes first: who is told of a job finds it counted.
    Publish();
    for (FinishedJob& job : scheduler_.TakeFinished()) job.done(std::move(job.outcome));
    if (MayEnd(now)) return;
    WaitForEvents(now);
  }
}

void CompilePool::TakeInbox(absl::Duration now) {
  std::vector<PendingJob> jobs;
  std::vector<CompileJobId> cancelled, raised;
  bool refresh;
  {
    base::MutexLock lock(&mutex_);
    jobs.swap(inbox_);
    cancelled.swap(cancelled_);
    raised.swap(raised_);
    refresh = std::exchange(refresh_, false);
  }
  for (PendingJob& job : jobs) scheduler_.Add(std::move(job));
  for (CompileJobId id : cancelled) scheduler_.Cancel(id, now);
  for (CompileJobId id : raised) scheduler_.Raise(id);
  if (refresh) scheduler_.Refresh();
}

void CompilePool::Publish() {
  CompilePoolStatus status = scheduler_.GetStatus();
  const auto nvrtc = [](const CompilePoolStatus& of) {
    return std::make_tuple(of.nvrtc.has_value() ? of.nvrtc->identity() : "", of.nvrtc_missing,
                           of.start_failures);
  };
  bool changed;
  {
    base::MutexLock lock(&mutex_);
    queued_ = scheduler_.queued() + inbox_.size();
    queued_by_tenant_ = scheduler_.queued_by_tenant();
    for (const PendingJob& job : inbox_) ++queued_by_tenant_[job.request.tenant];
    changed = nvrtc(status) != nvrtc(status_);
    status_ = std::move(status);
    published_.SignalAll();
  }
  if (changed && options_.on_nvrtc) options_.on_nvrtc();
}

bool CompilePool::Responds(absl::Duration timeout) const {
  const uint64_t before = heartbeat_.beats();
  Wake();
  return heartbeat_.WaitPast(before, timeout);
}

bool CompilePool::MayEnd(absl::Duration now) {
  bool stop;
  bool overdue;
  {
    base::MutexLock lock(&mutex_);
    stop = stop_at_.has_value() && inbox_.empty();
    overdue = stop && *stop_at_ <= now;
  }
  if (stop && !aborted_ && (overdue || !scheduler_.HasJobs())) {
    scheduler_.Abort(now);
    aborted_ = true;
    for (FinishedJob& job : scheduler_.TakeFinished()) job.done(std::move(job.outcome));
    Publish();
  }
  return aborted_ && !scheduler_.HasProcesses();
}

void CompilePool::WaitForEvents(absl::Duration now) {
  std::vector<pollfd> fds = scheduler_.PollFds();
  fds.push_back({wake_.get(), POLLIN, 0});
  // Once aborted, only the ends of the processes are waited for.
  absl::Duration deadline = aborted_ ? absl::InfiniteDuration() : scheduler_.NextDeadline();
  {
    base::MutexLock lock(&mutex_);
    if (stop_at_.has_value() && !aborted_) deadline = std::min(deadline, *stop_at_);
  }
  if (::poll(fds.data(), fds.size(), PollTimeout(deadline - now)) <= 0) return;
  uint64_t count;
  [[maybe_unused]] ssize_t n = ::read(wake_.get(), &count, sizeof(count));
  fds.pop_back();
  scheduler_.HandleEvents(fds, Now());
}

}  // namespace fusiond::server
