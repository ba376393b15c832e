// Decides which compile process runs which job, starts and ends processes, and turns every way in
// which a process can end into an outcome. No locks, no waiting: CompilePool drives it.
//
// Thread-safety: single-thread (the pool's loop), also across the life of its processes.
// Ownership: owns jobs from Add until TakeFinished hands them back with their outcome.
#ifndef FUSIOND_SERVER_POOL_COMPILE_SCHEDULER_H_
#define FUSIOND_SERVER_POOL_COMPILE_SCHEDULER_H_

#include <poll.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/pool/compile_process.h"
#include "server/pool/job.h"
#include "server/pool/job_queue.h"
#include "server/pool/pool_options.h"

namespace fusiond::server {

struct FinishedJob {
  CompileCallback done;
  CompileOutcome outcome;
};

class CompileScheduler {
 public:
  explicit CompileScheduler(const CompilePoolOptions& options) : options_(options) {}

  void Add(PendingJob job) { queue_.Add(std::move(job)); }
  void Cancel(CompileJobId id, absl::Duration now);
  // A low job that still waits becomes a normal one.
  void Raise(CompileJobId id);
  // Replaces every process that is not at work: what they found of NVRTC may have changed.
  void Refresh();
  // Ends every job UNAVAILABLE and kills every process.
  void Abort(absl::Duration now);

  // Expires, dispatches, starts and retires: call after any of the above and after HandleEvents.
  void Step(absl::Duration now);

  // What to wait for, and until when at most. HandleEvents takes the same list, polled.
  std::vector<pollfd> PollFds() const;
  absl::Duration NextDeadline() const;
  void HandleEvents(const std::vector<pollfd>& polled, absl::Duration now);

  std::vector<FinishedJob> TakeFinished() { return std::exchange(finished_, {}); }
  size_t queued() const { return queue_.size(); }
  const absl::flat_hash_map<std::string, size_t>& queued_by_tenant() const {
    return queue_.tenants();
  }
  bool HasJobs() const;  // waiting, running, or about to be decided
  bool HasProcesses() const { return !processes_.empty(); }
  CompilePoolStatus GetStatus() const;

 private:
  // Jobs.
  void ExpireJobs(absl::Duration now);
  void Dispatch(absl::Duration now);
  // Idle processes that have died since get no job, which would be blamed for it.
  void DropDead();
  bool CanStart(const PendingJob& job);
  CompileProcess* FindProcess(const PendingJob& job) const;
  void StartJob(PendingJob job, absl::Duration now);
  void FailQueue(const absl::Status& why, absl::Duration now);
  // Ends the job of `process`, not the process.
  void FinishJob(CompileProcess& process, CompileOutcome outcome, absl::Duration now);
  void FinishCrashed(CompileProcess& process, CompileOutcome outcome, absl::Duration now);
  // The same for a job whose memory ran out: once more in a fresh process, or RESOURCE_EXHAUSTED.
  void FinishOutOfMemory(CompileProcess& process, CompileOutcome outcome, uint64_t used_bytes,
                         absl::Duration now);
  void KillJob(CompileProcess& process, CompileOutcome outcome, absl::Duration now);

  // Processes.
  void HandleMessage(CompileProcess& process, const std::string& message, absl::Duration now);
  void HandleReady(CompileProcess& process, const std::string& message, absl::Duration now);
  void HandleReply(CompileProcess& process, const std::string& message, absl::Duration now);
  void HandleEnd(CompileProcess& process, const ExitStatus& exit, absl::Duration now);
  void AdjustProcesses(absl::Duration now);
  bool Spawn(absl::Duration now);
  // A process has ended, or hangs, before it was ready. Unless NVRTC works in another, the next
  // ones start without it for a while: plans and arch cpu do not need it.
  void StartEnded(const CompileProcess& process, const std::string& what, absl::Duration now);
  bool HasNvrtc() const;     // some process that is there
  bool MayTryNvrtc() const;  // once it is time
  void StartFailed(const absl::Status& why, absl::Duration now);
  void Retire(CompileProcess& process);
  // Whether it has another NVRTC than the process that became ready last (F08).
  bool IsStale(const CompileProcess& process) const;
  bool ReachedLimit(uint64_t bytes) const;
  int CountBusy(std::optional<CompilePriority> priority) const;
  int CountAlive() const;  // not ending
  int CountFresh() const;  // of these, starting or untouched
  int Spares() const;      // fresh ones kept beyond those that jobs wait for
  void Log(const std::string& line) const;

  const CompilePoolOptions& options_;
  JobQueue queue_;
  std::vector<std::unique_ptr<CompileProcess>> processes_;
  std::vector<FinishedJob> finished_;
  CompilePoolStatus counters_;  // its lists and sizes are filled in by GetStatus
  int unserved_ = 0;            // jobs that the last Dispatch had room but no process for
  int start_failures_in_row_ = 0;
  absl::Status start_failure_;  // the last one, while in a row
  absl::Duration next_spawn_;   // not before
  std::string nvrtc_fault_;     // of the last start with NVRTC, while in a row
  int nvrtc_faults_in_row_ = 0;
  absl::Duration next_nvrtc_;  // then it is tried again
};

}  // namespace fusiond::server

#endif  // FUSIOND_SERVER_POOL_COMPILE_SCHEDULER_H_
