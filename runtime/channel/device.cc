#include "runtime/channel/device.h"

#include <utility>

#include "runtime/channel/worker_ring.h"

namespace fusiond::channel {
namespace {

Outcome Dropped() {
  Outcome outcome;
  outcome.code = CompletionCode::kContextLost;
  outcome.reason = CompletionReason::kDropped;
  return outcome;
}

}  // namespace

Ticket& Ticket::operator=(Ticket&& other) noexcept {
  if (this != &other) {
    if (ring_ != nullptr) Finish(Dropped());
    ring_ = std::move(other.ring_);
    cookie_ = other.cookie_;
    taken_ns_ = other.taken_ns_;
    timed_ = other.timed_;
  }
  return *this;
}

Ticket::~Ticket() {
  if (ring_ != nullptr) Finish(Dropped());
}

void Ticket::Finish(const Outcome& outcome) {
  Outcome answer = outcome;
  if (!timed_) answer.device_ns = 0;
  std::exchange(ring_, nullptr)->Answer(cookie_, answer);
}

}  // namespace fusiond::channel
