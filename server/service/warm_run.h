// WarmRun: one Warm call: many graphs × many targets, a few at a time, one event each, then a
// summary. Knows no gRPC, so that tests drive it.
//
// Thread-safety: thread-safe; Output is called by one thread at a time, with no lock held, and not
// any more after End. Ownership: shared; callbacks of compiles hold references. `output` lives
// until its End has been called.
#ifndef FUSIOND_SERVER_SERVICE_WARM_RUN_H_
#define FUSIOND_SERVER_SERVICE_WARM_RUN_H_

#include <deque>
#include <functional>
#include <memory>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/fusiond/v1/service.pb.h"
#include "runtime/base/mutex.h"
#include "server/engine/engine.h"

namespace fusiond::server {

class WarmRun : public std::enable_shared_from_this<WarmRun> {
 public:
  // Items of one call that compile at once; more wait here and not in the pool's queue, which
  // others need too.
  static constexpr int kInFlight = 8;
  // Events that the caller has not read; then nothing new is started.
  static constexpr size_t kMaxUnread = 64;

  // Where compiles go (FusiondLogic, at low priority).
  struct Compiler {
    using Callback = std::function<void(absl::StatusOr<v1::CompileResponse>)>;
    std::function<CompileEngine::Ticket(const v1::CompileRequest&, Callback)> compile;
    std::function<bool(const CompileEngine::Ticket&)> cancel;
    std::function<bool()> draining;
    int64_t max_items = 0;
  };
  // Where events go.
  class Output {
   public:
    virtual ~Output() = default;
    // One at a time: Written must follow. `event` stays valid until then.
    virtual void Write(const v1::WarmEvent* event) = 0;
    virtual void End(const absl::Status& status) = 0;
  };

  WarmRun(Compiler compiler, const v1::WarmRequest& request, Output* output)
      : compiler_(std::move(compiler)), request_(request), output_(*output) {}

  void Start() ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends with `why` instead of Start, unless Cancel has ended it.
  void Refuse(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);
  // The event given last has been sent, or (not ok) nobody reads any more.
  void Written(bool ok) ABSL_LOCKS_EXCLUDED(mutex_);
  void Cancel() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Pump() ABSL_LOCKS_EXCLUDED(mutex_);
  std::optional<int> Next() ABSL_LOCKS_EXCLUDED(mutex_);
  void WriteOrEnd() ABSL_LOCKS_EXCLUDED(mutex_);
  void Compile(int number) ABSL_LOCKS_EXCLUDED(mutex_);
  void ItemDone(int number, const absl::StatusOr<v1::CompileResponse>& answer, absl::Duration took)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void CancelItem(const CompileEngine::Ticket& ticket) ABSL_LOCKS_EXCLUDED(mutex_);

  const Compiler compiler_;
  const v1::WarmRequest request_;
  Output& output_;
  v1::WarmEvent current_;  // being written

  base::Mutex mutex_;
  int next_ ABSL_GUARDED_BY(mutex_) = 0;
  int in_flight_ ABSL_GUARDED_BY(mutex_) = 0;
  bool pumping_ ABSL_GUARDED_BY(mutex_) = false;
  bool again_ ABSL_GUARDED_BY(mutex_) = false;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool broken_ ABSL_GUARDED_BY(mutex_) = false;  // nobody reads any more
  bool summary_sent_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<v1::WarmEvent> events_ ABSL_GUARDED_BY(mutex_);
  v1::WarmEvent::Summary summary_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<int, CompileEngine::Ticket> tickets_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_set<int> done_early_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fusiond::server

#endif  // FUSIOND_SERVER_SERVICE_WARM_RUN_H_
