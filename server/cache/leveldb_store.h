// LevelDbStore: the cache's tier on this machine's disk.
//
// <folder>/lock    held for the life of the store; a second daemon is told so
// <folder>/db      LevelDB: one record per entry
// <folder>/blobs   payloads above kMaxInlinePayloadBytes, one file each
//
// A full or read-only disk never fails a request: the first failed write turns writes off, reads go
// on, and Upkeep tries again with a back-off on the monotonic clock, reopening the data base (a
// failed append may have left half a record in its log). Life of an entry, crash by crash, and the
// states are described in README.md.
//
// Thread-safety: thread-safe. Ownership: `env`, `clock` and whatever `log` captures must outlive
// it.
#ifndef FUSIOND_SERVER_CACHE_LEVELDB_STORE_H_
#define FUSIOND_SERVER_CACHE_LEVELDB_STORE_H_

#include <sys/types.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "leveldb/db.h"
#include "leveldb/env.h"
#include "runtime/base/clock.h"
#include "runtime/base/file.h"
#include "runtime/base/mutex.h"
#include "server/cache/blob_files.h"
#include "server/cache/database.h"
#include "server/cache/record.h"
#include "server/cache/store.h"

namespace fusiond::cache {

struct LevelDbStoreOptions {
  std::string folder;  // made if absent
  bool allow_network_fs = false;
  size_t block_cache_bytes = size_t{32} << 20;
  leveldb::Env* env = leveldb::Env::Default();
  const base::Clock* clock = &base::Clock::System();
  // One line per event worth a log entry: repairs, writes off and on, bad records.
  std::function<void(absl::string_view)> log = [](absl::string_view) {};
};

class LevelDbStore final : public Store {
 public:
  // Takes the folder; opens nothing yet (the first Upkeep does).
  // ALREADY_EXISTS: another daemon owns the folder. FAILED_PRECONDITION: it lies on a network file
  // system and allow_network_fs is not set. A folder that cannot be made or written is no error:
  // the store starts without it and keeps trying.
  static absl::StatusOr<std::unique_ptr<LevelDbStore>> Create(LevelDbStoreOptions options);
  ~LevelDbStore() override;

  StoreStatus Status() const override;
  absl::StatusOr<Record> Get(const RecordKey& key) override;
  bool Contains(const RecordKey& key) override;
  absl::Status Commit(absl::Span<const StoreWrite> writes) override;
  absl::Status Delete(absl::Span<const RecordKey> keys) override;
  absl::StatusOr<std::vector<RecordKey>> Keys(RecordKind kind, absl::string_view prefix,
                                              const std::optional<RecordKey>& after,
                                              size_t limit) override;
  void Upkeep() override;
  absl::Status Compact() override;
  std::optional<uint64_t> Requests() const override;
  StoreStats Stats() const override;

  // Back-off between attempts to take up writing again: doubles from the first to the second.
  static constexpr absl::Duration kFirstRetry = absl::Seconds(1);
  static constexpr absl::Duration kLastRetry = absl::Minutes(1);

 private:
  static constexpr int64_t kUncounted = -1;

  explicit LevelDbStore(LevelDbStoreOptions options);

  // Makes the folders, checks the file system and takes the lock, as far as not done before.
  absl::Status Prepare() ABSL_EXCLUSIVE_LOCKS_REQUIRED(upkeep_mutex_);
  // Opens the data base, or leaves the store unavailable until the next attempt is due.
  void Open() ABSL_EXCLUSIVE_LOCKS_REQUIRED(upkeep_mutex_);
  // Closes the data base once its last user is done with it.
  void Close() ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether the disk takes a write buffer's worth of bytes again.
  absl::Status ProbeDisk() ABSL_EXCLUSIVE_LOCKS_REQUIRED(upkeep_mutex_);
  // Whether the data base that was opened is still found at its path.
  bool DatabaseInPlace() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(upkeep_mutex_);
  // Closes and unlocks what was opened in a folder that somebody has removed or replaced; the next
  // Open takes what is there then.
  void LetGoOfFolder() ABSL_EXCLUSIVE_LOCKS_REQUIRED(upkeep_mutex_);
  // Counts requests once, in a snapshot; from then on the count follows every write.
  void CountRequests() ABSL_EXCLUSIVE_LOCKS_REQUIRED(upkeep_mutex_)
      ABSL_LOCKS_EXCLUDED(write_mutex_, mutex_);
  // How many of `keys` are requests that are stored; each once.
  int64_t StoredRequests(leveldb::DB& db, absl::Span<const RecordKey> keys) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);
  void AddRequests(int64_t more) ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);
  void SyncLog() ABSL_LOCKS_EXCLUDED(write_mutex_, mutex_);
  void SweepOrphans() ABSL_LOCKS_EXCLUDED(write_mutex_, mutex_);

  // The open data base; nullptr when there is none. Holding it keeps it open.
  std::shared_ptr<leveldb::DB> Database() const ABSL_LOCKS_EXCLUDED(mutex_);
  // The data base if writes are on, else UNAVAILABLE with the reason.
  absl::StatusOr<std::shared_ptr<leveldb::DB>> WritableDatabase() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Turns writes off (`state` kReadOnly) or all off (kUnavailable) until a retry is due; returns
  // the status for the caller.
  absl::Status Degrade(StoreState state, absl::string_view reason) ABSL_LOCKS_EXCLUDED(mutex_);
  // The same for a failed write of the data base, which may have met damage.
  absl::Status WriteFailed(const leveldb::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);
  // Counts, logs and deletes a damaged entry; returns DATA_LOSS.
  absl::Status BadRecord(const RecordKey& key, absl::string_view what)
      ABSL_LOCKS_EXCLUDED(write_mutex_, mutex_);

  // What the entry's record says about its blob: nothing when it is absent, damaged or has none.
  // UNAVAILABLE: could not be read.
  absl::StatusOr<std::optional<BlobReference>> BlobOf(leveldb::DB& db, const RecordKey& key) const;

  const LevelDbStoreOptions options_;
  BlobFiles blobs_;
  DatabaseOpener opener_;

  // Taken in this order.
  base::Mutex upkeep_mutex_;                                    // one Upkeep at a time
  base::Mutex write_mutex_ ABSL_ACQUIRED_AFTER(upkeep_mutex_);  // blob and record as one step
  mutable base::Mutex mutex_ ABSL_ACQUIRED_AFTER(write_mutex_);

  base::UniqueFd lock_ ABSL_GUARDED_BY(upkeep_mutex_);
  ino_t db_inode_ ABSL_GUARDED_BY(upkeep_mutex_) = 0;  // of its folder; 0: not open
  bool swept_ ABSL_GUARDED_BY(upkeep_mutex_) = false;
  bool unsynced_ ABSL_GUARDED_BY(write_mutex_) = false;
  std::optional<int64_t> counted_ ABSL_GUARDED_BY(write_mutex_);  // requests, in the snapshot
  int64_t since_counted_ ABSL_GUARDED_BY(write_mutex_) = 0;       // come, less gone, since then

  StoreState state_ ABSL_GUARDED_BY(mutex_) = StoreState::kOpening;
  std::string detail_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<leveldb::DB> db_ ABSL_GUARDED_BY(mutex_);
  bool db_exists_ ABSL_GUARDED_BY(mutex_) = false;  // until the last user has let go of it
  base::CondVar db_gone_;                           // db_exists_ became false
  bool damaged_ ABSL_GUARDED_BY(mutex_) = false;    // repair before the next opening
  absl::Duration next_retry_ ABSL_GUARDED_BY(mutex_);
  absl::Duration retry_delay_ ABSL_GUARDED_BY(mutex_) = kFirstRetry;

  // Relaxed: tallies that nothing is ordered by.
  std::atomic<uint64_t> bad_records_{0};
  std::atomic<uint64_t> disk_failures_{0};
  std::atomic<uint64_t> recoveries_{0};
  std::atomic<uint64_t> repairs_{0};
  std::atomic<uint64_t> moved_aside_{0};
  std::atomic<uint64_t> replaced_{0};
  std::atomic<int64_t> requests_{kUncounted};  // counted_ and since_counted_, for readers
  std::atomic<uint64_t> orphaned_files_{0};
};

}  // namespace fusiond::cache

#endif  // FUSIOND_SERVER_CACHE_LEVELDB_STORE_H_
