// What the Cache takes and gives: plain values.
//
// Thread-safety: values.
#ifndef FUSIOND_SERVER_CACHE_CACHE_TYPES_H_
#define FUSIOND_SERVER_CACHE_CACHE_TYPES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "runtime/base/sha256.h"
#include "server/cache/entries.h"
#include "server/cache/keys.h"
#include "server/cache/memory_tier.h"
#include "server/cache/record.h"
#include "server/cache/store.h"
#include "server/cache/tiers.h"

namespace fusiond::cache {

struct CacheOptions {
  size_t memory_bytes = size_t{256} << 20;
  absl::Duration negative_ttl = absl::Minutes(1);
};

enum class LookupState {
  kHit,
  kAbsent,    // to be compiled
  kPending,   // the store is still opening: not known yet, so wait before compiling
  kNegative,  // failed lately
};

struct RequestLookup {
  LookupState state = LookupState::kAbsent;
  RequestKey key;
  Tier tier = Tier::kMemory;  // of a hit
  RequestEntry entry;         // of a hit
  absl::Status failure;       // kNegative
};

template <typename T>
struct Hit {
  T value;
  Tier tier;
};

// A request, and the guards of the executable that is to answer it.
struct RequestBinding {
  KeyMaterial material;
  std::string graph;   // serialised, as sent: kept in the journal
  std::string guards;  // serialised
  VariantPosition position = VariantPosition::kLast;
};

struct NewImage {
  ImageKeyMaterial material;
  std::string image;
};

// What a compile produced.
struct NewExecutable {
  KeyMaterial canonical;
  std::vector<NewImage> images;         // compiled now
  std::vector<ImageKey> reused_images;  // found in the cache
  std::string bytes;
};

struct Committed {
  base::Digest executable;
  uint64_t revision = 0;
  bool persisted = false;  // false: in memory only; CacheStats::degraded says why
};

struct RequestInfo {
  RequestKey key;
  KeyMaterial material;
  RequestEntry entry;
  JournalEntry journal;
  bool pinned = false;  // one of its executables is leased
};

struct RequestPage {
  std::vector<RequestInfo> requests;
  std::optional<RequestKey> next;  // `after` for the next page; nothing after the last
};

struct JournalInfo {
  RequestKey key;
  KeyMaterial material;
  JournalEntry journal;
  std::string graph;
};

struct JournalPage {
  std::vector<JournalInfo> requests;
  std::optional<RecordKey> next;
};

struct Evicted {
  uint64_t requests = 0;
  uint64_t executables = 0;
  uint64_t pinned = 0;  // requests that stay because an executable of theirs is leased
};

// A known request of the same graph, and what sets it apart from the one asked for.
struct Neighbour {
  RequestKey key;
  std::vector<KeyDifference> differences;
};

struct Explanation {
  LookupState state = LookupState::kAbsent;
  RequestKey key;
  std::vector<KeyField> fields;
  absl::Status failure;  // kNegative
  std::vector<Neighbour> neighbours;
};

struct CacheStats {
  LookupStats requests;
  LookupStats canonical;
  LookupStats images;
  LookupStats executables;
  uint64_t negative_hits = 0;
  uint64_t negative_entries = 0;
  uint64_t commits = 0;
  uint64_t commits_in_memory_only = 0;
  uint64_t pinned_executables = 0;
  uint64_t requests_kept = 0;  // in memory or store, as Tiers::Requests
  MemoryTier::Stats memory;
  StoreStats store;
  std::string degraded;  // one line for status and health; empty when all is well
};

}  // namespace fusiond::cache

#endif  // FUSIOND_SERVER_CACHE_CACHE_TYPES_H_
