// Cache: listing, explaining, dropping, counting.
#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "server/cache/cache.h"

namespace fusiond::cache {
namespace {

constexpr size_t kEvictPage = 256;
constexpr size_t kMaxNeighbours = 16;

absl::Status CheckHexPrefix(absl::string_view prefix) {
  auto is_digit = [](char c) { return absl::ascii_isdigit(c) || (c >= 'a' && c <= 'f'); };
  if (prefix.size() > 64 || !std::all_of(prefix.begin(), prefix.end(), is_digit)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a key's prefix is at most 64 lower-case hex digits, not '",
                     absl::CEscape(prefix.substr(0, 64)), "'"));
  }
  return absl::OkStatus();
}

// What of a prefix the keys' bytes can be held against.
std::string WholeBytes(absl::string_view hex_prefix) {
  return absl::HexStringToBytes(hex_prefix.substr(0, hex_prefix.size() & ~size_t{1}));
}

}  // namespace

bool Cache::Pinned(const RequestEntry& entry) const {
  return std::any_of(entry.variants.begin(), entry.variants.end(),
                     [this](const Variant& v) { return pins_->Contains(v.executable); });
}

JournalEntry Cache::ReadJournal(const base::Digest& graph, const RequestKey& key) {
  base::MutexLock lock(&commit_mutex_);  // a flush moves counts from memory to disk in two steps
  return journal_.Read(graph, key);
}

std::optional<RequestInfo> Cache::FindRequest(const RequestKey& key) {
  const RecordKey record_key = RecordKey::Of(key);
  Tiers::Found found = tiers_.Peek(record_key);
  if (found.record == nullptr) return std::nullopt;
  absl::StatusOr<KeyMaterial> material = DecodeRequestMaterial(found.record->material);
  std::optional<RequestEntry> entry = Decode(record_key, *found.record);
  if (!material.ok() || !entry.has_value()) return std::nullopt;
  JournalEntry journal = ReadJournal(material->graph, key);
  const bool pinned = Pinned(*entry);
  return RequestInfo{key, *std::move(material), *std::move(entry), journal, pinned};
}

std::optional<ImageKeyMaterial> Cache::FindImageMaterial(const ImageKey& key) {
  Tiers::Found found = tiers_.Peek(RecordKey::Of(key));
  if (found.record == nullptr) return std::nullopt;
  absl::StatusOr<ImageKeyMaterial> material = DecodeImageMaterial(found.record->material);
  return material.ok() ? std::optional(*std::move(material)) : std::nullopt;
}

std::optional<std::string> Cache::FindGraph(const base::Digest& hash) {
  Tiers::Found found = tiers_.Peek(RecordKey::Graph(hash));
  return found.record != nullptr ? std::optional(found.record->payload) : std::nullopt;
}

absl::StatusOr<RequestPage> Cache::List(const std::optional<RequestKey>& after, size_t limit) {
  std::optional<RecordKey> start;
  if (after.has_value()) start = RecordKey::Of(*after);
  limit = std::clamp<size_t>(limit, 1, kMaxPage);
  FUSIOND_ASSIGN_OR_RETURN(std::vector<RecordKey> keys,
                           tiers_.Keys(RecordKind::kRequest, "", start, limit));
  RequestPage page;
  if (keys.size() == limit) page.next = RequestKey{keys.back().first()};
  for (const RecordKey& key : keys) {
    // Nothing when it has gone since the keys were read, or is damaged.
    std::optional<RequestInfo> info = FindRequest(RequestKey{key.first()});
    if (info.has_value()) page.requests.push_back(*std::move(info));
  }
  return page;
}

absl::StatusOr<JournalPage> Cache::ListJournal(const std::optional<RecordKey>& after,
                                               size_t limit) {
  JournalPage page;
  if (store_ == nullptr) return page;
  limit = std::clamp<size_t>(limit, 1, kMaxPage);
  FUSIOND_ASSIGN_OR_RETURN(std::vector<RecordKey> keys,
                           store_->Keys(RecordKind::kJournal, "", after, limit));
  if (keys.size() == limit) page.next = keys.back();
  for (const RecordKey& key : keys) {
    absl::StatusOr<Record> record = store_->Get(key);
    absl::StatusOr<Record> graph = store_->Get(RecordKey::Graph(key.first()));
    if (!record.ok() || !graph.ok()) continue;
    absl::StatusOr<KeyMaterial> material = DecodeRequestMaterial(record->material);
    if (!material.ok()) continue;
    const RequestKey request{key.second()};
    page.requests.push_back({request, *std::move(material), ReadJournal(key.first(), request),
                             std::move(graph->payload)});
  }
  return page;
}

Explanation Cache::Explain(const KeyMaterial& request) {
  const std::string material = EncodeRequestMaterial(request);
  Explanation explanation;
  explanation.key = RequestKey{base::Sha256(material)};
  explanation.fields = Describe(request);
  Tiers::Found found = tiers_.Peek(RecordKey::Of(explanation.key), &material);
  if (found.record != nullptr) {
    explanation.state = LookupState::kHit;
  } else if (std::optional<absl::Status> failure = negative_.Find(explanation.key)) {
    explanation.state = LookupState::kNegative;
    explanation.failure = *std::move(failure);
  } else if (found.reason == MissReason::kPending) {
    explanation.state = LookupState::kPending;
  }
  explanation.neighbours = NeighboursOf(request, explanation.key);
  return explanation;
}

std::vector<Neighbour> Cache::NeighboursOf(const KeyMaterial& request, const RequestKey& key) {
  std::vector<Neighbour> neighbours;
  if (store_ == nullptr) return neighbours;
  absl::StatusOr<std::vector<RecordKey>> keys =
      store_->Keys(RecordKind::kJournal, request.graph.View(), std::nullopt, kMaxNeighbours + 1);
  if (!keys.ok()) return neighbours;
  for (const RecordKey& other : *keys) {
    if (other.second() == key.digest || neighbours.size() == kMaxNeighbours) continue;
    absl::StatusOr<Record> record = store_->Get(other);
    if (!record.ok()) continue;
    absl::StatusOr<KeyMaterial> material = DecodeRequestMaterial(record->material);
    if (!material.ok()) continue;
    neighbours.push_back({RequestKey{other.second()}, Differences(request, *material)});
  }
  return neighbours;
}

std::vector<RecordKey> Cache::OriginsOf(const base::Digest& executable) {
  std::vector<RecordKey> keys;
  Tiers::Found found = tiers_.Peek(RecordKey::Executable(executable));
  if (found.record == nullptr) return keys;
  absl::StatusOr<ExecutableOrigin> origin = DecodeExecutableOrigin(found.record->material);
  if (!origin.ok()) return keys;
  keys.push_back(RecordKey::Of(origin->canonical));
  for (const ImageKey& image : origin->images) keys.push_back(RecordKey::Of(image));
  return keys;
}

void Cache::CollectRequest(const RequestKey& key, std::vector<RecordKey>& keys, Evicted& evicted) {
  const RecordKey record_key = RecordKey::Of(key);
  Tiers::Found found = tiers_.Peek(record_key);
  if (found.record == nullptr) return;
  RequestEntry entry = DecodeRequestEntry(found.record->payload).value_or(RequestEntry{});
  if (Pinned(entry)) {
    ++evicted.pinned;
    return;
  }
  ++evicted.requests;
  keys.push_back(record_key);
  for (const Variant& variant : entry.variants) {
    std::vector<RecordKey> origins = OriginsOf(variant.executable);
    keys.insert(keys.end(), origins.begin(), origins.end());
    if (!origins.empty()) ++evicted.executables;
    keys.push_back(RecordKey::Executable(variant.executable));
  }
  if (absl::StatusOr<KeyMaterial> material = DecodeRequestMaterial(found.record->material);
      material.ok()) {
    std::vector<RecordKey> journal = journal_.KeysOf(material->graph, key);
    keys.insert(keys.end(), journal.begin(), journal.end());
  }
}

absl::StatusOr<RequestKey> Cache::Resolve(absl::string_view hex_prefix) {
  FUSIOND_RETURN_IF_ERROR(CheckHexPrefix(hex_prefix));
  std::optional<RequestKey> found;
  std::optional<RecordKey> after;
  while (true) {
    FUSIOND_ASSIGN_OR_RETURN(
        std::vector<RecordKey> keys,
        tiers_.Keys(RecordKind::kRequest, WholeBytes(hex_prefix), after, kEvictPage));
    for (const RecordKey& key : keys) {
      const RequestKey request{key.first()};
      if (!absl::StartsWith(request.Hex(), hex_prefix)) continue;
      if (found.has_value()) {
        return absl::InvalidArgumentError(absl::StrCat("several keys begin with ", hex_prefix, ": ",
                                                       found->Hex(), ", ", request.Hex()));
      }
      found = request;
    }
    if (keys.size() < kEvictPage) break;
    after = keys.back();
  }
  if (found.has_value()) return *found;
  return absl::NotFoundError(absl::StrCat("no entry's key begins with ", hex_prefix));
}

absl::Status Cache::EvictRequests(absl::string_view hex_prefix, Evicted& evicted) {
  const std::string prefix = WholeBytes(hex_prefix);
  std::optional<RecordKey> after;
  while (true) {
    // A page at a time, so that commits get their turn.
    base::MutexLock lock(&commit_mutex_);
    FUSIOND_ASSIGN_OR_RETURN(std::vector<RecordKey> keys,
                             tiers_.Keys(RecordKind::kRequest, prefix, after, kEvictPage));
    for (const RecordKey& key : keys) {
      const RequestKey request{key.first()};
      if (!absl::StartsWith(request.Hex(), hex_prefix)) continue;
      // One deletion a request: the next one must see what is left of the journal.
      std::vector<RecordKey> drop;
      CollectRequest(request, drop, evicted);
      FUSIOND_RETURN_IF_ERROR(tiers_.Delete(drop));
      negative_.Remove(request);
    }
    if (keys.size() < kEvictPage) return absl::OkStatus();
    after = keys.back();
  }
}

// Whether nothing that stays after a full eviction needs the entry.
bool Cache::Unused(const RecordKey& key) {
  switch (key.kind()) {
    case RecordKind::kExecutable:
      return !pins_->Contains(key.first());
    case RecordKind::kCanonical: {
      Tiers::Found found = tiers_.Peek(key);
      if (found.record == nullptr) return true;
      absl::StatusOr<base::Digest> digest = base::DigestFromBytes(found.record->payload);
      return !digest.ok() || !pins_->Contains(*digest);
    }
    case RecordKind::kJournal:
      return tiers_.Peek(RecordKey::Of(RequestKey{key.second()})).record == nullptr;
    case RecordKind::kGraph: {
      absl::StatusOr<std::vector<RecordKey>> of_graph =
          tiers_.Keys(RecordKind::kJournal, key.first().View(), std::nullopt, 1);
      return of_graph.ok() && of_graph->empty();
    }
    case RecordKind::kImage:
      return true;
    case RecordKind::kRequest:
      return false;
  }
  return false;
}

absl::Status Cache::EvictLeftOver(RecordKind kind, Evicted& evicted) {
  std::optional<RecordKey> after;
  while (true) {
    base::MutexLock lock(&commit_mutex_);
    FUSIOND_ASSIGN_OR_RETURN(std::vector<RecordKey> keys, tiers_.Keys(kind, "", after, kEvictPage));
    if (keys.empty()) return absl::OkStatus();
    after = keys.back();
    std::vector<RecordKey> drop;
    for (const RecordKey& key : keys) {
      if (Unused(key)) drop.push_back(key);
    }
    FUSIOND_RETURN_IF_ERROR(tiers_.Delete(drop));
    if (kind == RecordKind::kExecutable) evicted.executables += drop.size();
  }
}

absl::StatusOr<Evicted> Cache::Evict(absl::string_view hex_prefix) {
  FUSIOND_RETURN_IF_ERROR(CheckHexPrefix(hex_prefix));
  Evicted evicted;
  FUSIOND_RETURN_IF_ERROR(EvictRequests(hex_prefix, evicted));
  if (!hex_prefix.empty()) return evicted;
  negative_.Clear();
  // The journal before its graphs.
  for (RecordKind kind : {RecordKind::kCanonical, RecordKind::kExecutable, RecordKind::kImage,
                          RecordKind::kJournal, RecordKind::kGraph}) {
    FUSIOND_RETURN_IF_ERROR(EvictLeftOver(kind, evicted));
  }
  return evicted;
}

absl::Status Cache::DropExecutable(const base::Digest& digest) {
  base::MutexLock lock(&commit_mutex_);
  std::vector<RecordKey> keys = OriginsOf(digest);
  keys.push_back(RecordKey::Executable(digest));
  return tiers_.Delete(keys);
}

absl::Status Cache::Compact() { return store_ == nullptr ? absl::OkStatus() : store_->Compact(); }

CacheStats Cache::Stats() const {
  CacheStats stats;
  stats.requests = tiers_.Stats(RecordKind::kRequest);
  stats.canonical = tiers_.Stats(RecordKind::kCanonical);
  stats.images = tiers_.Stats(RecordKind::kImage);
  stats.executables = tiers_.Stats(RecordKind::kExecutable);
  stats.negative_hits = negative_hits_.load(std::memory_order_relaxed);
  stats.negative_entries = negative_.Size();
  stats.commits = commits_.load(std::memory_order_relaxed);
  stats.commits_in_memory_only = commits_in_memory_only_.load(std::memory_order_relaxed);
  stats.pinned_executables = PinnedExecutables();
  stats.requests_kept = tiers_.Requests();
  stats.memory = tiers_.MemoryStats();
  if (store_ != nullptr) {
    stats.store = store_->Stats();
    stats.degraded = Degraded();
  }
  return stats;
}

}  // namespace fusiond::cache
