// SingleFlight: many callers want one result, one of them computes it.
//
// The first to ask for a key becomes the leader and gets a Lead; those that ask before the lead is
// finished only wait. Every caller, the leader's own request included, registers a callback and
// gets the result or the typed error through it. Waiters come and go independently of the work: a
// cancelled waiter takes nothing away from the others, and the work is abandoned only when none is
// left.
//
// A result is not kept. So whoever leads looks into the cache once more before working: the
// previous lead may have finished between its look-up and its joining.
//
// Thread-safety: thread-safe; callbacks run without locks held, in the thread of Lead::Finish (or
// of the last Cancel, for the abandonment callback). Ownership: the SingleFlight outlives its
// Leads.
#ifndef FUSIOND_SERVER_CACHE_SINGLE_FLIGHT_H_
#define FUSIOND_SERVER_CACHE_SINGLE_FLIGHT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "runtime/base/mutex.h"

namespace fusiond::cache {

template <typename Key, typename Value>
class SingleFlight {
 private:
  struct Flight;

 public:
  using Result = absl::StatusOr<Value>;
  // Called at most once, with a result that lives as long as the call.
  using Callback = std::function<void(const Result&)>;

  // Names one waiter. A value; meaningless to another SingleFlight.
  class Ticket {
   public:
    Ticket() = default;

   private:
    friend class SingleFlight;
    std::shared_ptr<Flight> flight_;
    uint64_t id_ = 0;
  };

  // The duty to produce the result. Destroyed unfinished, it finishes with ABORTED.
  class Lead {
   public:
    Lead(Lead&& other) noexcept
        : owner_(std::exchange(other.owner_, nullptr)), flight_(std::move(other.flight_)) {}
    Lead& operator=(Lead&& other) noexcept {
      std::swap(owner_, other.owner_);
      std::swap(flight_, other.flight_);
      return *this;
    }
    ~Lead() {
      if (owner_ != nullptr) Finish(absl::AbortedError("the work was given up"));
    }

    // Hands `result` to all waiters and ends the flight: who asks for the key now leads anew.
    // Requires: called at most once.
    void Finish(const Result& result) { std::exchange(owner_, nullptr)->Finish(flight_, result); }

    // `abandoned` runs once, when the last waiter cancels before Finish (at once if that has
    // happened already). The flight is over then and Finish reaches nobody. Requires: not finished.
    void OnAbandoned(std::function<void()> abandoned) {
      owner_->OnAbandoned(flight_, std::move(abandoned));
    }

   private:
    friend class SingleFlight;
    Lead(SingleFlight* owner, std::shared_ptr<Flight> flight)
        : owner_(owner), flight_(std::move(flight)) {}

    SingleFlight* owner_;
    std::shared_ptr<Flight> flight_;
  };

  struct Joined {
    Ticket ticket;
    std::optional<Lead> lead;  // set for the one who must do the work
  };

  Joined JoinOrLead(const Key& key, Callback callback) {
    Joined joined;
    base::MutexLock lock(&mutex_);
    std::shared_ptr<Flight>& flight = flights_[key];
    if (flight == nullptr) {
      flight = std::make_shared<Flight>(key);
      joined.lead = Lead(this, flight);
    }
    joined.ticket.flight_ = flight;
    joined.ticket.id_ = ++last_id_;
    flight->waiters.push_back({last_id_, std::move(callback)});
    return joined;
  }

  // True: the waiter is gone and its callback will not be called. False: the result has been, or is
  // being, delivered to it.
  bool Cancel(const Ticket& ticket) {
    std::function<void()> abandoned;
    {
      base::MutexLock lock(&mutex_);
      if (ticket.flight_ == nullptr) return false;
      Flight& flight = *ticket.flight_;
      auto waiter = flight.waiters.begin();
      while (waiter != flight.waiters.end() && waiter->id != ticket.id_) ++waiter;
      if (waiter == flight.waiters.end()) return false;
      flight.waiters.erase(waiter);
      if (!flight.waiters.empty()) return true;
      flight.over = true;
      flights_.erase(flight.key);
      abandoned = std::exchange(flight.abandoned, nullptr);
    }
    if (abandoned) abandoned();
    return true;
  }

  // Keys that somebody leads now.
  size_t InFlight() const {
    base::MutexLock lock(&mutex_);
    return flights_.size();
  }

 private:
  struct Waiter {
    uint64_t id;
    Callback callback;
  };
  // Guarded by the owner's mutex_.
  struct Flight {
    explicit Flight(const Key& k) : key(k) {}
    const Key key;
    std::vector<Waiter> waiters;
    std::function<void()> abandoned;
    bool over = false;
  };

  void Finish(const std::shared_ptr<Flight>& flight, const Result& result) {
    std::vector<Waiter> waiters;
    std::function<void()> abandoned;  // destroyed without the lock
    {
      base::MutexLock lock(&mutex_);
      if (flight->over) return;
      flight->over = true;
      flights_.erase(flight->key);
      waiters.swap(flight->waiters);
      abandoned.swap(flight->abandoned);
    }
    for (Waiter& waiter : waiters) waiter.callback(result);
  }

  void OnAbandoned(const std::shared_ptr<Flight>& flight, std::function<void()> abandoned) {
    {
      base::MutexLock lock(&mutex_);
      if (!flight->over) flight->abandoned = std::exchange(abandoned, nullptr);
    }
    if (abandoned) abandoned();
  }

  mutable base::Mutex mutex_;
  uint64_t last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<Key, std::shared_ptr<Flight>> flights_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fusiond::cache

#endif  // FUSIOND_SERVER_CACHE_SINGLE_FLIGHT_H_
