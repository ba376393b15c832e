// LevelDbStore: opening, failing and recovering.
#include <sys/stat.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "leveldb/iterator.h"
#include "leveldb/write_batch.h"
#include "runtime/base/status_macros.h"
#include "server/cache/leveldb_store.h"
#include "server/cache/state_folder.h"

namespace fusiond::cache {
namespace {

constexpr size_t kProbeBytes = size_t{8} << 20;  // what opening may have to write: a write buffer

ino_t InodeOf(const std::string& path) {
  struct stat info;
  return ::stat(path.c_str(), &info) == 0 ? info.st_ino : 0;
}

}  // namespace

absl::Status LevelDbStore::Prepare() {
  FUSIOND_RETURN_IF_ERROR(base::MakeFolders(blobs_.folder()));
  if (!options_.allow_network_fs) FUSIOND_RETURN_IF_ERROR(CheckFileSystem(options_.folder));
  if (!lock_.valid()) {
    FUSIOND_ASSIGN_OR_RETURN(lock_, LockFolder(options_.folder));
  }
  return absl::OkStatus();
}

absl::Status LevelDbStore::Degrade(StoreState state, absl::string_view reason) {
  std::string detail;
  {
    base::MutexLock lock(&mutex_);
    state_ = state;
    detail_ = detail = absl::StrCat(
        state == StoreState::kReadOnly ? "cache writes are off: " : "cache is in memory only: ",
        reason, "; next attempt in ", absl::FormatDuration(retry_delay_));
    next_retry_ = options_.clock->Now() + retry_delay_;
    retry_delay_ = std::min(2 * retry_delay_, kLastRetry);
  }
  disk_failures_.fetch_add(1, std::memory_order_relaxed);
  options_.log(detail);
  return absl::UnavailableError(detail);
}

absl::Status LevelDbStore::WriteFailed(const leveldb::Status& status) {
  if (IsDamage(status)) {
    base::MutexLock lock(&mutex_);
    damaged_ = true;
  }
  return Degrade(StoreState::kReadOnly, status.ToString());
}

bool LevelDbStore::DatabaseInPlace() const {
  const std::string db = options_.folder + "/db";
  struct stat current;
  return db_inode_ == 0 ||
         (InodeOf(db) == db_inode_ && ::stat((db + "/CURRENT").c_str(), &current) == 0);
}

void LevelDbStore::LetGoOfFolder() {
  const bool lost = !DatabaseInPlace();
  const std::string text = absl::StrCat(options_.folder, " was removed or replaced");
  options_.log(absl::StrCat("cache: ", text, lost ? "; what it held is gone" : " in part"));
  if (lost) replaced_.fetch_add(1, std::memory_order_relaxed);
  lock_.reset();
  db_inode_ = 0;
  {
    base::MutexLock lock(&mutex_);
    state_ = StoreState::kUnavailable;
    detail_ = absl::StrCat("cache is in memory only: ", text);
    next_retry_ = options_.clock->Now();
  }
  Close();
}

void LevelDbStore::CountRequests() {
  std::shared_ptr<leveldb::DB> db;
  const leveldb::Snapshot* snapshot;
  {
    base::MutexLock lock(&write_mutex_);
    if (counted_.has_value()) return;
    db = Database();
    if (db == nullptr) return;
    snapshot = db->GetSnapshot();
    since_counted_ = 0;
  }
  const char kind = static_cast<char>(RecordKind::kRequest);
  leveldb::ReadOptions options;
  options.fill_cache = false;
  options.snapshot = snapshot;
  int64_t count = 0;
  {
    std::unique_ptr<leveldb::Iterator> at(db->NewIterator(options));
    for (at->Seek(std::string(1, kind)); at->Valid() && at->key()[0] == kind; at->Next()) ++count;
  }
  db->ReleaseSnapshot(snapshot);
  base::MutexLock lock(&write_mutex_);
  counted_ = count;
  AddRequests(0);
}

void LevelDbStore::Upkeep() {
  base::MutexLock lock(&upkeep_mutex_);
  if (lock_.valid() && !(HoldsFolder(lock_, options_.folder) && DatabaseInPlace())) LetGoOfFolder();
  StoreState state;
  bool due;
  {
    base::MutexLock state_lock(&mutex_);
    state = state_;
    due = options_.clock->Now() >= next_retry_;
  }
  if (state == StoreState::kReady) {
    SyncLog();
    if (!swept_) SweepOrphans();
    swept_ = true;
  } else if (state == StoreState::kOpening || due) {
    Open();
  }
  CountRequests();
}

void LevelDbStore::Open() {
  absl::Status prepared = Prepare();
  if (prepared.ok() && Database() != nullptr) prepared = ProbeDisk();
  if (!prepared.ok()) {
    // An open data base goes on answering reads.
    Degrade(Database() != nullptr ? StoreState::kReadOnly : StoreState::kUnavailable,
            prepared.message())
        .IgnoreError();
    return;
  }
  Close();
  bool repair_first;
  bool reopened;
  {
    base::MutexLock lock(&mutex_);
    repair_first = damaged_;
    reopened = state_ != StoreState::kOpening;
  }
  absl::StatusOr<DatabaseOpener::Opened> opened = opener_.Open(repair_first);
  if (!opened.ok()) {
    Degrade(StoreState::kUnavailable, opened.status().message()).IgnoreError();
    return;
  }
  repairs_.fetch_add(opened->repaired, std::memory_order_relaxed);
  moved_aside_.fetch_add(opened->moved_aside, std::memory_order_relaxed);
  recoveries_.fetch_add(reopened, std::memory_order_relaxed);
  if (reopened) options_.log("cache: writes are on again");
  {
    base::MutexLock write_lock(&write_mutex_);
    counted_.reset();
    requests_.store(kUncounted, std::memory_order_relaxed);
  }
  db_inode_ = InodeOf(options_.folder + "/db");
  base::MutexLock lock(&mutex_);
  db_ = std::shared_ptr<leveldb::DB>(opened->db.release(), [this](leveldb::DB* db) {
    delete db;
    base::MutexLock gone_lock(&mutex_);
    db_exists_ = false;
    db_gone_.SignalAll();
  });
  db_exists_ = true;
  damaged_ = false;
  state_ = StoreState::kReady;
  detail_.clear();
  retry_delay_ = kFirstRetry;
}

void LevelDbStore::Close() {
  std::shared_ptr<leveldb::DB> mine;  // destroyed without the lock, which the deleter takes
  {
    base::MutexLock lock(&mutex_);
    mine.swap(db_);
  }
  mine.reset();
  base::MutexLock lock(&mutex_);
  while (db_exists_) db_gone_.Wait(&mutex_);
}

absl::Status LevelDbStore::ProbeDisk() {
  const std::string path = options_.folder + "/probe";
  leveldb::WritableFile* opened = nullptr;
  leveldb::Status status = options_.env->NewWritableFile(path, &opened);
  std::unique_ptr<leveldb::WritableFile> file(opened);
  if (status.ok()) status = file->Append(std::string(kProbeBytes, '\0'));
  if (status.ok()) status = file->Sync();
  if (status.ok()) status = file->Close();
  file.reset();
  leveldb::Status removed = options_.env->RemoveFile(path);
  if (status.ok()) status = removed;
  return status.ok() ? absl::OkStatus() : absl::UnavailableError(status.ToString());
}

void LevelDbStore::SyncLog() {
  {
    base::MutexLock lock(&write_mutex_);
    if (!unsynced_) return;
    unsynced_ = false;
  }
  absl::StatusOr<std::shared_ptr<leveldb::DB>> db = WritableDatabase();
  if (!db.ok()) return;
  leveldb::WriteOptions options;
  options.sync = true;
  leveldb::WriteBatch nothing;  // syncing one batch syncs the log before it
  leveldb::Status status = (*db)->Write(options, &nothing);
  if (!status.ok()) WriteFailed(status).IgnoreError();
}

void LevelDbStore::SweepOrphans() {
  absl::StatusOr<std::vector<std::string>> names = blobs_.Names();
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    // One lock a file: nobody is between a file and its record, and commits wait for one look-up.
    base::MutexLock lock(&write_mutex_);
    absl::StatusOr<std::shared_ptr<leveldb::DB>> db = WritableDatabase();
    if (!db.ok()) return;
    std::optional<BlobFiles::ParsedName> parsed = BlobFiles::Parse(name);
    if (parsed.has_value()) {
      absl::StatusOr<std::optional<BlobReference>> blob = BlobOf(**db, parsed->key);
      if (!blob.ok() || (blob->has_value() && (*blob)->digest == parsed->digest)) continue;
    }
    blobs_.RemoveName(name);
    orphaned_files_.fetch_add(1, std::memory_order_relaxed);
  }
}

}  // namespace fusiond::cache
