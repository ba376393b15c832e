// FairExecutor: threads for work that may wait long for somebody else, shared fairly by those it is
// done for.
//
// Work of one key goes in the order it came, at most `per_key` of it at once; the keys take turns.
// So whoever's work is stuck holds up nobody else, as long as not threads / per_key of them are.
//
// Thread-safety: thread-safe. Ownership: the destructor runs what is queued and joins.
// Cost: threads start when there is work for them, and stay. Where the system starts no more, work
// is refused for which no other thread is idle, since all may be stuck.
#ifndef FUSIOND_SERVER_SERVICE_FAIR_EXECUTOR_H_
#define FUSIOND_SERVER_SERVICE_FAIR_EXECUTOR_H_

#include <cstdint>
#include <deque>
#include <list>
#include <string>
#include <thread>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "runtime/base/mutex.h"

namespace fusiond::server {

class FairExecutor {
 public:
  // Called once: with OK on a thread of this object; else with why it may not run, on the thread of
  // whoever refused it.
  using Work = absl::AnyInvocable<void(const absl::Status& may_run)>;

  FairExecutor(int threads, int per_key) : max_threads_(threads), per_key_(per_key) {}
  ~FairExecutor();
  FairExecutor(const FairExecutor&) = delete;
  FairExecutor& operator=(const FairExecutor&) = delete;

  // Refuses with RESOURCE_EXHAUSTED. The answer names the work for Withdraw.
  uint64_t Run(const std::string& key, Work work) ABSL_LOCKS_EXCLUDED(mutex_);
  // Refuses what still waits, with CANCELLED; does nothing once it runs or has run. Cost: looks
  // through all that waits.
  void Withdraw(uint64_t name) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Waiting {
    uint64_t name;
    Work work;
  };
  struct Key {
    std::string name;
    std::deque<Waiting> waiting;
    int running = 0;
  };

  void Loop();
  // The key whose turn it is; end when none may run more.
  std::list<Key>::iterator Next() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Starts a thread if what waits has none to run it and there may be more.
  absl::Status StartWhatIsMissing() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Drops a key without work.
  void DropIfDone(std::list<Key>::iterator key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // How much of what waits may run now.
  int Startable() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const int max_threads_;
  const int per_key_;

  base::Mutex mutex_;
  base::CondVar changed_;
  uint64_t last_name_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::list<Key> keys_ ABSL_GUARDED_BY(mutex_);  // that have work; whose turn is next comes first
  int idle_ ABSL_GUARDED_BY(mutex_) = 0;         // threads that wait for work
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fusiond::server

#endif  // FUSIOND_SERVER_SERVICE_FAIR_EXECUTOR_H_
