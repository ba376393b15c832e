// The processes' half of CompileScheduler: their messages, their ends, and how many there are.
#include <signal.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "runtime/base/retry_hint.h"
#include "runtime/base/utf8.h"
#include "server/pool/compile_scheduler.h"

namespace fusiond::server {
namespace {

using State = CompileProcess::State;

constexpr double kNearLimit =
    0.8;  // of the memory limit: a failure from here on is taken for lack of it
constexpr size_t kMaxMessageBytes = 128 << 10;  // of an error; NVRTC's logs are cut to half of it
constexpr size_t kMaxReasonBytes = 300;         // of a process that cannot start
constexpr absl::Duration kFirstBackoff = absl::Milliseconds(100);
constexpr absl::Duration kLongestBackoff = absl::Seconds(10);
// NVRTC is back when somebody has repaired it, and SIGHUP says so.
constexpr absl::Duration kFirstNvrtcBackoff = absl::Seconds(1);
constexpr absl::Duration kLongestNvrtcBackoff = absl::Minutes(5);
// A graph whose partial sums meet in a second kernel has two images, which compile side by side:
// the second must not wait for a start. Fewer processors are better left to the compiles at work.
constexpr int kProcessesForTwoSpares = 4;

absl::Status Nonsense(absl::string_view what) {
  return absl::InternalError(absl::StrCat("compile process answered nonsense: ", what));
}

// The outcome that a reply states; its status is INTERNAL if it states none.
CompileOutcome ToOutcome(internal::v1::CompileReply reply, const internal::v1::CompileJob& job) {
  CompileOutcome outcome;
  const bool right_kind = job.has_plan() ? reply.has_plan() : reply.has_image();
  if (reply.code() == 0 && !right_kind) {
    outcome.status = Nonsense("no result of the kind that was asked for");
  } else if (reply.code() < 0 || reply.code() > static_cast<int>(absl::StatusCode::kDataLoss)) {
    outcome.status = Nonsense(absl::StrCat("status code ", reply.code()));
  } else if (reply.code() != 0) {
    outcome.status = absl::Status(static_cast<absl::StatusCode>(reply.code()),
                                  absl::string_view(reply.message()).substr(0, kMaxMessageBytes));
    outcome.verdict = reply.verdict();
  }
  outcome.reply = std::move(reply);
  return outcome;
}

}  // namespace

std::vector<pollfd> CompileScheduler::PollFds() const {
  std::vector<pollfd> fds;
  for (const std::unique_ptr<CompileProcess>& process : processes_) {
    fds.push_back(process->PollFd());
  }
  return fds;
}

absl::Duration CompileScheduler::NextDeadline() const {
  absl::Duration next = queue_.NextDeadline();
  // Too few processes and yet room: AdjustProcesses waits for a failed start's back-off.
  if (CountFresh() < unserved_ + Spares() && CountAlive() <= options_.processes) {
    next = std::min(next, next_spawn_);
  }
  if (MayTryNvrtc()) next = std::min(next, next_nvrtc_);
  for (const std::unique_ptr<CompileProcess>& process : processes_) {
    if (process->state == State::kBusy) next = std::min(next, process->job->deadline);
    if (process->state == State::kStarting) {
      next = std::min(next, process->since + options_.start_limit);
    }
    if (process->state == State::kIdle && (process->jobs_done > 0 || CountFresh() > Spares())) {
      next = std::min(next, process->since + options_.idle_limit);
    }
  }
  return next;
}

void CompileScheduler::HandleEvents(const std::vector<pollfd>& polled, absl::Duration now) {
  for (size_t i = 0; i < processes_.size(); ++i) {
    CompileProcess& process = *processes_[i];
    if (polled[i].revents == 0) continue;
    if (process.state == State::kEnding) {
      if (std::optional<ExitStatus> exit = process.Reap()) {
        HandleEnd(process, *exit, now);
        process.state = State::kEnded;
      }
      continue;
    }
    absl::StatusOr<std::optional<std::string>> message = process.Pump();
    if (absl::IsUnavailable(message.status())) {
      process.Kill();  // if it is not dead yet; its exit status decides the rest
    } else if (!message.ok()) {
      Log(absl::StrCat("compile process ", process.pid(), ": ", message.status().message()));
      if (process.job.has_value()) {
        FinishCrashed(process, FailedOutcome(Nonsense(message.status().message())), now);
      }
      process.end_expected = process.ready;
      process.Kill();
    } else if (message->has_value()) {
      HandleMessage(process, **message, now);
    }
  }
  processes_.erase(std::remove_if(processes_.begin(), processes_.end(),
                                  [](const auto& p) { return p->state == State::kEnded; }),
                   processes_.end());
}

void CompileScheduler::DropDead() {
  for (const std::unique_ptr<CompileProcess>& process : processes_) {
    // If it is not dead yet; its exit status decides the rest.
    if (process->state == State::kIdle && process->HasHungUp()) process->Kill();
  }
}

void CompileScheduler::HandleMessage(CompileProcess& process, const std::string& message,
                                     absl::Duration now) {
  switch (process.state) {
    case State::kStarting:
      return HandleReady(process, message, now);
    case State::kBusy:
      return HandleReply(process, message, now);
    case State::kIdle:
    case State::kEnding:
    case State::kEnded:
      Log(absl::StrCat("compile process ", process.pid(), " spoke unasked"));
      return Retire(process);
  }
}

void CompileScheduler::HandleReady(CompileProcess& process, const std::string& message,
                                   absl::Duration now) {
  internal::v1::CompileReady ready;
  if (!ready.ParseFromString(message)) {
    process.end_expected = true;
    process.Kill();
    return StartFailed(Nonsense("first message"), now);
  }
  if (ready.has_failed()) {
    process.end_expected = true;
    process.Kill();
    return StartFailed(
        absl::UnavailableError(absl::StrCat("compile process ", process.pid(), ": ",
                                            base::ToUtf8(ready.failed(), kMaxReasonBytes))),
        now);
  }
  start_failures_in_row_ = 0;
  if (process.without_nvrtc && HasNvrtc()) return Retire(process);
  if (!process.without_nvrtc) {
    nvrtc_fault_.clear();
    nvrtc_faults_in_row_ = 0;
  }
  process.ready = true;
  process.state = State::kIdle;
  process.since = now;
  process.nvrtc_identity = ready.nvrtc().identity();
  counters_.nvrtc.reset();
  counters_.nvrtc_missing = ready.nvrtc_missing();
  if (ready.has_nvrtc()) counters_.nvrtc = ready.nvrtc();
}

bool CompileScheduler::IsStale(const CompileProcess& process) const {
  const std::string current = counters_.nvrtc.has_value() ? counters_.nvrtc->identity() : "";
  return process.ready && process.nvrtc_identity != current;
}

void CompileScheduler::Refresh() {
  next_nvrtc_ = absl::ZeroDuration();
  nvrtc_faults_in_row_ = 0;
  for (const std::unique_ptr<CompileProcess>& process : processes_) {
    if (process->state == State::kIdle) Retire(*process);
  }
}

void CompileScheduler::HandleReply(CompileProcess& process, const std::string& message,
                                   absl::Duration now) {
  const internal::v1::CompileJob& job = process.job->pending.request.job;
  internal::v1::CompileReply reply;
  const bool parsed = reply.ParseFromString(message);
  if (parsed && reply.last_words()) {
    process.last_peak_bytes = reply.peak_bytes();  // its end follows, or the job's deadline
    return;
  }
  CompileOutcome outcome =
      parsed ? ToOutcome(std::move(reply), job) : FailedOutcome(Nonsense("malformed message"));
  if (!outcome.status.ok() && outcome.reply.code() == 0) {
    FinishCrashed(process, std::move(outcome), now);
    return Retire(process);
  }
  ++counters_.jobs_done;
  ++process.jobs_done;
  process.state = State::kIdle;
  process.since = now;
  const uint64_t peak = outcome.reply.peak_bytes();
  const bool suspect = job.has_image() && absl::IsInternal(outcome.status) && ReachedLimit(peak);
  if (outcome.reply.out_of_memory() || suspect) {
    FinishOutOfMemory(process, std::move(outcome), peak, now);
  } else {
    FinishJob(process, std::move(outcome), now);
  }
  if (process.jobs_done >= options_.jobs_per_process || ReachedLimit(peak)) Retire(process);
}

void CompileScheduler::HandleEnd(CompileProcess& process, const ExitStatus& exit,
                                 absl::Duration now) {
  const std::string what = absl::StrCat("compile process ", process.pid(), " ", exit.ToString());
  if (!process.job.has_value()) {
    if (process.end_expected) return;
    if (!process.ready) {
      counters_.last_end = what + " before it was ready";
      if (exit.signal == SIGBUS || exit.signal == SIGSEGV)
        counters_.last_end += ", as where a library that it loads, as NVRTC, is damaged";
      return StartEnded(process, counters_.last_end, now);
    }
    ++counters_.ended_idle;
    counters_.last_end = what + " while idle";
    return Log(counters_.last_end);
  }
  counters_.last_end = what + " at a job";
  CompileOutcome outcome = FailedOutcome(absl::InternalError(
      absl::StrCat(what, exit.signal == SIGSYS ? ", a system call that its sandbox forbids" : "")));
  if (exit.signal == SIGSYS) {
    ++counters_.sandbox_kills;
    return FinishCrashed(process, std::move(outcome), now);
  }
  // We send SIGKILL to no process that still has its job, unless it closed its socket, which
  // nothing of ours does: this is the host's out-of-memory killer.
  if (exit.signal == SIGKILL || ReachedLimit(process.last_peak_bytes)) {
    return FinishOutOfMemory(process, std::move(outcome), process.last_peak_bytes, now);
  }
  FinishCrashed(process, std::move(outcome), now);
}

void CompileScheduler::AdjustProcesses(absl::Duration now) {
  for (const std::unique_ptr<CompileProcess>& process : processes_) {
    if (process->state == State::kStarting && process->since + options_.start_limit <= now) {
      process->end_expected = true;
      process->Kill();
      StartEnded(*process,
                 absl::StrCat("compile process ", process->pid(), " not ready within ",
                              absl::FormatDuration(options_.start_limit)),
                 now);
    }
    const bool spare = process->jobs_done == 0 && CountFresh() <= Spares();
    const bool old = !spare && process->since + options_.idle_limit <= now;
    if (process->state == State::kIdle && (old || IsStale(*process))) Retire(*process);
  }
  // A fresh process for each job that lacks one, and the spares.
  while (CountFresh() < unserved_ + Spares() && next_spawn_ <= now) {
    if (CountAlive() <= options_.processes) {
      if (!Spawn(now)) break;
      continue;
    }
    // Full: an idle process of another tenant makes room, though not for a spare.
    CompileProcess* oldest = nullptr;
    for (const std::unique_ptr<CompileProcess>& process : processes_) {
      if (process->state == State::kIdle && process->jobs_done > 0 &&
          (oldest == nullptr || process->since < oldest->since)) {
        oldest = process.get();
      }
    }
    if (oldest == nullptr || CountFresh() >= unserved_) break;
    Retire(*oldest);
  }
  if (MayTryNvrtc() && next_nvrtc_ <= now) Spawn(now);
  if (CountAlive() == 0 && !start_failure_.ok())
    FailQueue(base::WithRetryHint(start_failure_, std::max(next_spawn_ - now, kFirstBackoff)), now);
}

bool CompileScheduler::Spawn(absl::Duration now) {
  internal::v1::CompileSetup setup = options_.setup;
  const bool without_nvrtc = !nvrtc_fault_.empty() && now < next_nvrtc_ && !HasNvrtc();
  if (without_nvrtc) setup.set_nvrtc_refused(nvrtc_fault_);
  absl::StatusOr<std::unique_ptr<CompileProcess>> process =
      CompileProcess::Start(options_.spawn, setup, now);
  if (!process.ok()) {
    StartFailed(process.status(), now);
    return false;
  }
  (*process)->without_nvrtc = without_nvrtc;
  processes_.push_back(*std::move(process));
  return true;
}

bool CompileScheduler::HasNvrtc() const {
  return std::any_of(processes_.begin(), processes_.end(), [](const auto& process) {
    return process->ready && process->state != State::kEnding && !process->nvrtc_identity.empty();
  });
}

bool CompileScheduler::MayTryNvrtc() const {
  return !nvrtc_fault_.empty() && CountAlive() <= options_.processes &&
         std::none_of(processes_.begin(), processes_.end(),
                      [](const auto& process) { return process->state == State::kStarting; });
}

void CompileScheduler::StartEnded(const CompileProcess& process, const std::string& what,
                                  absl::Duration now) {
  if (process.without_nvrtc || HasNvrtc()) return StartFailed(absl::UnavailableError(what), now);
  ++counters_.start_failures;
  counters_.last_start_failure = nvrtc_fault_ = what;
  const int doublings = std::min(nvrtc_faults_in_row_++, 10);
  next_nvrtc_ = now + std::min(kLongestNvrtcBackoff, kFirstNvrtcBackoff * (1 << doublings));
  Log(absl::StrCat(what, "; others start without NVRTC"));
}

void CompileScheduler::StartFailed(const absl::Status& why, absl::Duration now) {
  ++counters_.start_failures;
  counters_.last_start_failure = std::string(why.message());
  start_failure_ =
      absl::Status(absl::IsResourceExhausted(why) ? why.code() : absl::StatusCode::kUnavailable,
                   absl::StrCat("no compile process: ", why.message()));
  const int doublings = std::min(start_failures_in_row_++, 10);
  next_spawn_ = now + std::min(kLongestBackoff, kFirstBackoff * (1 << doublings));
  Log(counters_.last_start_failure);
}

void CompileScheduler::Retire(CompileProcess& process) {
  ++counters_.retired;
  process.end_expected = true;
  process.Kill();
}

bool CompileScheduler::ReachedLimit(uint64_t bytes) const {
  const uint64_t limit = options_.setup.memory_limit_bytes();
  return limit != 0 && static_cast<double>(bytes) >= kNearLimit * static_cast<double>(limit);
}

int CompileScheduler::CountBusy(std::optional<CompilePriority> priority) const {
  return static_cast<int>(
      std::count_if(processes_.begin(), processes_.end(), [&](const auto& process) {
        return process->state == State::kBusy &&
               (!priority.has_value() || process->job->pending.request.priority == *priority);
      }));
}

int CompileScheduler::CountAlive() const {
  return static_cast<int>(
      std::count_if(processes_.begin(), processes_.end(),
                    [](const auto& process) { return process->state != State::kEnding; }));
}

int CompileScheduler::CountFresh() const {
  return static_cast<int>(
      std::count_if(processes_.begin(), processes_.end(), [](const auto& process) {
        return process->state == State::kStarting ||
               (process->state == State::kIdle && process->jobs_done == 0);
      }));
}

int CompileScheduler::Spares() const {
  return options_.processes >= kProcessesForTwoSpares ? 2 : 1;
}

void CompileScheduler::Log(const std::string& line) const {
  if (options_.log) options_.log(line);
}

CompilePoolStatus CompileScheduler::GetStatus() const {
  CompilePoolStatus status = counters_;
  for (const std::unique_ptr<CompileProcess>& process : processes_) {
    status.processes.push_back({process->pid(), process->state, process->jobs_done});
  }
  status.queued_normal = queue_.size(CompilePriority::kNormal);
  status.queued_low = queue_.size(CompilePriority::kLow);
  return status;
}

}  // namespace fusiond::server
