// The jobs' half of CompileScheduler; the processes' half is compile_scheduler_processes.cc.
#include "server/pool/compile_scheduler.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/base/framing.h"

namespace fusiond::server {
namespace {

constexpr int kAttempts = 2;  // of a job that runs out of memory

std::string Milliseconds(absl::Duration d) {
  return absl::StrCat(absl::ToInt64Milliseconds(d), " ms");
}

}  // namespace

void CompileScheduler::Cancel(CompileJobId id, absl::Duration now) {
  const absl::Status cancelled = absl::CancelledError("compile job cancelled");
  auto is_it = [id](const PendingJob& job) { return job.id == id; };
  if (std::optional<PendingJob> job = queue_.Take(is_it)) {
    finished_.push_back({std::move(job->done), FailedOutcome(cancelled)});
  }
  for (const std::unique_ptr<CompileProcess>& process : processes_) {
    if (process->job.has_value() && is_it(process->job->pending)) {
      ++counters_.cancel_kills;
      KillJob(*process, FailedOutcome(cancelled), now);
    }
  }
}

void CompileScheduler::Raise(CompileJobId id) {
  auto is_it = [id](const PendingJob& job) {
    return job.id == id && job.request.priority == CompilePriority::kLow;
  };
  if (std::optional<PendingJob> job = queue_.Take(is_it)) {
    job->request.priority = CompilePriority::kNormal;
    queue_.Add(*std::move(job));
  }
}

void CompileScheduler::Abort(absl::Duration now) {
  const absl::Status down = absl::UnavailableError("the compile pool shuts down");
  FailQueue(down, now);
  for (const std::unique_ptr<CompileProcess>& process : processes_) {
    if (process->job.has_value()) FinishJob(*process, FailedOutcome(down), now);
    process->end_expected = true;
    process->Kill();
  }
}

void CompileScheduler::Step(absl::Duration now) {
  ExpireJobs(now);
  Dispatch(now);
  AdjustProcesses(now);
}

bool CompileScheduler::HasJobs() const {
  return queue_.size() > 0 ||
         std::any_of(processes_.begin(), processes_.end(),
                     [](const auto& process) { return process->job.has_value(); });
}

void CompileScheduler::ExpireJobs(absl::Duration now) {
  for (PendingJob& job :
       queue_.TakeAll([now](const PendingJob& pending) { return pending.deadline <= now; })) {
    CompileOutcome outcome = FailedOutcome(absl::DeadlineExceededError(absl::StrCat(
        "no compile process within ", Milliseconds(now - job.submitted), ": ", CountBusy({}),
        " of ", options_.processes, " at work, ", queue_.size(), " more jobs waiting")));
    outcome.attempts = job.attempts;
    outcome.queued = now - job.submitted;
    finished_.push_back({std::move(job.done), std::move(outcome)});
  }
  for (const std::unique_ptr<CompileProcess>& process : processes_) {
    if (process->state != CompileProcess::State::kBusy || process->job->deadline > now) continue;
    ++counters_.deadline_kills;
    const bool own = process->job->pending.deadline <= now;
    KillJob(*process,
            FailedOutcome(absl::DeadlineExceededError(absl::StrCat(
                "compile process killed after ", Milliseconds(now - process->job->started),
                own ? absl::StrCat(": the request's deadline, ",
                                   Milliseconds(process->job->pending.deadline -
                                                process->job->pending.submitted),
                                   " after it came")
                    : absl::StrCat(": the limit of one compile job is ",
                                   Milliseconds(options_.run_limit))))),
            now);
  }
}

void CompileScheduler::Dispatch(absl::Duration now) {
  if (queue_.size() > 0) DropDead();
  while (true) {
    unserved_ = 0;
    std::optional<PendingJob> job =
        queue_.TakeNext([this](const PendingJob& pending) { return CanStart(pending); });
    if (!job.has_value()) return;
    StartJob(*std::move(job), now);
  }
}

// Whether there is room for the job and a process that may take it. Counts those that lack only the
// process.
bool CompileScheduler::CanStart(const PendingJob& job) {
  if (CountBusy({}) + unserved_ >= options_.processes) return false;
  if (job.request.priority == CompilePriority::kLow && options_.processes > 1 &&
      CountBusy(CompilePriority::kLow) >= options_.processes - 1) {
    return false;
  }
  if (FindProcess(job) != nullptr) return true;
  ++unserved_;
  return false;
}

CompileProcess* CompileScheduler::FindProcess(const PendingJob& job) const {
  CompileProcess* fresh = nullptr;
  for (const std::unique_ptr<CompileProcess>& process : processes_) {
    if (process->state != CompileProcess::State::kIdle || IsStale(*process)) continue;
    if (process->jobs_done == 0) {
      fresh = process.get();
    } else if (job.attempts == 0 && process->tenant == job.request.tenant) {
      return process.get();
    }
  }
  return fresh;
}

void CompileScheduler::StartJob(PendingJob job, absl::Duration now) {
  CompileProcess& process = *FindProcess(job);
  std::string frame = *base::EncodeFrame(job.request.job.SerializeAsString());
  ++job.attempts;
  const absl::Duration deadline = std::min(job.deadline, now + options_.run_limit);
  process.Begin({std::move(job), now, deadline}, std::move(frame));
}

void CompileScheduler::FailQueue(const absl::Status& why, absl::Duration now) {
  for (PendingJob& job : queue_.TakeAll([](const PendingJob&) { return true; })) {
    CompileOutcome outcome = FailedOutcome(why);
    outcome.attempts = job.attempts;
    outcome.queued = now - job.submitted;
    finished_.push_back({std::move(job.done), std::move(outcome)});
  }
}

void CompileScheduler::FinishJob(CompileProcess& process, CompileOutcome outcome,
                                 absl::Duration now) {
  RunningJob job = *std::exchange(process.job, std::nullopt);
  outcome.attempts = job.pending.attempts;
  outcome.queued = job.started - job.pending.submitted;
  outcome.ran = now - job.started;
  finished_.push_back({std::move(job.pending.done), std::move(outcome)});
}

void CompileScheduler::FinishCrashed(CompileProcess& process, CompileOutcome outcome,
                                     absl::Duration now) {
  ++counters_.crashes;
  outcome.crashed = true;
  FinishJob(process, std::move(outcome), now);
}

void CompileScheduler::FinishOutOfMemory(CompileProcess& process, CompileOutcome outcome,
                                         uint64_t used_bytes, absl::Duration now) {
  ++counters_.out_of_memory;
  if (process.job->pending.attempts < kAttempts) {
    RunningJob job = *std::exchange(process.job, std::nullopt);
    return queue_.AddFirst(std::move(job.pending));
  }
  // Who is killed from outside has not told its use, and that memory was the reason is a guess.
  outcome.status = absl::ResourceExhaustedError(
      used_bytes == 0
          ? absl::StrFormat("compile process killed from outside, %d times, as the host does when "
                            "memory runs out; its own limit is %d bytes; %s",
                            kAttempts, options_.setup.memory_limit_bytes(),
                            outcome.status.message())
          : absl::StrFormat(
                "compile process out of memory, %d times: limit is %d bytes, used %d; %s",
                kAttempts, options_.setup.memory_limit_bytes(), used_bytes,
                outcome.status.message()));
  outcome.out_of_memory = true;
  outcome.verdict = false;
  outcome.crashed = false;
  FinishJob(process, std::move(outcome), now);
}

void CompileScheduler::KillJob(CompileProcess& process, CompileOutcome outcome,
                               absl::Duration now) {
  FinishJob(process, std::move(outcome), now);
  process.end_expected = true;
  process.Kill();
}

}  // namespace fusiond::server
