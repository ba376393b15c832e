// Grants: which executables an identity may name. A digest is granted by the answer that told it;
// nobody else's digest can be leased or loaded, however it was come by.
//
// An administrator may name every digest: so a private daemon's only user keeps the digests of
// before a restart. Others ask Compile again, which answers from the cache.
//
// Thread-safety: thread-safe. Bounded: the digests granted longest ago are forgotten first.
#ifndef FUSIOND_SERVER_SERVICE_GRANTS_H_
#define FUSIOND_SERVER_SERVICE_GRANTS_H_

#include <deque>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "runtime/base/mutex.h"
#include "runtime/base/sha256.h"
#include "server/service/identity.h"

namespace fusiond::server {

class Grants {
 public:
  // `limit`: digests of one identity.
  explicit Grants(size_t limit = 65536) : limit_(limit) {}

  void Add(const Identity& identity, const base::Digest& executable) {
    if (identity.administrator) return;
    base::MutexLock lock(&mutex_);
    Granted& granted = granted_[identity.Name()];
    if (!granted.digests.insert(executable).second) return;
    granted.by_age.push_back(executable);
    if (granted.by_age.size() <= limit_) return;
    granted.digests.erase(granted.by_age.front());
    granted.by_age.pop_front();
  }

  bool Allow(const Identity& identity, const base::Digest& executable) const {
    if (identity.administrator) return true;
    base::MutexLock lock(&mutex_);
    const auto granted = granted_.find(identity.Name());
    return granted != granted_.end() && granted->second.digests.contains(executable);
  }

 private:
  struct Granted {
    absl::flat_hash_set<base::Digest> digests;
    std::deque<base::Digest> by_age;
  };

  const size_t limit_;
  mutable base::Mutex mutex_;
  absl::flat_hash_map<std::string, Granted> granted_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fusiond::server

#endif  // FUSIOND_SERVER_SERVICE_GRANTS_H_
