// FairExecutor: threads for work that may wait long for somebody else, shared fairly by those it is
// done for.
//
// Work of one key goes in the order it came, at most `per_key` of it at once; the keys take turns.
// So whoever's work is stuck holds up nobody else, as long as not threads / per_key of them are.
//
// Thread-safety: thread-safe. Ownership: the destructor runs what is queued and joins.
// Cost: threads start when there is work for them, and stay.
#ifndef FUSIOND_SERVER_SERVICE_FAIR_EXECUTOR_H_
#define FUSIOND_SERVER_SERVICE_FAIR_EXECUTOR_H_

#include <deque>
#include <list>
#include <string>
#include <thread>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "runtime/base/mutex.h"

namespace fusiond::server {

class FairExecutor {
 public:
  FairExecutor(int threads, int per_key) : max_threads_(threads), per_key_(per_key) {}
  ~FairExecutor();
  FairExecutor(const FairExecutor&) = delete;
  FairExecutor& operator=(const FairExecutor&) = delete;

  void Run(const std::string& key, absl::AnyInvocable<void()> work) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Key {
    std::string name;
    std::deque<absl::AnyInvocable<void()>> waiting;
    int running = 0;
  };

  void Loop();
  // The key whose turn it is; end when none may run more.
  std::list<Key>::iterator Next() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // How much of what waits may run now.
  int Startable() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const int max_threads_;
  const int per_key_;

  base::Mutex mutex_;
  base::CondVar changed_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::list<Key> keys_ ABSL_GUARDED_BY(mutex_);  // that have work; whose turn is next comes first
  int idle_ ABSL_GUARDED_BY(mutex_) = 0;         // threads that wait for work
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fusiond::server

#endif  // FUSIOND_SERVER_SERVICE_FAIR_EXECUTOR_H_
