#include "server/cache/leveldb_store.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "leveldb/iterator.h"
#include "leveldb/write_batch.h"
#include "runtime/base/status_macros.h"
#include "server/cache/state_folder.h"

namespace fusiond::cache {
namespace {

leveldb::Slice SliceOf(absl::string_view view) { return {view.data(), view.size()}; }
absl::string_view ViewOf(const leveldb::Slice& slice) { return {slice.data(), slice.size()}; }

void Count(std::atomic<uint64_t>& tally, uint64_t n = 1) {
  tally.fetch_add(n, std::memory_order_relaxed);
}

// Each once.
std::vector<RecordKey> RequestsAmong(absl::Span<const RecordKey> keys) {
  std::vector<RecordKey> requests;
  for (const RecordKey& key : keys) {
    if (key.kind() == RecordKind::kRequest &&
        std::find(requests.begin(), requests.end(), key) == requests.end()) {
      requests.push_back(key);
    }
  }
  return requests;
}

leveldb::ReadOptions CheckedRead() {
  leveldb::ReadOptions options;
  options.verify_checksums = true;
  return options;
}

}  // namespace

LevelDbStore::LevelDbStore(LevelDbStoreOptions options)
    : options_(std::move(options)),
      blobs_(options_.folder + "/blobs"),
      opener_(options_.folder + "/db", options_.block_cache_bytes, options_.env, options_.log) {}

absl::StatusOr<std::unique_ptr<LevelDbStore>> LevelDbStore::Create(LevelDbStoreOptions options) {
  std::unique_ptr<LevelDbStore> store(new LevelDbStore(std::move(options)));
  base::MutexLock lock(&store->upkeep_mutex_);
  if (absl::Status made = base::MakeFolders(store->options_.folder); made.ok()) {
    if (!store->options_.allow_network_fs) {
      // A folder that cannot be looked at is one that cannot be used yet: Prepare says so.
      const absl::Status reliable = CheckFileSystem(store->options_.folder);
      if (absl::IsFailedPrecondition(reliable)) return reliable;
    }
    absl::Status prepared = store->Prepare();
    if (absl::IsAlreadyExists(prepared)) return prepared;
  }
  return store;
}

LevelDbStore::~LevelDbStore() {
  SyncLog();
  Close();
}

StoreStatus LevelDbStore::Status() const {
  const uint64_t losses =
      moved_aside_.load(std::memory_order_relaxed) + replaced_.load(std::memory_order_relaxed);
  base::MutexLock lock(&mutex_);
  return {state_, detail_, losses, opener_.dropped_bytes()};
}

std::shared_ptr<leveldb::DB> LevelDbStore::Database() const {
  base::MutexLock lock(&mutex_);
  return db_;
}

absl::StatusOr<std::shared_ptr<leveldb::DB>> LevelDbStore::WritableDatabase() const {
  base::MutexLock lock(&mutex_);
  if (state_ == StoreState::kReady) return db_;
  return absl::UnavailableError(state_ == StoreState::kOpening ? "cache is opening" : detail_);
}

absl::StatusOr<Record> LevelDbStore::Get(const RecordKey& key) {
  std::shared_ptr<leveldb::DB> db = Database();
  if (db == nullptr) return absl::UnavailableError("cache: the data base is not open");
  std::string value;
  leveldb::Status status = db->Get(CheckedRead(), SliceOf(key.bytes()), &value);
  if (status.IsNotFound()) return absl::NotFoundError("cache: no such entry");
  if (IsDamage(status)) return BadRecord(key, status.ToString());
  if (!status.ok()) return absl::UnavailableError(status.ToString());
  absl::StatusOr<RecordView> view = DecodeRecord(value);
  if (!view.ok()) return BadRecord(key, view.status().message());
  if (view->kind != key.kind()) {
    return BadRecord(key, absl::StrCat("holds a record of kind ", Name(view->kind)));
  }
  Record record{std::string(view->material), std::string(view->payload)};
  if (view->blob.has_value()) {
    absl::StatusOr<std::string> payload = blobs_.Read(key, *view->blob);
    if (absl::IsDataLoss(payload.status())) return BadRecord(key, payload.status().message());
    if (!payload.ok()) return absl::UnavailableError(payload.status().message());
    record.payload = *std::move(payload);
  }
  return record;
}

bool LevelDbStore::Contains(const RecordKey& key) {
  std::shared_ptr<leveldb::DB> db = Database();
  std::string value;
  if (db == nullptr || !db->Get(CheckedRead(), SliceOf(key.bytes()), &value).ok()) return false;
  absl::StatusOr<RecordView> view = DecodeRecord(value);
  return view.ok() && view->kind == key.kind() &&
         (!view->blob.has_value() || blobs_.Exists(key, *view->blob));
}

absl::Status LevelDbStore::BadRecord(const RecordKey& key, absl::string_view what) {
  Count(bad_records_);
  std::string text =
      absl::StrCat("cache: bad ", Name(key.kind()), " entry ", key.first().Hex(), ": ", what);
  options_.log(text);
  // With writes off it stays, and is met and counted again.
  absl::Status deleted = Delete({&key, 1});
  if (!deleted.ok()) absl::StrAppend(&text, "; not deleted: ", deleted.message());
  return absl::DataLossError(text);
}

absl::Status LevelDbStore::Commit(absl::Span<const StoreWrite> writes) {
  for (const StoreWrite& write : writes) {
    if (write.payload.size() > kMaxPayloadBytes) {
      return absl::ResourceExhaustedError(
          absl::StrCat("cache: limit of a payload is ", kMaxPayloadBytes, " bytes, this ",
                       Name(write.key.kind()), " has ", write.payload.size()));
    }
  }
  base::MutexLock lock(&write_mutex_);
  FUSIOND_ASSIGN_OR_RETURN(std::shared_ptr<leveldb::DB> db, WritableDatabase());
  leveldb::WriteBatch batch;
  std::vector<RecordKey> keys;
  for (const StoreWrite& write : writes) {
    keys.push_back(write.key);
    std::string record;
    if (write.payload.size() <= kMaxInlinePayloadBytes) {
      record = EncodeRecord(write.key.kind(), write.material, write.payload);
    } else {
      const BlobReference blob{base::Sha256(write.payload), write.payload.size()};
      if (absl::Status status = blobs_.Write(write.key, blob, write.payload); !status.ok()) {
        return Degrade(StoreState::kReadOnly, status.message());
      }
      record = EncodeRecord(write.key.kind(), write.material, blob);
    }
    batch.Put(SliceOf(write.key.bytes()), SliceOf(record));
  }
  const int64_t before = StoredRequests(*db, keys);
  leveldb::Status status = db->Write(leveldb::WriteOptions(), &batch);
  if (!status.ok()) return WriteFailed(status);
  unsynced_ = true;
  AddRequests(static_cast<int64_t>(RequestsAmong(keys).size()) - before);
  return absl::OkStatus();
}

absl::Status LevelDbStore::Delete(absl::Span<const RecordKey> keys) {
  base::MutexLock lock(&write_mutex_);
  FUSIOND_ASSIGN_OR_RETURN(std::shared_ptr<leveldb::DB> db, WritableDatabase());
  leveldb::WriteBatch batch;
  std::vector<std::pair<RecordKey, BlobReference>> files;
  for (const RecordKey& key : keys) {
    // Where the record cannot be read now, a sweep finds the file later.
    absl::StatusOr<std::optional<BlobReference>> blob = BlobOf(*db, key);
    if (blob.ok() && blob->has_value()) files.emplace_back(key, **blob);
    batch.Delete(SliceOf(key.bytes()));
  }
  const int64_t before = StoredRequests(*db, keys);
  leveldb::Status status = db->Write(leveldb::WriteOptions(), &batch);
  if (!status.ok()) return WriteFailed(status);
  unsynced_ = true;
  AddRequests(-before);
  for (const auto& [key, blob] : files) blobs_.Remove(key, blob);
  return absl::OkStatus();
}

absl::StatusOr<std::optional<BlobReference>> LevelDbStore::BlobOf(leveldb::DB& db,
                                                                  const RecordKey& key) const {
  std::string value;
  leveldb::Status status = db.Get(CheckedRead(), SliceOf(key.bytes()), &value);
  if (status.IsNotFound()) return std::nullopt;
  if (!status.ok()) return absl::UnavailableError(status.ToString());
  absl::StatusOr<RecordView> view = DecodeRecord(value);
  if (!view.ok()) return std::nullopt;
  return view->blob;
}

absl::StatusOr<std::vector<RecordKey>> LevelDbStore::Keys(RecordKind kind, absl::string_view prefix,
                                                          const std::optional<RecordKey>& after,
                                                          size_t limit) {
  std::shared_ptr<leveldb::DB> db = Database();
  if (db == nullptr) return absl::UnavailableError("cache: the data base is not open");
  const std::string start = absl::StrCat(std::string(1, static_cast<char>(kind)), prefix);
  // Above a key is at it or beyond, plus a byte.
  const std::string from =
      std::max(start, after.has_value() ? after->bytes() + '\0' : std::string());
  leveldb::ReadOptions options = CheckedRead();
  options.fill_cache = false;
  std::unique_ptr<leveldb::Iterator> at(db->NewIterator(options));
  std::vector<RecordKey> keys;
  for (at->Seek(from); at->Valid() && keys.size() < limit; at->Next()) {
    if (!at->key().starts_with(start)) break;
    absl::StatusOr<RecordKey> key = RecordKey::FromBytes(ViewOf(at->key()));
    if (key.ok()) keys.push_back(*std::move(key));
  }
  if (!at->status().ok()) return absl::UnavailableError(at->status().ToString());
  return keys;
}

int64_t LevelDbStore::StoredRequests(leveldb::DB& db, absl::Span<const RecordKey> keys) const {
  int64_t count = 0;
  std::string value;
  for (const RecordKey& key : RequestsAmong(keys))
    count += db.Get(leveldb::ReadOptions(), SliceOf(key.bytes()), &value).IsNotFound() ? 0 : 1;
  return count;
}

void LevelDbStore::AddRequests(int64_t more) {
  since_counted_ += more;
  if (counted_.has_value()) requests_.store(*counted_ + since_counted_, std::memory_order_relaxed);
}

std::optional<uint64_t> LevelDbStore::Requests() const {
  const int64_t requests = requests_.load(std::memory_order_relaxed);
  if (requests < 0) return std::nullopt;
  return static_cast<uint64_t>(requests);
}

absl::Status LevelDbStore::Compact() {
  FUSIOND_ASSIGN_OR_RETURN(std::shared_ptr<leveldb::DB> db, WritableDatabase());
  // Twice: the first round pushes deletions down to the last level, the second drops what they
  // hide.
  for (int round = 0; round < 2; ++round) db->CompactRange(nullptr, nullptr);
  return absl::OkStatus();
}

StoreStats LevelDbStore::Stats() const {
  StoreStats stats;
  stats.disk_bytes = DiskBytes(options_.folder + "/db") + DiskBytes(blobs_.folder());
  stats.bad_records = bad_records_.load(std::memory_order_relaxed);
  stats.disk_failures = disk_failures_.load(std::memory_order_relaxed);
  stats.recoveries = recoveries_.load(std::memory_order_relaxed);
  stats.repairs = repairs_.load(std::memory_order_relaxed);
  stats.moved_aside = moved_aside_.load(std::memory_order_relaxed);
  stats.replaced = replaced_.load(std::memory_order_relaxed);
  stats.orphaned_files = orphaned_files_.load(std::memory_order_relaxed);
  return stats;
}

}  // namespace fusiond::cache
