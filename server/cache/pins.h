// Pins: executables that somebody leases, with how many leases each.
//
// Eviction passes over pinned executables: their clients may ask for them again at any time.
//
// Thread-safety: thread-safe. Ownership: a Pin keeps the table alive by itself.
#ifndef FUSIOND_SERVER_CACHE_PINS_H_
#define FUSIOND_SERVER_CACHE_PINS_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "runtime/base/mutex.h"
#include "runtime/base/sha256.h"

namespace fusiond::cache {

class Pins : public std::enable_shared_from_this<Pins> {
 public:
  // One lease; ends when destroyed.
  class Pin {
   public:
    Pin(Pin&&) = default;
    Pin& operator=(Pin&& other) noexcept {
      std::swap(pins_, other.pins_);
      std::swap(digest_, other.digest_);
      return *this;
    }
    ~Pin() {
      if (pins_ != nullptr) pins_->Release(digest_);
    }

   private:
    friend class Pins;
    Pin(std::shared_ptr<Pins> pins, const base::Digest& digest)
        : pins_(std::move(pins)), digest_(digest) {}
    std::shared_ptr<Pins> pins_;
    base::Digest digest_;
  };

  // Requires: the table is owned by a shared_ptr.
  Pin Add(const base::Digest& executable) {
    base::MutexLock lock(&mutex_);
    ++counts_[executable];
    return Pin(shared_from_this(), executable);
  }
  bool Contains(const base::Digest& executable) const {
    base::MutexLock lock(&mutex_);
    return counts_.contains(executable);
  }
  size_t Size() const {
    base::MutexLock lock(&mutex_);
    return counts_.size();
  }

 private:
  void Release(const base::Digest& executable) {
    base::MutexLock lock(&mutex_);
    auto at = counts_.find(executable);
    if (--at->second == 0) counts_.erase(at);
  }

  mutable base::Mutex mutex_;
  absl::flat_hash_map<base::Digest, uint64_t> counts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fusiond::cache

#endif  // FUSIOND_SERVER_CACHE_PINS_H_
