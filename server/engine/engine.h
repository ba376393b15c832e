// CompileEngine: from a checked request to an executable in the cache.
//
//   look-up ─hit─► answer
//      └miss─► single flight ─► PLAN job ─► canonical look-up ─hit─► link, answer
//                                              └miss─► image look-ups, IMAGE jobs in parallel
//                                                        └─► assemble, commit in one batch, answer
//                                                        all who wait
//
// A spill report plans again with the next candidate, a few times at most. Arch cpu has no images.
//
// Thread-safety: thread-safe. Callbacks run on the engine's own threads, or, for an answer from the
// cache, in Compile. Ownership: cache and runner must outlive the engine; destroy it after the
// runner has ended its jobs. Errors reach the callback: the job's own, RESOURCE_EXHAUSTED or
// UNAVAILABLE from the runner, FAILED_PRECONDITION without NVRTC; INTERNAL names the key.
#ifndef FUSIOND_SERVER_ENGINE_ENGINE_H_
#define FUSIOND_SERVER_ENGINE_ENGINE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/base/mutex.h"
#include "server/cache/cache.h"
#include "server/engine/answer.h"
#include "server/engine/compile_work.h"
#include "server/engine/crash_counter.h"
#include "server/engine/executor.h"
#include "server/engine/job_runner.h"
#include "server/engine/request.h"

namespace fusiond::server {

struct EngineOptions {
  int max_attempts = 3;      // plans of one request
  int quarantine_after = 3;  // crashes of one key until it is answered without trying
  int threads = 2;
};

class CompileEngine {
 public:
  using Callback = std::function<void(const absl::StatusOr<CompileAnswer>&)>;
  using Ticket = CompileFlight::Ticket;

  CompileEngine(const EngineOptions& options, cache::Cache* cache, JobRunner* runner);

  // Calls `done` once. The ticket is for Cancel; empty when the answer was already given. A caller
  // who joins a compile of lower priority raises it to its own.
  Ticket Compile(std::shared_ptr<const PreparedRequest> request, const std::string& tenant,
                 CompilePriority priority, Callback done) ABSL_LOCKS_EXCLUDED(mutex_);
  // As Compile would be answered from the cache now; counts nothing and compiles nothing.
  std::optional<CompileAnswer> Peek(const PreparedRequest& request) {
    return PeekAnswer(*cache_, request);
  }
  // True: `done` will not be called. The work goes on while others wait for it, and ends when
  // nobody does.
  bool Cancel(const Ticket& ticket) { return flights_.Cancel(ticket); }

  // Plans of one request, at most.
  int max_attempts() const { return parts_.max_attempts; }
  // Segments that took the last resort since start.
  uint64_t fallbacks() const { return fallbacks_.load(std::memory_order_relaxed); }  // a tally
  size_t in_flight() const { return flights_.InFlight(); }
  // Whether the engine's threads still take work, and the cache, once open, answers them.
  bool Responds(absl::Duration timeout);

 private:
  cache::Cache* const cache_;
  CrashCounter crashes_;
  std::atomic<uint64_t> fallbacks_{0};

  base::Mutex mutex_;
  // Who leads which flight, for Raise; entries of ended works are swept now and then.
  absl::flat_hash_map<cache::RequestKey, std::weak_ptr<CompileWork>> works_ ABSL_GUARDED_BY(mutex_);

  CompileFlight flights_;
  Executor executor_;  // after what its threads use
  const CompileParts parts_;
};

}  // namespace fusiond::server

#endif  // FUSIOND_SERVER_ENGINE_ENGINE_H_
