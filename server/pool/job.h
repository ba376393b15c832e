// What goes into the compile pool and what comes out.
//
// Thread-safety: values.
#ifndef FUSIOND_SERVER_POOL_JOB_H_
#define FUSIOND_SERVER_POOL_JOB_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/fusiond/v1/internal.pb.h"

namespace fusiond::server {

using CompileJobId = uint64_t;

enum class CompilePriority {
  kNormal,  // somebody waits for it
  kLow  // warm-up: runs while nothing normal waits, and leaves one process free where there are two
};

struct CompileRequest {
  internal::v1::CompileJob job;
  // Whose bytes these are: no process ever sees two tenants'.
  std::string tenant;
  CompilePriority priority = CompilePriority::kNormal;
  // From Submit to the answer; never longer than the pool's own limit for running.
  absl::Duration timeout = absl::InfiniteDuration();
};

struct CompileOutcome {
  // OK: `reply` holds the result that the job asks for. Else:
  // - the job's own error (`verdict`), as compiler::Plan and nvrtc::Nvrtc::Compile say
  // - DEADLINE_EXCEEDED: the request's or the pool's time was over; the process is killed
  // - RESOURCE_EXHAUSTED: `out_of_memory`, twice, the second time in a fresh process
  // - INTERNAL: the process died of it or answered nonsense (`crashed`)
  // - CANCELLED: by Cancel
  // - FAILED_PRECONDITION: an image job, and no NVRTC
  // - UNAVAILABLE: no process starts, the pool shuts down, or NVRTC is not the one asked for
  absl::Status status;
  internal::v1::CompileReply reply;
  // The error follows from the job alone and may be remembered.
  bool verdict = false;
  // Never to be remembered: another time there may be room.
  bool out_of_memory = false;
  // The process died of this job. Whoever counts these per key quarantines the key.
  bool crashed = false;
  int attempts = 0;       // processes that worked on it
  absl::Duration queued;  // before the last attempt
  absl::Duration ran;     // the last attempt
};

using CompileCallback = absl::AnyInvocable<void(CompileOutcome)>;

inline CompileOutcome FailedOutcome(absl::Status status) {
  CompileOutcome outcome;
  outcome.status = std::move(status);
  return outcome;
}

// A job inside the pool.
struct PendingJob {
  CompileJobId id = 0;
  CompileRequest request;
  CompileCallback done;
  absl::Duration submitted;
  absl::Duration deadline = absl::InfiniteDuration();
  int attempts = 0;  // made so far; a job with one behind it needs a fresh process
};

struct RunningJob {
  PendingJob pending;
  absl::Duration started;
  absl::Duration deadline;  // the earlier of the request's and the pool's
};

}  // namespace fusiond::server

#endif  // FUSIOND_SERVER_POOL_JOB_H_
