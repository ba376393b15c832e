// MemoryTier: the records used last, in memory, within a budget of bytes.
//
// Sharded by key, so that threads seldom meet at one lock; each shard is an LRU list. The budget is
// one for all shards: an insertion evicts from its own shard first and then from the others in
// turn, so that order of use is exact within a shard and approximate across shards.
//
// Thread-safety: thread-safe. Ownership: records are shared and immutable; one that is evicted
// lives on as long as somebody holds it. Cost: Get and Put are O(1) plus what is evicted; no lock
// is held while records are destroyed.
#ifndef FUSIOND_SERVER_CACHE_MEMORY_TIER_H_
#define FUSIOND_SERVER_CACHE_MEMORY_TIER_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "runtime/base/mutex.h"
#include "server/cache/record.h"

namespace fusiond::cache {

class MemoryTier {
 public:
  explicit MemoryTier(size_t budget_bytes) : budget_bytes_(budget_bytes) {}

  // nullptr when absent; a hit is now the last used.
  std::shared_ptr<const Record> Get(const RecordKey& key);
  // Takes the place of what stood there. A record larger than the whole budget is not kept.
  // `stored`: the store has it too, as far as is known.
  void Put(const RecordKey& key, std::shared_ptr<const Record> record, bool stored = true);
  // Leaves what stands there; returns whether `record`, which comes from the store, has been kept.
  bool PutIfAbsent(const RecordKey& key, std::shared_ptr<const Record> record);
  void Remove(const RecordKey& key);
  // The store does not have it, or none of all, after all.
  void MarkUnstored(const RecordKey& key);
  void MarkAllUnstored();
  // All keys of `kind` whose digest starts with `prefix`, in no order. O(entries).
  std::vector<RecordKey> Keys(RecordKind kind, absl::string_view prefix) const;

  struct Stats {
    uint64_t entries = 0;
    uint64_t bytes = 0;  // charged: payloads, material, and what an entry costs beside them
    uint64_t evictions = 0;
    uint64_t requests = 0;           // of the entries, those of kind request
    uint64_t unstored_requests = 0;  // of these, those that the store does not have
  };
  Stats GetStats() const;

 private:
  static constexpr size_t kShards = 16;
  static constexpr size_t kEntryOverheadBytes = 256;  // nodes, key twice, string headers (estimate)

  struct Entry {
    RecordKey key;
    std::shared_ptr<const Record> record;
    size_t bytes;
    bool stored;
  };
  struct Shard {
    mutable base::Mutex mutex;
    std::list<Entry> used ABSL_GUARDED_BY(mutex);  // front: used last
    absl::flat_hash_map<RecordKey, std::list<Entry>::iterator> index ABSL_GUARDED_BY(mutex);
  };

  static size_t ShardOf(const RecordKey& key);
  bool Insert(const RecordKey& key, std::shared_ptr<const Record> record, bool replace,
              bool stored);
  // Into the counts of requests, or out of them.
  void Count(const Entry& entry, int64_t sign);
  void SetUnstored(Entry& entry);
  // Takes the entry of `key` out of the shard, into `out`.
  void Take(Shard& shard, const RecordKey& key, std::list<Entry>& out)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(shard.mutex);
  // Evicts the least recently used entries, of shard `first` first, until the budget holds. `keep`
  // stays.
  void EvictOverBudget(size_t first, const RecordKey& keep);

  const size_t budget_bytes_;
  std::array<Shard, kShards> shards_;
  // Sums over the shards. Relaxed: each is a count by itself, and a budget missed by an insertion
  // under way elsewhere is put right by that insertion.
  std::atomic<uint64_t> bytes_{0};
  std::atomic<uint64_t> evictions_{0};
  std::atomic<int64_t> requests_{0};
  std::atomic<int64_t> unstored_requests_{0};
};

}  // namespace fusiond::cache

#endif  // FUSIOND_SERVER_CACHE_MEMORY_TIER_H_
