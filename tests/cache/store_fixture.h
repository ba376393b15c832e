// A LevelDbStore on a temporary folder, with a clock and an Env that tests steer.
//
// Thread-safety: thread-compatible.
#ifndef FUSIOND_TESTS_CACHE_STORE_FIXTURE_H_
#define FUSIOND_TESTS_CACHE_STORE_FIXTURE_H_

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "leveldb/db.h"
#include "runtime/base/sha256.h"
#include "server/cache/leveldb_store.h"
#include "tests/cache/fault_env.h"
#include "tests/support/fake_clock.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_folder.h"

namespace fusiond::cache {

inline RecordKey KeyOf(int i) { return RecordKey::Of(ImageKey{base::Sha256(absl::StrCat(i))}); }
inline std::string Small(int i) { return absl::StrCat("payload ", i); }
inline std::string Large(int i) { return std::string(kMaxInlinePayloadBytes + 1, 'a' + i % 26); }

class LevelDbStoreTest : public ::testing::Test {
 protected:
  LevelDbStoreOptions Options() {
    LevelDbStoreOptions options;
    options.folder = folder();
    options.allow_network_fs = true;
    options.env = &env_;
    options.clock = &clock_;
    options.log = [this](absl::string_view line) { log_.emplace_back(line); };
    return options;
  }
  std::string folder() const { return temp_.path() + "/state"; }

  // Opened unless the disk refuses.
  std::unique_ptr<LevelDbStore> Open() {
    absl::StatusOr<std::unique_ptr<LevelDbStore>> store = LevelDbStore::Create(Options());
    EXPECT_THAT(store, testing::IsOk());
    (*store)->Upkeep();
    return *std::move(store);
  }

  absl::Status Put(LevelDbStore& store, int i, const std::string& payload) {
    const StoreWrite write{KeyOf(i), "material", payload};
    return store.Commit({&write, 1});
  }

  // The record's bytes behind the store's back; requires that no store is open.
  std::string RawGet(const RecordKey& key) {
    std::unique_ptr<leveldb::DB> db = RawOpen();
    std::string value;
    EXPECT_TRUE(db->Get({}, key.bytes(), &value).ok());
    return value;
  }
  void RawPut(const RecordKey& key, const std::string& value) {
    ASSERT_TRUE(RawOpen()->Put({}, key.bytes(), value).ok());
  }
  std::unique_ptr<leveldb::DB> RawOpen() {
    leveldb::DB* db = nullptr;
    EXPECT_TRUE(leveldb::DB::Open({}, folder() + "/db", &db).ok());
    return std::unique_ptr<leveldb::DB>(db);
  }

  std::vector<std::string> Blobs() const {
    std::vector<std::string> paths;
    for (const auto& entry : std::filesystem::directory_iterator(folder() + "/blobs")) {
      paths.push_back(entry.path().string());
    }
    return paths;
  }

  testing::TempFolder temp_;
  FaultEnv env_;
  testing::FakeClock clock_;
  std::vector<std::string> log_;
};

}  // namespace fusiond::cache

#endif  // FUSIOND_TESTS_CACHE_STORE_FIXTURE_H_
