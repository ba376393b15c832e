#include "server/service/warm_run.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/clock.h"
#include "runtime/base/utf8.h"

namespace fusiond::server {

void WarmRun::Start() {
  const int64_t total = int64_t{request_.items_size()} * request_.targets_size();
  if (total == 0 || total > compiler_.max_items) {
    return Refuse(absl::InvalidArgumentError(
        absl::StrCat("items × targets: 1 to ", compiler_.max_items, " expected, given ", total)));
  }
  {
    base::MutexLock lock(&mutex_);
    summary_.set_total(static_cast<uint32_t>(total));
  }
  Pump();
}

void WarmRun::Refuse(const absl::Status& why) {
  {
    base::MutexLock lock(&mutex_);
    if (std::exchange(ended_, true)) return;
  }
  output_.End(why);
}

void WarmRun::Written(bool ok) {
  {
    base::MutexLock lock(&mutex_);
    writing_ = false;
    broken_ = broken_ || !ok;
  }
  Pump();
}

void WarmRun::Cancel() {
  std::vector<CompileEngine::Ticket> tickets;
  {
    base::MutexLock lock(&mutex_);
    broken_ = true;
    for (const auto& [number, ticket] : tickets_) tickets.push_back(ticket);
    tickets_.clear();
  }
  for (const CompileEngine::Ticket& ticket : tickets) CancelItem(ticket);
  Pump();
}

void WarmRun::CancelItem(const CompileEngine::Ticket& ticket) {
  if (!compiler_.cancel(ticket)) return;
  base::MutexLock lock(&mutex_);
  --in_flight_;  // its callback will not come
}

// Starts items while there is room, writes what is ready, ends when all is said. One thread at a
// time and never nested: an item that the cache answers on the spot calls back in here, which only
// asks for another round.
void WarmRun::Pump() {
  const std::shared_ptr<WarmRun> self = shared_from_this();  // End may end who called
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

std::optional<int> WarmRun::Next() {
  const bool draining = compiler_.draining();
  base::MutexLock lock(&mutex_);
  if (broken_ || ended_ || next_ == static_cast<int>(summary_.total()) || in_flight_ >= kInFlight ||
      events_.size() >= kMaxUnread || summary_.draining()) {
    return std::nullopt;
  }
  if (draining) {
    summary_.set_draining(true);
    return std::nullopt;
  }
  ++in_flight_;
  return next_++;
}

void WarmRun::WriteOrEnd() {
  bool write = false, end = false;
  {
    base::MutexLock lock(&mutex_);
    if (ended_ || writing_) return;
    const bool over = in_flight_ == 0 && (broken_ || summary_.draining() ||
                                          next_ == static_cast<int>(summary_.total()));
    if (!broken_ && !events_.empty()) {
      write = true;
      current_ = std::move(events_.front());
      events_.pop_front();
    } else if (over && !broken_ && !summary_sent_) {
      write = summary_sent_ = true;
      *current_.mutable_summary() = summary_;
    } else if (over) {
      ended_ = end = true;
    }
    writing_ = write;
  }
  if (write) output_.Write(&current_);
  if (end) output_.End(absl::OkStatus());
}

void WarmRun::Compile(int number) {
  const v1::WarmItem& item = request_.items(number / request_.targets_size());
  v1::CompileRequest compile;
  compile.set_graph(item.graph());
  compile.set_target(request_.targets(number % request_.targets_size()));
  *compile.mutable_inputs() = item.inputs();
  *compile.mutable_options() = item.options();
  const absl::Duration start = base::Clock::System().Now();
  const CompileEngine::Ticket ticket =
      compiler_.compile(compile, [self = shared_from_this(), number,
                                  start](const absl::StatusOr<v1::CompileResponse>& answer) {
        self->ItemDone(number, answer, base::Clock::System().Now() - start);
      });
  bool cancel = false;
  {
    base::MutexLock lock(&mutex_);
    if (done_early_.erase(number) > 0) return;
    cancel = broken_;
    if (!cancel) tickets_[number] = ticket;
  }
  if (cancel) CancelItem(ticket);
}

void WarmRun::ItemDone(int number, const absl::StatusOr<v1::CompileResponse>& answer,
                       absl::Duration took) {
  // Given up for a drain, and good for another run: no fault of the item's.
  const bool given_up = absl::IsUnavailable(answer.status()) && compiler_.draining();
  v1::WarmEvent event;
  v1::WarmEvent::Item& item = *event.mutable_item();
  item.set_item(static_cast<uint32_t>(number / request_.targets_size()));
  item.set_name(request_.items(number / request_.targets_size()).name());
  item.set_target(request_.targets(number % request_.targets_size()));
  item.set_code(static_cast<int>(answer.status().code()));
  item.set_message(base::ToUtf8(answer.status().message()));
  item.set_total_ns(absl::ToInt64Nanoseconds(took));
  if (answer.ok()) {
    item.set_source(answer->source());
    item.set_key(answer->key());
  }
  {
    base::MutexLock lock(&mutex_);
    if (tickets_.erase(number) == 0) done_early_.insert(number);  // before Compile has its ticket
    --in_flight_;
    events_.push_back(std::move(event));
    if (given_up) summary_.set_draining(true);
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

}  // namespace fusiond::server
