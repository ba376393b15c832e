// Tiers: one view of memory and store.
//
// Reads go through memory to the store, and what the store had is kept in memory. A record counts
// only if its key material is the one asked for: a digest that collides, or an index that went
// wrong, is a miss and never a wrong answer. Writes go to both; what the store refuses stays in
// memory.
//
// Thread-safety: thread-safe. Ownership: `store` is borrowed, may be null, and outlives the object.
#ifndef FUSIOND_SERVER_CACHE_TIERS_H_
#define FUSIOND_SERVER_CACHE_TIERS_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/cache/memory_tier.h"
#include "server/cache/record.h"
#include "server/cache/store.h"

namespace fusiond::cache {

enum class Tier { kMemory, kDisk };

enum class MissReason { kAbsent, kPending, kBadRecord, kOtherMaterial, kStoreUnavailable };
inline constexpr size_t kMissReasons = 5;
absl::string_view Name(MissReason reason);  // "absent", …

// Look-ups of one kind of record.
struct LookupStats {
  uint64_t memory_hits = 0;
  uint64_t disk_hits = 0;
  std::array<uint64_t, kMissReasons> misses{};  // by MissReason
};

struct NewRecord {
  RecordKey key;
  std::shared_ptr<const Record> record;
};

class Tiers {
 public:
  Tiers(size_t memory_bytes, Store* store) : memory_(memory_bytes), store_(store) {}

  struct Found {
    std::shared_ptr<const Record> record;  // null: a miss
    Tier tier = Tier::kMemory;
    MissReason reason = MissReason::kAbsent;  // of a miss
  };
  // Compares `material` unless it is null. Counted by the kind of `key`.
  Found Find(const RecordKey& key, const std::string* material);
  // The same, but not counted, and what the store had is not kept in memory.
  Found Peek(const RecordKey& key, const std::string* material = nullptr);
  // Counts and drops a record that Find returned and that turned out to be damaged.
  void ReportBad(const RecordKey& key);

  // Whether the store has taken all of them; memory has in any case (but for the journal's kinds,
  // which the store alone keeps).
  bool Put(const std::vector<NewRecord>& records);
  // From both, or from neither: the error is the store's.
  absl::Status Delete(absl::Span<const RecordKey> keys);
  // Of both, as Store::Keys.
  absl::StatusOr<std::vector<RecordKey>> Keys(RecordKind kind, absl::string_view prefix,
                                              const std::optional<RecordKey>& after, size_t limit);

  // All that the store held is gone.
  void StoreLostAll() { memory_.MarkAllUnstored(); }
  // Requests in either: exactly, once the store has been opened and counted; before that, and while
  // it cannot be read, those in memory.
  uint64_t Requests() const;
  LookupStats Stats(RecordKind kind) const;
  MemoryTier::Stats MemoryStats() const { return memory_.GetStats(); }

 private:
  // Relaxed: tallies that nothing is ordered by.
  struct Counters {
    std::atomic<uint64_t> memory_hits{0};
    std::atomic<uint64_t> disk_hits{0};
    std::array<std::atomic<uint64_t>, kMissReasons> misses{};
  };

  Found Read(const RecordKey& key, const std::string* material, bool keep);
  static size_t IndexOf(RecordKind kind) { return kRecordKinds.find(static_cast<char>(kind)); }

  MemoryTier memory_;
  Store* const store_;
  // Grows with every Put and Delete. A record read from the store is kept in memory only if this
  // has not moved meanwhile, so that nothing old takes the place of something new or deleted.
  std::atomic<uint64_t> changes_{0};
  std::array<Counters, kRecordKinds.size()> counters_;  // in the order of kRecordKinds
};

}  // namespace fusiond::cache

#endif  // FUSIOND_SERVER_CACHE_TIERS_H_
