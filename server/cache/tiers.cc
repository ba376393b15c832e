#include "server/cache/tiers.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "runtime/base/status_macros.h"

namespace fusiond::cache {
namespace {

void Count(std::atomic<uint64_t>& tally) { tally.fetch_add(1, std::memory_order_relaxed); }

// An executable is named by its content.
bool ContentFits(const RecordKey& key, const Record& record) {
  return key.kind() != RecordKind::kExecutable || base::Sha256(record.payload) == key.first();
}

// The journal is read by those who make a list of it, never to answer a request.
bool StoreOnly(RecordKind kind) {
  return kind == RecordKind::kJournal || kind == RecordKind::kGraph;
}

}  // namespace

absl::string_view Name(MissReason reason) {
  switch (reason) {
    case MissReason::kAbsent:
      return "absent";
    case MissReason::kPending:
      return "pending";
    case MissReason::kBadRecord:
      return "bad record";
    case MissReason::kOtherMaterial:
      return "other material";
    case MissReason::kStoreUnavailable:
      return "store unavailable";
  }
  return "unknown";
}

Tiers::Found Tiers::Read(const RecordKey& key, const std::string* material, bool keep) {
  auto fits = [&](const Record& record) {
    return material == nullptr || record.material == *material;
  };
  std::shared_ptr<const Record> record = memory_.Get(key);
  if (record != nullptr && fits(*record)) return {std::move(record), Tier::kMemory};
  if (store_ == nullptr) return {};
  const uint64_t changes = changes_.load();
  absl::StatusOr<Record> stored = store_->Get(key);
  if (absl::IsNotFound(stored.status())) return {nullptr, Tier::kDisk, MissReason::kAbsent};
  if (absl::IsDataLoss(stored.status())) return {nullptr, Tier::kDisk, MissReason::kBadRecord};
  if (!stored.ok()) {
    const bool opening = store_->Status().state == StoreState::kOpening;
    return {nullptr, Tier::kDisk, opening ? MissReason::kPending : MissReason::kStoreUnavailable};
  }
  if (!fits(*stored)) {
    Delete({&key, 1}).IgnoreError();
    return {nullptr, Tier::kDisk, MissReason::kOtherMaterial};
  }
  if (!ContentFits(key, *stored)) {
    Delete({&key, 1}).IgnoreError();
    return {nullptr, Tier::kDisk, MissReason::kBadRecord};
  }
  record = std::make_shared<const Record>(*std::move(stored));
  if (keep && memory_.PutIfAbsent(key, record) && changes_.load() != changes) memory_.Remove(key);
  return {std::move(record), Tier::kDisk};
}

Tiers::Found Tiers::Peek(const RecordKey& key, const std::string* material) {
  return Read(key, material, false);
}

Tiers::Found Tiers::Find(const RecordKey& key, const std::string* material) {
  Found found = Read(key, material, true);
  Counters& counters = counters_[IndexOf(key.kind())];
  if (found.record == nullptr) {
    Count(counters.misses[static_cast<size_t>(found.reason)]);
  } else {
    Count(found.tier == Tier::kMemory ? counters.memory_hits : counters.disk_hits);
  }
  return found;
}

void Tiers::ReportBad(const RecordKey& key) {
  Count(counters_[IndexOf(key.kind())].misses[static_cast<size_t>(MissReason::kBadRecord)]);
  memory_.Remove(key);
  Delete({&key, 1}).IgnoreError();
}

bool Tiers::Put(const std::vector<NewRecord>& records) {
  std::vector<StoreWrite> writes;
  writes.reserve(records.size());
  changes_.fetch_add(1);
  for (const NewRecord& added : records) {
    if (!StoreOnly(added.key.kind())) memory_.Put(added.key, added.record, store_ != nullptr);
    writes.push_back({added.key, added.record->material, added.record->payload});
  }
  if (store_ == nullptr) return false;
  if (store_->Commit(writes).ok()) return true;
  for (const NewRecord& added : records) {
    // An older one of that key may stand there.
    if (!store_->Contains(added.key)) memory_.MarkUnstored(added.key);
  }
  return false;
}

uint64_t Tiers::Requests() const {
  const MemoryTier::Stats memory = memory_.GetStats();
  const std::optional<uint64_t> stored = store_ == nullptr ? std::nullopt : store_->Requests();
  return stored.has_value() ? *stored + memory.unstored_requests : memory.requests;
}

absl::Status Tiers::Delete(absl::Span<const RecordKey> keys) {
  if (store_ != nullptr) FUSIOND_RETURN_IF_ERROR(store_->Delete(keys));
  changes_.fetch_add(1);
  for (const RecordKey& key : keys) memory_.Remove(key);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<RecordKey>> Tiers::Keys(RecordKind kind, absl::string_view prefix,
                                                   const std::optional<RecordKey>& after,
                                                   size_t limit) {
  std::vector<RecordKey> in_memory = memory_.Keys(kind, prefix);
  std::sort(in_memory.begin(), in_memory.end());
  auto first = after.has_value() ? std::upper_bound(in_memory.begin(), in_memory.end(), *after)
                                 : in_memory.begin();
  std::vector<RecordKey> stored;
  if (store_ != nullptr) {
    absl::StatusOr<std::vector<RecordKey>> keys = store_->Keys(kind, prefix, after, limit);
    if (keys.ok()) {
      stored = *std::move(keys);
    } else if (store_->Status().state != StoreState::kUnavailable) {
      return keys.status();
    }
  }
  std::vector<RecordKey> keys;
  std::set_union(first, in_memory.end(), stored.begin(), stored.end(), std::back_inserter(keys));
  if (keys.size() > limit) keys.erase(keys.begin() + limit, keys.end());
  return keys;
}

LookupStats Tiers::Stats(RecordKind kind) const {
  const Counters& counters = counters_[IndexOf(kind)];
  LookupStats stats;
  stats.memory_hits = counters.memory_hits.load(std::memory_order_relaxed);
  stats.disk_hits = counters.disk_hits.load(std::memory_order_relaxed);
  for (size_t i = 0; i < kMissReasons; ++i) {
    stats.misses[i] = counters.misses[i].load(std::memory_order_relaxed);
  }
  return stats;
}

}  // namespace fusiond::cache
