// NegativeEntries: compile requests known to fail, for a while.
//
// A client that sends a bad graph in a loop costs one compile per TTL. Only outcomes that the
// request itself decides are kept: INVALID_ARGUMENT, UNIMPLEMENTED, INTERNAL (NVRTC rejects the
// source). Never a lack of memory, time or NVRTC, which says nothing about the next attempt; who
// calls must have told out-of-memory from a compile error, since NVRTC reports both alike.
// In memory only: a restart may try everything again.
//
// Thread-safety: thread-safe. Cost: O(1); at most kMaxEntries entries of kMaxMessageBytes each, the
// oldest makes room.
#ifndef FUSIOND_SERVER_CACHE_NEGATIVE_ENTRIES_H_
#define FUSIOND_SERVER_CACHE_NEGATIVE_ENTRIES_H_

#include <cstdint>
#include <list>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "runtime/base/clock.h"
#include "runtime/base/mutex.h"
#include "server/cache/keys.h"

namespace fusiond::cache {

class NegativeEntries {
 public:
  static constexpr size_t kMaxEntries = 4096;
  static constexpr size_t kMaxMessageBytes = 16 << 10;

  // `clock` must outlive the object.
  NegativeEntries(absl::Duration ttl, const base::Clock& clock) : ttl_(ttl), clock_(clock) {}

  // Keeps `failure`, its text cut to kMaxMessageBytes at a character's edge, unless its code is one
  // that must not be kept. Returns whether it was.
  bool Add(const RequestKey& key, const absl::Status& failure);
  // The failure of an entry that has not expired.
  std::optional<absl::Status> Find(const RequestKey& key);
  void Remove(const RequestKey& key);
  void Clear();
  size_t Size() const;

 private:
  struct Entry {
    RequestKey key;
    absl::Status failure;
    absl::Duration expires;  // on clock_
  };

  void DropExpired() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const absl::Duration ttl_;
  const base::Clock& clock_;
  mutable base::Mutex mutex_;
  std::list<Entry> by_age_ ABSL_GUARDED_BY(mutex_);  // front: expires first
  absl::flat_hash_map<RequestKey, std::list<Entry>::iterator> index_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fusiond::cache

#endif  // FUSIOND_SERVER_CACHE_NEGATIVE_ENTRIES_H_
