#include "server/service/warm.h"

#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/clock.h"
#include "runtime/base/mutex.h"
#include "server/status_convert.h"

namespace fusiond::server {
namespace {

// Items of one call that compile at once; more wait here and not in the pool's queue, which others
// need too.
constexpr int kInFlight = 8;
// Events that the caller has not read; then nothing new is started.
constexpr size_t kMaxUnread = 64;

class WarmReactor : public grpc::ServerWriteReactor<v1::WarmEvent>,
                    public std::enable_shared_from_this<WarmReactor> {
 public:
  WarmReactor(FusiondLogic* logic, CallTracker* tracker, const Identity& identity,
              const v1::WarmRequest& request)
      : logic_(*logic), tracker_(*tracker), identity_(identity), request_(request) {
    tracker_.Begin();
  }

  void Start() {
    self_ = shared_from_this();
    const int64_t total = int64_t{request_.items_size()} * request_.targets_size();
    if (total == 0 || total > logic_.options().max_warm_items) {
      return End(absl::InvalidArgumentError(absl::StrCat(
          "items × targets: 1 to ", logic_.options().max_warm_items, " expected, given ", total)));
    }
    {
      base::MutexLock lock(&mutex_);
      summary_.set_total(static_cast<uint32_t>(total));
    }
    Pump();
  }

  void OnWriteDone(bool ok) override {
    {
      base::MutexLock lock(&mutex_);
      writing_ = false;
      broken_ = broken_ || !ok;
    }
    Pump();
  }
  void OnCancel() override {
    std::vector<CompileEngine::Flight::Ticket> tickets;
    {
      base::MutexLock lock(&mutex_);
      broken_ = true;
      for (const auto& [number, ticket] : tickets_) tickets.push_back(ticket);
    }
    for (const CompileEngine::Flight::Ticket& ticket : tickets) {
      if (!logic_.CancelCompile(ticket)) continue;
      base::MutexLock lock(&mutex_);
      --in_flight_;  // its callback will not come
    }
    Pump();
  }
  void OnDone() override { self_.reset(); }

 private:
  // Starts items while there is room, writes what is ready, ends when all is said. One at a time:
  // an item that the cache answers on the spot calls back in here, which only asks for another
  // round.
  void Pump() {
    {
      base::MutexLock lock(&mutex_);
      again_ = true;
      if (std::exchange(pumping_, true)) return;
    }
    while (true) {
      {
        base::MutexLock lock(&mutex_);
        if (!std::exchange(again_, false)) {
          pumping_ = false;
          return;
        }
      }
      while (std::optional<int> next = Next()) Compile(*next);
      WriteOrEnd();
    }
  }

  void WriteOrEnd() {
    bool write = false, end = false;
    {
      base::MutexLock lock(&mutex_);
      if (ended_ || writing_) return;
      const bool no_more =
          next_ == static_cast<int>(summary_.total()) || broken_ || summary_.draining();
      if (!broken_ && !events_.empty()) {
        write = true;
        current_ = std::move(events_.front());
        events_.pop_front();
      } else if (no_more && in_flight_ == 0 && !broken_ && !summary_sent_) {
        write = summary_sent_ = true;
        *current_.mutable_summary() = summary_;
      } else if (no_more && in_flight_ == 0) {
        ended_ = end = true;
      }
      writing_ = write;
    }
    if (write) StartWrite(&current_);
    if (end) Finished();
  }

  std::optional<int> Next() {
    base::MutexLock lock(&mutex_);
    if (broken_ || ended_ || next_ == static_cast<int>(summary_.total()) ||
        in_flight_ >= kInFlight || events_.size() >= kMaxUnread || summary_.draining()) {
      return std::nullopt;
    }
    if (logic_.draining()) {
      summary_.set_draining(true);
      return std::nullopt;
    }
    ++in_flight_;
    return next_++;
  }

  void Compile(int number) {
    const v1::WarmItem& item = request_.items(number / request_.targets_size());
    const std::string& target = request_.targets(number % request_.targets_size());
    v1::CompileRequest compile;
    compile.set_graph(item.graph());
    compile.set_target(target);
    *compile.mutable_inputs() = item.inputs();
    *compile.mutable_options() = item.options();
    const absl::Duration start = base::Clock::System().Now();
    CompileEngine::Flight::Ticket ticket = logic_.Compile(
        compile, identity_, CompilePriority::kLow,
        [self = shared_from_this(), number, start](absl::StatusOr<v1::CompileResponse> answer) {
          self->ItemDone(number, answer, base::Clock::System().Now() - start);
        });
    base::MutexLock lock(&mutex_);
    if (!done_early_.erase(number)) tickets_[number] = ticket;
  }

  void ItemDone(int number, const absl::StatusOr<v1::CompileResponse>& answer,
                absl::Duration took) {
    v1::WarmEvent event;
    v1::WarmEvent::Item& item = *event.mutable_item();
    item.set_item(static_cast<uint32_t>(number / request_.targets_size()));
    item.set_name(request_.items(number / request_.targets_size()).name());
    item.set_target(request_.targets(number % request_.targets_size()));
    item.set_code(static_cast<int>(answer.status().code()));
    item.set_message(std::string(answer.status().message()));
    item.set_total_ns(absl::ToInt64Nanoseconds(took));
    if (answer.ok()) {
      item.set_source(answer->source());
      item.set_key(answer->key());
    }
    {
      base::MutexLock lock(&mutex_);
      if (tickets_.erase(number) == 0) done_early_.insert(number);  // before Compile has returned
      --in_flight_;
      events_.push_back(std::move(event));
      if (!answer.ok()) {
        summary_.set_failed(summary_.failed() + 1);
      } else if (answer->source() == v1::COMPILED) {
        summary_.set_compiled(summary_.compiled() + 1);
      } else {
        summary_.set_cached(summary_.cached() + 1);
      }
    }
    Pump();
  }

  void End(const absl::Status& status) {
    {
      base::MutexLock lock(&mutex_);
      ended_ = true;
    }
    tracker_.End();
    Finish(ToGrpc(status));
  }
  void Finished() {
    tracker_.End();
    Finish(grpc::Status::OK);
  }

  FusiondLogic& logic_;
  CallTracker& tracker_;
  const Identity identity_;
  const v1::WarmRequest request_;
  std::shared_ptr<WarmReactor> self_;
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
  absl::flat_hash_map<int, CompileEngine::Flight::Ticket> tickets_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_set<int> done_early_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

grpc::ServerWriteReactor<v1::WarmEvent>* StartWarm(FusiondLogic* logic, CallTracker* tracker,
                                                   const Identity& identity,
                                                   const v1::WarmRequest& request) {
  auto reactor = std::make_shared<WarmReactor>(logic, tracker, identity, request);
  WarmReactor* raw = reactor.get();
  reactor->Start();
  return raw;
}

}  // namespace fusiond::server
