// The compile processes: a bounded queue in front, a supervised set behind.
//
// Each process has one job at a time and one tenant in its life; a crash, a hang or a memory
// blow-up ends that process and that job alone. Processes are started when jobs need them, one or
// two fresh ones always wait beyond those at work, idle ones end. Policy and failures:
// server/pool/README.md.
//
// Thread-safety: thread-safe. One thread of its own runs everything, callbacks included: a callback
// must not block, and may call anything here but Shutdown.
// Cost: Submit takes a lock and moves the job; nothing waits for a process but that thread.
#ifndef FUSIOND_SERVER_POOL_COMPILE_POOL_H_
#define FUSIOND_SERVER_POOL_COMPILE_POOL_H_

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/base/file.h"
#include "runtime/base/mutex.h"
#include "server/pool/compile_scheduler.h"
#include "server/pool/job.h"
#include "server/pool/pool_options.h"
#include "server/process/heartbeat.h"

namespace fusiond::server {

class CompilePool {
 public:
  // Starts the thread, which starts the first process; does not wait for it.
  static absl::StatusOr<std::unique_ptr<CompilePool>> Create(CompilePoolOptions options);
  // As Shutdown without grace.
  ~CompilePool();
  CompilePool(const CompilePool&) = delete;
  CompilePool& operator=(const CompilePool&) = delete;

  // Takes the job if it returns OK; `done` is then called exactly once, on the pool's thread.
  // RESOURCE_EXHAUSTED: the queue or the tenant's share of it is full (with a hint when to retry),
  // or job too large; limit and actual. UNAVAILABLE: shutting down.
  absl::StatusOr<CompileJobId> Submit(CompileRequest request, CompileCallback done)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // The job ends CANCELLED unless its outcome is already on the way. An unknown id is ignored.
  void Cancel(CompileJobId id) ABSL_LOCKS_EXCLUDED(mutex_);
  // A low job that still waits becomes a normal one; otherwise nothing happens.
  void Raise(CompileJobId id) ABSL_LOCKS_EXCLUDED(mutex_);
  // Replaces idle processes, so that an NVRTC that came, went or changed is found.
  void Refresh() ABSL_LOCKS_EXCLUDED(mutex_);

  // Refuses new jobs, gives those it has `grace`, then ends them UNAVAILABLE; kills every process
  // and joins the thread. Every callback has returned when it returns. Call from one thread;
  // idempotent.
  void Shutdown(absl::Duration grace) ABSL_LOCKS_EXCLUDED(mutex_);

  // As of the thread's last turn.
  CompilePoolStatus GetStatus() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Whether the thread still turns.
  bool Responds(absl::Duration timeout) const;

  // The NVRTC that the processes found. Blocks until the first is ready or does not start, at most
  // `timeout`. NOT_FOUND: they found none (why). UNAVAILABLE: none is ready (why, as far as known).
  absl::StatusOr<internal::v1::NvrtcInfo> WaitForNvrtc(absl::Duration timeout) const
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  CompilePool(CompilePoolOptions options, base::UniqueFd wake)
      : options_(std::move(options)), wake_(std::move(wake)), scheduler_(options_) {}

  void Wake() const;
  void Loop();
  void TakeInbox(absl::Duration now) ABSL_LOCKS_EXCLUDED(mutex_);
  void Publish() ABSL_LOCKS_EXCLUDED(mutex_);
  bool MayEnd(absl::Duration now) ABSL_LOCKS_EXCLUDED(mutex_);
  void WaitForEvents(absl::Duration now) ABSL_LOCKS_EXCLUDED(mutex_);

  const CompilePoolOptions options_;
  const base::UniqueFd wake_;  // eventfd: something is in the inbox
  Heartbeat heartbeat_;

  mutable base::Mutex mutex_;
  mutable base::CondVar published_;
  CompileJobId next_id_ ABSL_GUARDED_BY(mutex_) = 1;
  std::vector<PendingJob> inbox_ ABSL_GUARDED_BY(mutex_);
  std::vector<CompileJobId> cancelled_ ABSL_GUARDED_BY(mutex_);
  std::vector<CompileJobId> raised_ ABSL_GUARDED_BY(mutex_);
  bool refresh_ ABSL_GUARDED_BY(mutex_) = false;
  // Jobs in inbox and scheduler, as of the thread's last turn and with what came since.
  size_t queued_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<std::string, size_t> queued_by_tenant_ ABSL_GUARDED_BY(mutex_);
  std::optional<absl::Duration> stop_at_ ABSL_GUARDED_BY(mutex_);
  CompilePoolStatus status_ ABSL_GUARDED_BY(mutex_);

  CompileScheduler scheduler_;  // the thread's own
  bool aborted_ = false;        // the thread's own
  std::thread thread_;
};

}  // namespace fusiond::server

#endif  // FUSIOND_SERVER_POOL_COMPILE_POOL_H_
