#include "server/cache/cache.h"

#include <algorithm>
#include <utility>

#include "runtime/base/status_macros.h"

namespace fusiond::cache {
namespace {

constexpr absl::Duration kUpkeepInterval = absl::Seconds(1);
constexpr absl::Duration kJournalInterval = absl::Seconds(30);

void Count(std::atomic<uint64_t>& tally) { tally.fetch_add(1, std::memory_order_relaxed); }

// The payload, kept alive by its record.
std::shared_ptr<const std::string> PayloadOf(std::shared_ptr<const Record> record) {
  const std::string* payload = &record->payload;
  return {std::move(record), payload};
}

NewRecord Make(const RecordKey& key, std::string material, std::string payload) {
  return {key, std::make_shared<Record>(Record{std::move(material), std::move(payload)})};
}

}  // namespace

Cache::Cache(const CacheOptions& options, std::unique_ptr<Store> store, const base::Clock& clock)
    : options_(options),
      clock_(clock),
      store_(std::move(store)),
      tiers_(options.memory_bytes, store_.get()),
      negative_(options.negative_ttl, clock),
      journal_(store_.get()) {
  if (store_ == nullptr) {
    opened_ = true;
  } else {
    upkeep_ = std::thread(&Cache::Run, this);
  }
}

Cache::~Cache() {
  {
    base::MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.SignalAll();
  }
  if (upkeep_.joinable()) upkeep_.join();
  base::MutexLock lock(&commit_mutex_);
  journal_.Flush(absl::ToUnixSeconds(absl::Now()));
}

bool Cache::WaitUntilOpen(absl::Duration timeout) {
  const base::Clock& clock = base::Clock::System();
  const absl::Duration deadline = clock.Now() + timeout;
  base::MutexLock lock(&mutex_);
  while (!opened_) {
    const absl::Duration left = deadline - clock.Now();
    if (left <= absl::ZeroDuration()) return false;
    changed_.WaitWithTimeout(&mutex_, left);
  }
  return true;
}

RequestLookup Cache::Lookup(const EncodedRequest& request) {
  RequestLookup lookup;
  lookup.key = request.key;
  if (std::optional<absl::Status> failure = negative_.Find(lookup.key)) {
    Count(negative_hits_);
    lookup.state = LookupState::kNegative;
    lookup.failure = *std::move(failure);
    return lookup;
  }
  const RecordKey key = RecordKey::Of(lookup.key);
  TakeFound(tiers_.Find(key, &request.material), key, lookup);
  if (lookup.state == LookupState::kHit) journal_.NoteHit(request.graph, lookup.key);
  return lookup;
}

RequestLookup Cache::PeekRequest(const EncodedRequest& request) {
  RequestLookup lookup;
  lookup.key = request.key;
  const RecordKey key = RecordKey::Of(lookup.key);
  TakeFound(tiers_.Peek(key, &request.material), key, lookup);
  return lookup;
}

void Cache::TakeFound(const Tiers::Found& found, const RecordKey& key, RequestLookup& lookup) {
  if (found.record == nullptr) {
    if (found.reason == MissReason::kPending) lookup.state = LookupState::kPending;
    return;
  }
  std::optional<RequestEntry> entry = Decode(key, *found.record);
  if (!entry.has_value()) return;
  lookup.state = LookupState::kHit;
  lookup.tier = found.tier;
  lookup.entry = *std::move(entry);
}

std::optional<RequestEntry> Cache::Decode(const RecordKey& key, const Record& record) {
  absl::StatusOr<RequestEntry> entry = DecodeRequestEntry(record.payload);
  if (entry.ok()) return *std::move(entry);
  tiers_.ReportBad(key);
  return std::nullopt;
}

std::optional<Hit<base::Digest>> Cache::FindCanonical(const KeyMaterial& canonical) {
  const std::string material = EncodeCanonicalMaterial(canonical);
  const RecordKey key = RecordKey::Of(CanonicalKey{base::Sha256(material)});
  Tiers::Found found = tiers_.Find(key, &material);
  if (found.record == nullptr) return std::nullopt;
  absl::StatusOr<base::Digest> digest = base::DigestFromBytes(found.record->payload);
  if (!digest.ok()) {
    tiers_.ReportBad(key);
    return std::nullopt;
  }
  return Hit<base::Digest>{*digest, found.tier};
}

std::optional<Hit<std::shared_ptr<const std::string>>> Cache::FindImage(
    const ImageKeyMaterial& image) {
  const std::string material = EncodeImageMaterial(image);
  Tiers::Found found = tiers_.Find(RecordKey::Of(ImageKey{base::Sha256(material)}), &material);
  if (found.record == nullptr) return std::nullopt;
  return Hit<std::shared_ptr<const std::string>>{PayloadOf(std::move(found.record)), found.tier};
}

std::optional<Hit<std::shared_ptr<const std::string>>> Cache::FindExecutable(
    const base::Digest& digest) {
  Tiers::Found found = tiers_.Find(RecordKey::Executable(digest), nullptr);
  if (found.record == nullptr) return std::nullopt;
  return Hit<std::shared_ptr<const std::string>>{PayloadOf(std::move(found.record)), found.tier};
}

Committed Cache::Commit(const RequestBinding& request, const NewExecutable& compiled) {
  std::vector<NewRecord> batch;
  ExecutableOrigin origin;
  for (const NewImage& image : compiled.images) {
    std::string material = EncodeImageMaterial(image.material);
    const ImageKey key{base::Sha256(material)};
    origin.images.push_back(key);
    batch.push_back(Make(RecordKey::Of(key), std::move(material), image.image));
  }
  origin.images.insert(origin.images.end(), compiled.reused_images.begin(),
                       compiled.reused_images.end());
  const base::Digest digest = base::Sha256(compiled.bytes);
  std::string canonical = EncodeCanonicalMaterial(compiled.canonical);
  origin.canonical = CanonicalKey{base::Sha256(canonical)};
  batch.push_back(Make(RecordKey::Executable(digest), Encode(origin), compiled.bytes));
  batch.push_back(
      Make(RecordKey::Of(origin.canonical), std::move(canonical), std::string(digest.View())));
  return CommitBatch(request, digest, compiled.bytes.size(), std::move(batch));
}

absl::StatusOr<Committed> Cache::Link(const RequestBinding& request,
                                      const base::Digest& executable) {
  Tiers::Found found = tiers_.Peek(RecordKey::Executable(executable));
  if (found.record == nullptr) {
    return absl::NotFoundError("executable " + executable.Hex() + " is not in the cache");
  }
  return CommitBatch(request, executable, found.record->payload.size(), {});
}

Committed Cache::CommitBatch(const RequestBinding& request, const base::Digest& executable,
                             uint64_t executable_bytes, std::vector<NewRecord> batch) {
  std::string material = EncodeRequestMaterial(request.material);
  const RequestKey key{base::Sha256(material)};
  const int64_t now_unix_s = absl::ToUnixSeconds(absl::Now());
  Committed committed{executable};
  {
    base::MutexLock lock(&commit_mutex_);
    RequestEntry entry;
    if (Tiers::Found found = tiers_.Peek(RecordKey::Of(key), &material); found.record != nullptr) {
      entry = DecodeRequestEntry(found.record->payload).value_or(RequestEntry{});
    }
    entry.Put({request.guards, executable, executable_bytes, now_unix_s}, request.position);
    committed.revision = entry.revision;
    for (NewRecord& record :
         journal_.RecordsFor(request.material.graph, key, material, request.graph)) {
      batch.push_back(std::move(record));
    }
    batch.push_back(Make(RecordKey::Of(key), std::move(material), Encode(entry)));
    committed.persisted = tiers_.Put(batch);
  }
  journal_.NoteHit(request.material.graph, key);
  negative_.Remove(key);
  Count(commits_);
  if (!committed.persisted) Count(commits_in_memory_only_);
  return committed;
}

bool Cache::AddNegative(const RequestKey& key, const absl::Status& failure) {
  return negative_.Add(key, failure);
}

void Cache::Upkeep() {
  if (store_ == nullptr) return;
  base::MutexLock lock(&upkeep_mutex_);
  store_->Upkeep();
  const StoreStatus status = store_->Status();
  const StoreState state = status.state;
  if (std::exchange(losses_, status.losses) != status.losses) tiers_.StoreLostAll();
  if (state != StoreState::kOpening) {
    base::MutexLock opened_lock(&mutex_);
    if (!opened_) changed_.SignalAll();
    opened_ = true;
  }
  if (state != StoreState::kReady) return;
  const absl::Duration now = clock_.Now();
  if (now >= next_flush_) {
    base::MutexLock commit_lock(&commit_mutex_);
    journal_.Flush(absl::ToUnixSeconds(absl::Now()));
    next_flush_ = now + kJournalInterval;
  }
}

void Cache::Run() {
  while (true) {
    Upkeep();
    base::MutexLock lock(&mutex_);
    if (!stopping_) changed_.WaitWithTimeout(&mutex_, kUpkeepInterval);
    if (stopping_) return;
  }
}

}  // namespace fusiond::cache
