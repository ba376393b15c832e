// Cache: what fusiond has compiled, from request to executable.
//
//   request key ─► ordered list of (guards → executable digest), with a revision
//   canonical key ─► executable digest          image key ─► kernel image
//   executable digest ─► executable             request key ─► how often asked for (journal)
//
// Two tiers: memory, then a Store. No failure of the store reaches a client: a damaged entry is a
// counted miss and is deleted, and with the store away everything is kept in memory and
// Stats().degraded says why. Executables, images, guards and graphs are opaque bytes here.
// README.md tells the life of a request; FORMAT.md has the byte formats.
//
// Thread-safety: thread-safe. With a store, one thread of its own does Upkeep().
// Ownership: the store is the cache's; `clock` must outlive it; Pins may outlive it.
// Cost: a hit in memory is one shard's lock, and a hash of the key material if that is not at hand;
// everything else may read or write the disk.
#ifndef FUSIOND_SERVER_CACHE_CACHE_H_
#define FUSIOND_SERVER_CACHE_CACHE_H_

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "runtime/base/clock.h"
#include "runtime/base/mutex.h"
#include "runtime/base/sha256.h"
#include "server/cache/cache_types.h"
#include "server/cache/journal.h"
#include "server/cache/keys.h"
#include "server/cache/negative_entries.h"
#include "server/cache/pins.h"
#include "server/cache/record.h"
#include "server/cache/store.h"
#include "server/cache/tiers.h"

namespace fusiond::cache {

class Cache {
 public:
  // `store` may be null: memory only, by choice.
  Cache(const CacheOptions& options, std::unique_ptr<Store> store,
        const base::Clock& clock = base::Clock::System());
  // Writes the journal's counts and closes the store.
  ~Cache();
  Cache(const Cache&) = delete;
  Cache& operator=(const Cache&) = delete;

  // Waits until the store has been opened or has refused to. False when `timeout` passed first.
  bool WaitUntilOpen(absl::Duration timeout);

  // ---- The life of a request ----

  // A hit counts in the journal.
  RequestLookup Lookup(const EncodedRequest& request);
  RequestLookup Lookup(const KeyMaterial& request) { return Lookup(EncodeRequest(request)); }
  // The same for whoever only wants to know: counts nowhere, and known failures are not looked at.
  RequestLookup PeekRequest(const EncodedRequest& request);
  // The executable that some compile made of the same canonical graph.
  std::optional<Hit<base::Digest>> FindCanonical(const KeyMaterial& canonical);
  std::optional<Hit<std::shared_ptr<const std::string>>> FindImage(
      const ImageKeyMaterial& material);
  // Bytes that have that digest. May be absent although a request or canonical entry names it
  // (evicted, damaged, lost with the power): then it is a miss, to be compiled.
  std::optional<Hit<std::shared_ptr<const std::string>>> FindExecutable(const base::Digest& digest);

  // Records a compile in one batch: images, executable, canonical entry, request entry, journal.
  // Never fails: what the disk does not take is kept in memory.
  Committed Commit(const RequestBinding& request, const NewExecutable& compiled);
  // Records that an executable found by its canonical key answers `request` too. NOT_FOUND: it has
  // gone meanwhile.
  absl::StatusOr<Committed> Link(const RequestBinding& request, const base::Digest& executable);
  // Keeps the failure for CacheOptions::negative_ttl if it is of a kind that the request itself
  // decides (negative_entries.h), and returns whether it is. A compile error that may have been a
  // lack of memory must come as RESOURCE_EXHAUSTED.
  bool AddNegative(const RequestKey& key, const absl::Status& failure);

  // Marks the executable as leased: Evict passes over it as long as the Pin lives.
  Pins::Pin Pin(const base::Digest& executable) { return pins_->Add(executable); }

  // ---- Administration ----

  // What is known of one request, by its key alone.
  std::optional<RequestInfo> FindRequest(const RequestKey& key);
  // The source text and options that an image was compiled from.
  std::optional<ImageKeyMaterial> FindImageMaterial(const ImageKey& key);
  // The graph with that hash as some client sent it. Of the store alone.
  std::optional<std::string> FindGraph(const base::Digest& hash);

  // Requests in the order of their keys above `after`, at most `limit` (and kMaxPage) a page.
  static constexpr size_t kMaxPage = 1000;
  absl::StatusOr<RequestPage> List(const std::optional<RequestKey>& after, size_t limit);
  // Journalled requests, those of one graph together; of the store alone.
  absl::StatusOr<JournalPage> ListJournal(const std::optional<RecordKey>& after, size_t limit);
  // Why a request hits or misses. Counts nowhere.
  Explanation Explain(const KeyMaterial& request);

  // The one request whose key's hex starts with `hex_prefix`. NOT_FOUND: none does.
  // INVALID_ARGUMENT: several do (two are named), or as Evict.
  absl::StatusOr<RequestKey> Resolve(absl::string_view hex_prefix);

  // Drops the requests whose key's hex starts with `hex_prefix`, and what they were built from
  // (executables, canonical entries, images, journal), so that the next compile builds all anew. An
  // empty prefix drops everything. Requests with a leased executable stay. INVALID_ARGUMENT: not
  // lower-case hex digits, or more than 64. UNAVAILABLE: the store takes no deletions now; what
  // it has not taken stays.
  absl::StatusOr<Evicted> Evict(absl::string_view hex_prefix);
  // Drops one executable, leased or not, with its canonical entry and images, because it turned out
  // to be unusable (refused by a driver, say). Requests that name it miss from now on.
  absl::Status DropExecutable(const base::Digest& digest);
  // Gives the space of what was dropped back to the file system; blocks for as long as that takes.
  absl::Status Compact();

  // Cost: lists the store's folders.
  CacheStats Stats() const;
  // What is wrong now, as CacheStats::degraded. Cheap.
  std::string Degraded() const { return store_ == nullptr ? "" : store_->Status().detail; }
  // Of damaged logs, lost since the start. Cheap.
  uint64_t DroppedBytes() const { return store_ == nullptr ? 0 : store_->Status().dropped_bytes; }
  // How many executables are leased. Cheap.
  size_t PinnedExecutables() const { return pins_->Size(); }

  // Whatever is due: the store's upkeep, the journal's counts. The cache's own thread calls it
  // about once a second; a test calls it when it likes.
  void Upkeep();

 private:
  // Adds the request's own records to `batch` and writes it.
  Committed CommitBatch(const RequestBinding& request, const base::Digest& executable,
                        uint64_t executable_bytes, std::vector<NewRecord> batch)
      ABSL_LOCKS_EXCLUDED(commit_mutex_);
  // A request record, as found, into the answer of a look-up.
  void TakeFound(const Tiers::Found& found, const RecordKey& key, RequestLookup& lookup);
  // The request's entry, decoded; counts and drops it if it does not decode.
  std::optional<RequestEntry> Decode(const RecordKey& key, const Record& record);

  JournalEntry ReadJournal(const base::Digest& graph, const RequestKey& key)
      ABSL_LOCKS_EXCLUDED(commit_mutex_);
  bool Pinned(const RequestEntry& entry) const;
  // The records that an executable was made from: its canonical entry and images.
  std::vector<RecordKey> OriginsOf(const base::Digest& executable);
  // Adds what goes with the request to `keys`, or counts it as pinned.
  void CollectRequest(const RequestKey& key, std::vector<RecordKey>& keys, Evicted& evicted)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(commit_mutex_);
  bool Unused(const RecordKey& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(commit_mutex_);
  absl::Status EvictLeftOver(RecordKind kind, Evicted& evicted) ABSL_LOCKS_EXCLUDED(commit_mutex_);
  absl::Status EvictRequests(absl::string_view hex_prefix, Evicted& evicted)
      ABSL_LOCKS_EXCLUDED(commit_mutex_);
  std::vector<Neighbour> NeighboursOf(const KeyMaterial& request, const RequestKey& key);

  void Run();

  const CacheOptions options_;
  const base::Clock& clock_;
  const std::unique_ptr<Store> store_;
  const std::shared_ptr<Pins> pins_ = std::make_shared<Pins>();
  Tiers tiers_;
  NegativeEntries negative_;
  Journal journal_;

  // Serialises what reads entries and then writes them: commits, evictions, the journal's flush.
  base::Mutex commit_mutex_;

  base::Mutex upkeep_mutex_ ABSL_ACQUIRED_BEFORE(commit_mutex_);
  absl::Duration next_flush_ ABSL_GUARDED_BY(upkeep_mutex_);
  uint64_t losses_ ABSL_GUARDED_BY(upkeep_mutex_) = 0;  // StoreStatus::losses, as told to tiers_

  mutable base::Mutex mutex_;
  base::CondVar changed_;  // opened_ or stopping_
  bool opened_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;

  // Relaxed: tallies that nothing is ordered by.
  std::atomic<uint64_t> negative_hits_{0};
  std::atomic<uint64_t> commits_{0};
  std::atomic<uint64_t> commits_in_memory_only_{0};

  std::thread upkeep_;  // last: runs Run()
};

}  // namespace fusiond::cache

#endif  // FUSIOND_SERVER_CACHE_CACHE_H_
