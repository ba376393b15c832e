#include "server/cache/memory_tier.h"

#include <iterator>

#include "absl/hash/hash.h"
#include "absl/strings/match.h"

namespace fusiond::cache {

// The hash of the index would do as well, but a shard's index must not see equal low bits only.
size_t MemoryTier::ShardOf(const RecordKey& key) {
  return (absl::Hash<RecordKey>()(key) >> 32) % kShards;
}

std::shared_ptr<const Record> MemoryTier::Get(const RecordKey& key) {
  Shard& shard = shards_[ShardOf(key)];
  base::MutexLock lock(&shard.mutex);
  auto at = shard.index.find(key);
  if (at == shard.index.end()) return nullptr;
  shard.used.splice(shard.used.begin(), shard.used, at->second);
  return at->second->record;
}

void MemoryTier::Put(const RecordKey& key, std::shared_ptr<const Record> record, bool stored) {
  Insert(key, std::move(record), true, stored);
}

bool MemoryTier::PutIfAbsent(const RecordKey& key, std::shared_ptr<const Record> record) {
  return Insert(key, std::move(record), false, true);
}

bool MemoryTier::Insert(const RecordKey& key, std::shared_ptr<const Record> record, bool replace,
                        bool stored) {
  const size_t bytes = record->payload.size() + record->material.size() + kEntryOverheadBytes;
  const size_t shard_number = ShardOf(key);
  std::list<Entry> replaced;  // destroyed without the lock
  {
    Shard& shard = shards_[shard_number];
    base::MutexLock lock(&shard.mutex);
    if (!replace && shard.index.contains(key)) return false;
    Take(shard, key, replaced);
    if (bytes > budget_bytes_) return false;
    shard.used.push_front({key, std::move(record), bytes, stored});
    Count(shard.used.front(), 1);
    shard.index[key] = shard.used.begin();
    bytes_.fetch_add(bytes, std::memory_order_relaxed);
  }
  EvictOverBudget(shard_number, key);
  return true;
}

void MemoryTier::Remove(const RecordKey& key) {
  std::list<Entry> removed;  // destroyed without the lock
  Shard& shard = shards_[ShardOf(key)];
  base::MutexLock lock(&shard.mutex);
  Take(shard, key, removed);
}

void MemoryTier::Count(const Entry& entry, int64_t sign) {
  if (entry.key.kind() != RecordKind::kRequest) return;
  requests_.fetch_add(sign, std::memory_order_relaxed);
  if (!entry.stored) unstored_requests_.fetch_add(sign, std::memory_order_relaxed);
}

void MemoryTier::SetUnstored(Entry& entry) {
  Count(entry, -1);
  entry.stored = false;
  Count(entry, 1);
}

void MemoryTier::MarkUnstored(const RecordKey& key) {
  Shard& shard = shards_[ShardOf(key)];
  base::MutexLock lock(&shard.mutex);
  if (auto at = shard.index.find(key); at != shard.index.end()) SetUnstored(*at->second);
}

void MemoryTier::MarkAllUnstored() {
  for (Shard& shard : shards_) {
    base::MutexLock lock(&shard.mutex);
    for (Entry& entry : shard.used) SetUnstored(entry);
  }
}

void MemoryTier::Take(Shard& shard, const RecordKey& key, std::list<Entry>& out) {
  auto at = shard.index.find(key);
  if (at == shard.index.end()) return;
  bytes_.fetch_sub(at->second->bytes, std::memory_order_relaxed);
  Count(*at->second, -1);
  out.splice(out.begin(), shard.used, at->second);
  shard.index.erase(at);
}

void MemoryTier::EvictOverBudget(size_t first, const RecordKey& keep) {
  std::list<Entry> evicted;  // destroyed without the lock
  for (size_t turn = 0; turn < kShards; ++turn) {
    Shard& shard = shards_[(first + turn) % kShards];
    base::MutexLock lock(&shard.mutex);
    while (bytes_.load(std::memory_order_relaxed) > budget_bytes_ && !shard.used.empty() &&
           shard.used.back().key != keep) {
      const RecordKey key = shard.used.back().key;
      Take(shard, key, evicted);
      evictions_.fetch_add(1, std::memory_order_relaxed);
    }
    if (bytes_.load(std::memory_order_relaxed) <= budget_bytes_) return;
  }
}

std::vector<RecordKey> MemoryTier::Keys(RecordKind kind, absl::string_view prefix) const {
  std::vector<RecordKey> keys;
  for (const Shard& shard : shards_) {
    base::MutexLock lock(&shard.mutex);
    for (const Entry& entry : shard.used) {
      if (entry.key.kind() == kind &&
          absl::StartsWith(absl::string_view(entry.key.bytes()).substr(1), prefix)) {
        keys.push_back(entry.key);
      }
    }
  }
  return keys;
}

MemoryTier::Stats MemoryTier::GetStats() const {
  Stats stats;
  stats.bytes = bytes_.load(std::memory_order_relaxed);
  stats.evictions = evictions_.load(std::memory_order_relaxed);
  stats.requests = static_cast<uint64_t>(requests_.load(std::memory_order_relaxed));
  stats.unstored_requests =
      static_cast<uint64_t>(unstored_requests_.load(std::memory_order_relaxed));
  for (const Shard& shard : shards_) {
    base::MutexLock lock(&shard.mutex);
    stats.entries += shard.used.size();
  }
  return stats;
}

}  // namespace fusiond::cache
