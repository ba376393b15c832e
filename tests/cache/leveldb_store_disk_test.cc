// Disks that refuse: writes are turned off, and on again when the disk heals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "runtime/base/file.h"
#include "server/cache/state_folder.h"
#include "tests/cache/store_fixture.h"
#include "tests/support/fake_clock.h"
#include "tests/support/status_matchers.h"

namespace fusiond::cache {
namespace {

using ::fusiond::testing::IsOk;
using ::fusiond::testing::StatusIs;
using ::testing::HasSubstr;

class LevelDbStoreDiskTest : public LevelDbStoreTest {};

TEST_F(LevelDbStoreDiskTest, F19_FullDiskTurnsWritesOffAndHeals) {
  std::unique_ptr<LevelDbStore> store = Open();
  ASSERT_THAT(Put(*store, 1, Small(1)), IsOk());
  env_.FailWrites(leveldb::Status::IOError("db/000003.log", "No space left on device"));
  EXPECT_THAT(Put(*store, 2, Small(2)),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("No space left on device")));
  EXPECT_EQ(store->Status().state, StoreState::kReadOnly);
  EXPECT_THAT(store->Status().detail,
              ::testing::AllOf(HasSubstr("writes are off"), HasSubstr("next attempt in 1s")));
  EXPECT_THAT(store->Get(KeyOf(1)), IsOk());
  EXPECT_THAT(store->Compact(), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_EQ(store->Stats().disk_failures, 1u);

  store->Upkeep();  // not due yet
  EXPECT_EQ(store->Stats().disk_failures, 1u);
  clock_.Advance(absl::Seconds(1));
  store->Upkeep();  // still full: the data base stays open for reading
  EXPECT_EQ(store->Stats().disk_failures, 2u);
  EXPECT_THAT(store->Status().detail, HasSubstr("next attempt in 2s"));
  EXPECT_THAT(store->Get(KeyOf(1)), IsOk());

  env_.FailWrites(leveldb::Status::OK());
  EXPECT_THAT(Put(*store, 2, Small(2)), StatusIs(absl::StatusCode::kUnavailable));
  clock_.Advance(absl::Seconds(2));
  store->Upkeep();
  EXPECT_EQ(store->Status().state, StoreState::kReady);
  EXPECT_EQ(store->Status().detail, "");
  EXPECT_EQ(store->Stats().recoveries, 1u);
  EXPECT_THAT(Put(*store, 2, Small(2)), IsOk());
  EXPECT_THAT(store->Get(KeyOf(1)), IsOk());
}

// `rm -rf` while the daemon runs.
TEST_F(LevelDbStoreDiskTest, RemovedFolderIsNoticedAndMadeAnew) {
  for (const std::string& gone : {folder(), folder() + "/lock", folder() + "/db"}) {
    std::unique_ptr<LevelDbStore> store = Open();
    const uint64_t losses = store->Status().losses;
    ASSERT_THAT(Put(*store, 1, Large(1)), IsOk());
    std::filesystem::remove_all(gone);
    log_.clear();
    store->Upkeep();
    EXPECT_EQ(store->Status().state, StoreState::kReady) << gone;
    const bool lost = gone != folder() + "/lock";
    EXPECT_EQ(store->Status().losses, losses + lost);
    EXPECT_EQ(store->Get(KeyOf(1)).ok(), !lost);
    EXPECT_THAT(log_, ::testing::Contains(HasSubstr(folder() + " was removed or replaced")));
    const size_t lines = log_.size();
    store->Upkeep();
    EXPECT_EQ(log_.size(), lines);  // said once
    EXPECT_THAT(Put(*store, 2, Large(2)), IsOk());
    EXPECT_THAT(store->Get(KeyOf(2)), IsOk());
    EXPECT_THAT(LevelDbStore::Create(Options()), StatusIs(absl::StatusCode::kAlreadyExists));
    store.reset();
    EXPECT_THAT(Open()->Get(KeyOf(2)), IsOk());
  }
}

TEST_F(LevelDbStoreDiskTest, FolderThatAnotherHasTakenIsLeftToIt) {
  std::unique_ptr<LevelDbStore> store = Open();
  std::filesystem::remove_all(folder());
  ASSERT_THAT(base::MakeFolders(folder()), IsOk());
  ASSERT_OK_AND_ASSIGN(base::UniqueFd another, LockFolder(folder()));
  store->Upkeep();
  EXPECT_EQ(store->Status().state, StoreState::kUnavailable);
  EXPECT_THAT(store->Status().detail, HasSubstr("in use by process"));
  EXPECT_FALSE(std::filesystem::exists(folder() + "/db"));
  another.reset();
  clock_.Advance(LevelDbStore::kLastRetry);
  store->Upkeep();
  EXPECT_EQ(store->Status().state, StoreState::kReady);
}

TEST_F(LevelDbStoreDiskTest, F19_BackOffIsBounded) {
  std::unique_ptr<LevelDbStore> store = Open();
  env_.FailWrites(leveldb::Status::IOError("disk", "Read-only file system"));
  EXPECT_FALSE(Put(*store, 1, Small(1)).ok());
  for (int i = 0; i < 10; ++i) {
    clock_.Advance(LevelDbStore::kLastRetry);
    store->Upkeep();
  }
  EXPECT_EQ(store->Stats().disk_failures, 11u);
  EXPECT_THAT(store->Status().detail, HasSubstr("next attempt in 1m"));
  env_.FailWrites(leveldb::Status::OK());
  clock_.Advance(LevelDbStore::kLastRetry);
  store->Upkeep();
  EXPECT_EQ(store->Status().state, StoreState::kReady);
}

TEST_F(LevelDbStoreDiskTest, F19_FolderThatCannotBeMadeIsNoErrorAndHeals) {
  std::ofstream(folder()) << "a file in the folder's place";
  std::unique_ptr<LevelDbStore> store = Open();
  EXPECT_EQ(store->Status().state, StoreState::kUnavailable);
  EXPECT_THAT(store->Status().detail, HasSubstr("in memory only"));
  EXPECT_THAT(store->Get(KeyOf(1)), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(Put(*store, 1, Small(1)), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(store->Keys(RecordKind::kImage, "", std::nullopt, 1),
              StatusIs(absl::StatusCode::kUnavailable));
  std::filesystem::remove(folder());
  clock_.Advance(LevelDbStore::kFirstRetry);
  store->Upkeep();
  EXPECT_EQ(store->Status().state, StoreState::kReady);
  EXPECT_THAT(Put(*store, 1, Small(1)), IsOk());
}

TEST_F(LevelDbStoreDiskTest, F19_FailedBlobTurnsWritesOff) {
  std::unique_ptr<LevelDbStore> store = Open();
  std::filesystem::remove_all(folder() + "/blobs");
  EXPECT_THAT(Put(*store, 1, Large(1)), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_EQ(store->Status().state, StoreState::kReadOnly);
  EXPECT_THAT(store->Get(KeyOf(1)), StatusIs(absl::StatusCode::kNotFound));
  clock_.Advance(LevelDbStore::kFirstRetry);
  store->Upkeep();
  EXPECT_THAT(Put(*store, 1, Large(1)), IsOk());
}

// The data base is closed and opened again under readers and writers.
TEST_F(LevelDbStoreDiskTest, F19_RecoveryUnderLoadLosesNoReader) {
  std::unique_ptr<LevelDbStore> store = Open();
  for (int i = 0; i < 8; ++i) ASSERT_THAT(Put(*store, i, Small(i)), IsOk());
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      for (int i = t; !stop; i = (i + 1) % 8) {
        absl::StatusOr<Record> record = store->Get(KeyOf(i));
        if (record.ok()) {
          ASSERT_EQ(record->payload, Small(i));
        } else {
          ASSERT_THAT(record, StatusIs(absl::StatusCode::kUnavailable));  // while it is closed
        }
        if (t == 0) Put(*store, i, Small(i)).IgnoreError();
      }
    });
  }
  for (int round = 0; round < 20; ++round) {
    env_.FailWrites(leveldb::Status::IOError("db", "No space left on device"));
    EXPECT_FALSE(Put(*store, 0, Small(0)).ok());
    env_.FailWrites(leveldb::Status::OK());
    clock_.Advance(LevelDbStore::kLastRetry);
    store->Upkeep();
    EXPECT_EQ(store->Status().state, StoreState::kReady);
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(store->Stats().recoveries, 20u);
  for (int i = 0; i < 8; ++i) EXPECT_THAT(store->Get(KeyOf(i)), IsOk());
}

}  // namespace
}  // namespace fusiond::cache
