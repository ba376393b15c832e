// CrashCounter: keys whose compile processes died, so that a graph that kills the compiler is not
// tried for ever (F23).
//
// Thread-safety: thread-safe. Bounded: forgets everything rather than grow.
#ifndef FUSIOND_SERVER_ENGINE_CRASH_COUNTER_H_
#define FUSIOND_SERVER_ENGINE_CRASH_COUNTER_H_

#include "absl/container/flat_hash_map.h"
#include "runtime/base/mutex.h"
#include "server/cache/keys.h"

namespace fusiond::server {

class CrashCounter {
 public:
  explicit CrashCounter(int limit) : limit_(limit) {}

  // True when this crash of `key` is one too many; it then counts from the beginning again.
  bool Add(const cache::RequestKey& key) {
    base::MutexLock lock(&mutex_);
    if (crashes_.size() >= kMaxKeys) crashes_.clear();
    if (++crashes_[key] < limit_) return false;
    crashes_.erase(key);
    return true;
  }
  int limit() const { return limit_; }

 private:
  static constexpr size_t kMaxKeys = 4096;
  const int limit_;
  base::Mutex mutex_;
  absl::flat_hash_map<cache::RequestKey, int> crashes_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fusiond::server

#endif  // FUSIOND_SERVER_ENGINE_CRASH_COUNTER_H_
