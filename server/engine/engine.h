// CompileEngine: from a checked request to an executable in the cache.
//
//   look-up ─hit─► answer
//      └miss─► single flight ─► PLAN job ─► canonical look-up ─hit─► link, answer
//                                              └miss─► image look-ups, IMAGE jobs in parallel
//                                                        └─► assemble, commit in one batch, answer
//                                                        all who wait
//
// A spill report plans again with the next candidate, at most kMaxAttempts times. Arch cpu has no
// images.
//
// Thread-safety: thread-safe. Callbacks run on the engine's own threads, or, for an answer from the
// cache, in Compile. Ownership: cache, runner and clock must outlive the engine; destroy it after
// the runner has ended its jobs. Errors reach the callback: the job's own, CANCELLED after Cancel,
// RESOURCE_EXHAUSTED or UNAVAILABLE from the runner, FAILED_PRECONDITION without NVRTC.
#ifndef FUSIOND_SERVER_ENGINE_ENGINE_H_
#define FUSIOND_SERVER_ENGINE_ENGINE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/base/clock.h"
#include "runtime/base/mutex.h"
#include "runtime/base/sha256.h"
#include "server/cache/cache.h"
#include "server/cache/single_flight.h"
#include "server/engine/executor.h"
#include "server/engine/job_runner.h"
#include "server/engine/request.h"

namespace fusiond::server {

enum class AnswerSource { kCompiled, kMemory, kDisk };

// What a caller learns; the executable itself is in the cache under its digest.
struct CompileAnswer {
  cache::RequestKey key;
  base::Digest executable;
  uint64_t revision = 0;
  AnswerSource source = AnswerSource::kCompiled;
  std::shared_ptr<const std::string> bytes;  // of the executable, serialised
  // Of this compile; zero for an answer from the cache.
  absl::Duration queued, planning, nvrtc;
  uint32_t nvrtc_calls = 0;
  uint64_t source_bytes = 0;
  std::vector<std::string> notes;
};

struct EngineOptions {
  int max_attempts = 3;      // plans of one request
  int quarantine_after = 3;  // crashes of one key until it is answered without trying
  int threads = 2;
};

class CompileEngine {
 public:
  using Callback = std::function<void(const absl::StatusOr<CompileAnswer>&)>;
  using Flight = cache::SingleFlight<cache::RequestKey, CompileAnswer>;

  CompileEngine(const EngineOptions& options, cache::Cache* cache, JobRunner* runner);
  ~CompileEngine();

  // Calls `done` once. The ticket is for Cancel; empty when the answer was already given.
  Flight::Ticket Compile(std::shared_ptr<const PreparedRequest> request, const std::string& tenant,
                         CompilePriority priority, Callback done);
  // As Compile would be answered from the cache now; counts nothing and compiles nothing.
  std::optional<CompileAnswer> Peek(const PreparedRequest& request);
  // True: `done` will not be called. The work goes on while others wait for it, and ends when
  // nobody does.
  bool Cancel(const Flight::Ticket& ticket) { return flights_.Cancel(ticket); }

  // Segments that took the last resort since start.
  uint64_t fallbacks() const { return fallbacks_.load(std::memory_order_relaxed); }  // a tally
  size_t in_flight() const { return flights_.InFlight(); }

 private:
  class Work;

  // The answer if the cache has one whose guards hold for this request; counts as a look-up.
  std::optional<absl::StatusOr<CompileAnswer>> Find(const PreparedRequest& request);
  std::optional<CompileAnswer> Choose(const cache::RequestLookup& lookup,
                                      const PreparedRequest& request);

  const EngineOptions options_;
  cache::Cache* const cache_;
  JobRunner* const runner_;
  std::atomic<uint64_t> fallbacks_{0};

  base::Mutex mutex_;
  absl::flat_hash_map<cache::RequestKey, int> crashes_ ABSL_GUARDED_BY(mutex_);

  Flight flights_;
  Executor executor_;  // last: its threads use everything above
};

}  // namespace fusiond::server

#endif  // FUSIOND_SERVER_ENGINE_ENGINE_H_
