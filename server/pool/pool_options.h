// How a compile pool is set up, and what it tells about itself.
//
// Thread-safety: values.
#ifndef FUSIOND_SERVER_POOL_POOL_OPTIONS_H_
#define FUSIOND_SERVER_POOL_POOL_OPTIONS_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "proto/fusiond/v1/internal.pb.h"
#include "server/pool/compile_process.h"
#include "server/process/child_process.h"

namespace fusiond::server {

struct CompilePoolOptions {
  // The environment should stay as small as it can be: NVRTC reads compile options from variables
  // (NVRTC_APPEND_FLAGS), which no key knows of.
  SpawnOptions spawn{
      .program = "/proc/self/exe", .arguments = {"--role=compile"}, .environment = {}};
  // Where NVRTC is, and the memory limit of each process.
  internal::v1::CompileSetup setup;
  int processes = 1;                               // at work at once; one or two more wait
  size_t queue_limit = 1024;                       // jobs
  size_t queue_limit_per_tenant = 512;             // so that one leaves room for others
  size_t max_job_bytes = 32 << 20;                 // of one serialised job
  int jobs_per_process = 200;                      // then it is replaced
  absl::Duration run_limit = absl::Seconds(60);    // of one attempt
  absl::Duration start_limit = absl::Seconds(30);  // from spawn to ready
  absl::Duration idle_limit = absl::Seconds(60);   // then a process beyond the spares ends
  // Told of what no job's outcome tells: processes that do not start or die idle. May be empty.
  std::function<void(absl::string_view)> log;
  // Called on the pool's thread when what GetStatus says of NVRTC, or of processes that do not
  // start, has changed. May be empty.
  std::function<void()> on_nvrtc;
};

struct CompilePoolStatus {
  struct Process {
    pid_t pid = 0;
    CompileProcess::State state = CompileProcess::State::kStarting;
    int jobs_done = 0;
  };
  std::vector<Process> processes;
  size_t queued_normal = 0;
  size_t queued_low = 0;
  // Since the pool began.
  uint64_t jobs_done = 0;      // answered by a process, errors included
  uint64_t crashes = 0;        // processes that died of a job
  uint64_t sandbox_kills = 0;  // of these, by a forbidden system call
  uint64_t deadline_kills = 0;
  uint64_t cancel_kills = 0;
  uint64_t out_of_memory = 0;  // attempts
  uint64_t retired = 0;        // ended as planned: tenant change, age, memory, idleness
  uint64_t start_failures = 0;
  std::string last_start_failure;
  uint64_t ended_idle = 0;  // processes that ended, unasked, without a job
  std::string last_end;     // the last unplanned end: process, signal or exit code, at what
  // Of the process that became ready last; `nvrtc_missing` says why there is none.
  std::optional<internal::v1::NvrtcInfo> nvrtc;
  std::string nvrtc_missing;
};

}  // namespace fusiond::server

#endif  // FUSIOND_SERVER_POOL_POOL_OPTIONS_H_
