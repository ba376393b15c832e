// A Store in memory whose state a test sets.
//
// Thread-safety: thread-safe.
#ifndef FUSIOND_TESTS_CACHE_FAKE_STORE_H_
#define FUSIOND_TESTS_CACHE_FAKE_STORE_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "runtime/base/mutex.h"
#include "server/cache/store.h"

namespace fusiond::cache {

// What a FakeStore holds and how it behaves; outlives the store, as a disk does.
struct FakeDisk {
  base::Mutex mutex;
  std::map<RecordKey, Record> records ABSL_GUARDED_BY(mutex);
  StoreStatus status ABSL_GUARDED_BY(mutex) = {StoreState::kReady, "", 0};
  // What the next Upkeep makes of a store that is opening.
  StoreStatus opens_as ABSL_GUARDED_BY(mutex) = {StoreState::kReady, "", 0};

  int listings ABSL_GUARDED_BY(mutex) = 0;  // calls of Stats

  int Listings() {
    base::MutexLock lock(&mutex);
    return listings;
  }
  // As when its folder is removed and made anew.
  void LoseAll() {
    base::MutexLock lock(&mutex);
    records.clear();
    ++status.losses;
  }
  void SetStatus(StoreState state, std::string detail = "") {
    base::MutexLock lock(&mutex);
    status = {state, std::move(detail), status.losses};
  }
  size_t Count(RecordKind kind) {
    base::MutexLock lock(&mutex);
    size_t count = 0;
    for (const auto& [key, record] : records) count += key.kind() == kind;
    return count;
  }
};

class FakeStore : public Store {
 public:
  explicit FakeStore(FakeDisk* disk) : disk_(*disk) {}

  StoreStatus Status() const override {
    base::MutexLock lock(&disk_.mutex);
    return disk_.status;
  }
  absl::StatusOr<Record> Get(const RecordKey& key) override {
    base::MutexLock lock(&disk_.mutex);
    if (!Readable()) return absl::UnavailableError(disk_.status.detail);
    auto at = disk_.records.find(key);
    if (at == disk_.records.end()) return absl::NotFoundError("no such entry");
    return at->second;
  }
  bool Contains(const RecordKey& key) override { return Get(key).ok(); }
  absl::Status Commit(absl::Span<const StoreWrite> writes) override {
    base::MutexLock lock(&disk_.mutex);
    if (disk_.status.state != StoreState::kReady) return Refusal();
    for (const StoreWrite& write : writes) {
      disk_.records[write.key] = {std::string(write.material), std::string(write.payload)};
    }
    return absl::OkStatus();
  }
  absl::Status Delete(absl::Span<const RecordKey> keys) override {
    base::MutexLock lock(&disk_.mutex);
    if (disk_.status.state != StoreState::kReady) return Refusal();
    for (const RecordKey& key : keys) disk_.records.erase(key);
    return absl::OkStatus();
  }
  absl::StatusOr<std::vector<RecordKey>> Keys(RecordKind kind, absl::string_view prefix,
                                              const std::optional<RecordKey>& after,
                                              size_t limit) override {
    base::MutexLock lock(&disk_.mutex);
    if (!Readable()) return Refusal();
    std::vector<RecordKey> keys;
    for (const auto& [key, record] : disk_.records) {
      if (keys.size() == limit) break;
      if (key.kind() == kind && (!after.has_value() || *after < key) &&
          absl::StartsWith(absl::string_view(key.bytes()).substr(1), prefix)) {
        keys.push_back(key);
      }
    }
    return keys;
  }
  void Upkeep() override {
    base::MutexLock lock(&disk_.mutex);
    if (disk_.status.state == StoreState::kOpening &&
        disk_.opens_as.state != StoreState::kOpening) {
      disk_.status = disk_.opens_as;
    }
  }
  absl::Status Compact() override { return absl::OkStatus(); }
  std::optional<uint64_t> Requests() const override {
    {
      base::MutexLock lock(&disk_.mutex);
      if (!Readable()) return std::nullopt;
    }
    return disk_.Count(RecordKind::kRequest);
  }
  StoreStats Stats() const override {
    base::MutexLock lock(&disk_.mutex);
    ++disk_.listings;
    return {};
  }

 private:
  bool Readable() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(disk_.mutex) {
    return disk_.status.state == StoreState::kReady || disk_.status.state == StoreState::kReadOnly;
  }
  absl::Status Refusal() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(disk_.mutex) {
    return absl::UnavailableError(disk_.status.detail);
  }

  FakeDisk& disk_;
};

}  // namespace fusiond::cache

#endif  // FUSIOND_TESTS_CACHE_FAKE_STORE_H_
