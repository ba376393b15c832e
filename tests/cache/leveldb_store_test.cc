#include "server/cache/leveldb_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/file.h"
#include "server/cache/cache.h"
#include "tests/cache/sample.h"
#include "tests/cache/store_fixture.h"
#include "tests/support/fake_clock.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_folder.h"
#include "tests/support/test_seed.h"

namespace fusiond::cache {
namespace {

using ::fusiond::testing::IsOk;
using ::fusiond::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_F(LevelDbStoreTest, EntriesOutliveTheStore) {
  {
    std::unique_ptr<LevelDbStore> store = Open();
    EXPECT_THAT(Put(*store, 1, Small(1)), IsOk());
    EXPECT_THAT(Put(*store, 2, Large(2)), IsOk());
  }
  std::unique_ptr<LevelDbStore> store = Open();
  for (auto [i, payload] : {std::pair{1, Small(1)}, std::pair{2, Large(2)}}) {
    ASSERT_OK_AND_ASSIGN(Record record, store->Get(KeyOf(i)));
    EXPECT_EQ(record.material, "material");
    EXPECT_TRUE(record.payload == payload);
    EXPECT_TRUE(store->Contains(KeyOf(i)));
  }
  EXPECT_THAT(Blobs(), SizeIs(1));
  EXPECT_THAT(store->Get(KeyOf(3)), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_FALSE(store->Contains(KeyOf(3)));
}

TEST_F(LevelDbStoreTest, DeleteRemovesRecordAndFile) {
  std::unique_ptr<LevelDbStore> store = Open();
  ASSERT_THAT(Put(*store, 1, Large(1)), IsOk());
  const RecordKey keys[] = {KeyOf(1), KeyOf(2)};
  EXPECT_THAT(store->Delete(keys), IsOk());
  EXPECT_THAT(store->Get(KeyOf(1)), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(Blobs(), IsEmpty());
}

TEST_F(LevelDbStoreTest, PayloadAboveTheLimitIsRefusedWithBothValues) {
  std::unique_ptr<LevelDbStore> store = Open();
  EXPECT_THAT(Put(*store, 1, std::string(kMaxPayloadBytes + 1, 'x')),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       ::testing::AllOf(HasSubstr("268435456 bytes"), HasSubstr("268435457"))));
  EXPECT_EQ(store->Status().state, StoreState::kReady);
}

TEST_F(LevelDbStoreTest, F18_KeysComeInPagesByPrefix) {
  std::unique_ptr<LevelDbStore> store = Open();
  for (int i = 0; i < 20; ++i) ASSERT_THAT(Put(*store, i, Small(i)), IsOk());
  std::vector<RecordKey> all;
  std::optional<RecordKey> after;
  while (true) {
    ASSERT_OK_AND_ASSIGN(std::vector<RecordKey> page,
                         store->Keys(RecordKind::kImage, "", after, 7));
    all.insert(all.end(), page.begin(), page.end());
    if (page.size() < 7) break;
    after = page.back();
  }
  EXPECT_THAT(all, SizeIs(20));
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end()));
  ASSERT_OK_AND_ASSIGN(
      std::vector<RecordKey> one,
      store->Keys(RecordKind::kImage, KeyOf(3).first().View().substr(0, 4), std::nullopt, 7));
  EXPECT_THAT(one, ElementsAre(KeyOf(3)));
  ASSERT_OK_AND_ASSIGN(std::vector<RecordKey> none,
                       store->Keys(RecordKind::kRequest, "", std::nullopt, 7));
  EXPECT_THAT(none, IsEmpty());
}

TEST_F(LevelDbStoreTest, CompactGivesSpaceBack) {
  std::unique_ptr<LevelDbStore> store = Open();
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) {
    std::string payload(100000, '\0');
    for (char& c : payload) c = static_cast<char>(random());
    ASSERT_THAT(Put(*store, i, payload), IsOk());
  }
  for (int i = 0; i < 200; ++i) {
    const RecordKey key = KeyOf(i);
    ASSERT_THAT(store->Delete({&key, 1}), IsOk());
  }
  EXPECT_THAT(store->Compact(), IsOk());
  EXPECT_LT(store->Stats().disk_bytes, 2u << 20);
}

// One flipped byte in each part of a stored value.
TEST_F(LevelDbStoreTest, F01_DamagedRecordIsCountedAndDeleted) {
  { ASSERT_THAT(Put(*Open(), 1, Small(1)), IsOk()); }
  const std::string good = RawGet(KeyOf(1));
  const size_t material = kRecordHeaderBytes;
  for (size_t at : {size_t{0}, size_t{4}, size_t{6}, size_t{7}, size_t{8}, size_t{16}, size_t{24},
                    material, good.size() - 1}) {
    std::string bad = good;
    bad[at] ^= 0x20;
    RawPut(KeyOf(1), bad);
    std::unique_ptr<LevelDbStore> store = Open();
    EXPECT_THAT(store->Get(KeyOf(1)), StatusIs(absl::StatusCode::kDataLoss)) << "byte " << at;
    EXPECT_THAT(store->Get(KeyOf(1)), StatusIs(absl::StatusCode::kNotFound));
    EXPECT_EQ(store->Stats().bad_records, 1u);
    EXPECT_FALSE(store->Contains(KeyOf(1)));
  }
}

TEST_F(LevelDbStoreTest, F01_TruncatedOrForeignRecordIsDamage) {
  { ASSERT_THAT(Put(*Open(), 1, Small(1)), IsOk()); }
  const std::string good = RawGet(KeyOf(1));
  for (const std::string& bad : {std::string(), good.substr(0, 10), good.substr(0, good.size() - 1),
                                 EncodeRecord(RecordKind::kGraph, "material", "payload")}) {
    RawPut(KeyOf(1), bad);
    EXPECT_THAT(Open()->Get(KeyOf(1)), StatusIs(absl::StatusCode::kDataLoss));
  }
}

TEST_F(LevelDbStoreTest, F01_DamagedBlobIsCountedAndDeleted) {
  std::unique_ptr<LevelDbStore> store = Open();
  auto put = [&] {
    EXPECT_THAT(Put(*store, 1, Large(1)), IsOk());
    EXPECT_THAT(Blobs(), SizeIs(1));
    return Blobs().front();
  };
  auto expect_damage = [&] {
    EXPECT_THAT(store->Get(KeyOf(1)), StatusIs(absl::StatusCode::kDataLoss));
    EXPECT_THAT(store->Get(KeyOf(1)), StatusIs(absl::StatusCode::kNotFound));
    EXPECT_THAT(Blobs(), IsEmpty());
  };
  std::fstream(put(), std::ios::in | std::ios::out | std::ios::binary).seekp(1000).put('!');
  expect_damage();
  std::filesystem::resize_file(put(), 1000);
  EXPECT_FALSE(store->Contains(KeyOf(1)));
  expect_damage();
  std::filesystem::resize_file(put(), kMaxInlinePayloadBytes + 2);
  expect_damage();
  std::filesystem::remove(put());
  expect_damage();
  EXPECT_EQ(store->Stats().bad_records, 4u);
}

// Bytes flipped anywhere in LevelDB's own files: the store opens, and no answer is ever wrong.
TEST_F(LevelDbStoreTest, F01_F03_FlippedBytesInDataBaseFilesNeverGiveAWrongAnswer) {
  std::mt19937 random(::fusiond::testing::TestSeed());
  {
    std::unique_ptr<LevelDbStore> store = Open();
    for (int i = 0; i < 100; ++i) ASSERT_THAT(Put(*store, i, Small(i)), IsOk());
    ASSERT_THAT(store->Compact(), IsOk());
    for (int i = 100; i < 200; ++i) ASSERT_THAT(Put(*store, i, Small(i)), IsOk());
  }
  const std::string original = temp_.path() + "/original";
  std::filesystem::copy(folder() + "/db", original, std::filesystem::copy_options::recursive);
  for (int round = 0; round < 40; ++round) {
    std::filesystem::remove_all(folder() + "/db");
    std::filesystem::copy(original, folder() + "/db", std::filesystem::copy_options::recursive);
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder() + "/db")) {
      if (entry.file_size() > 0) files.push_back(entry.path());
    }
    const std::filesystem::path& victim = files[random() % files.size()];
    const size_t at = random() % std::filesystem::file_size(victim);
    SCOPED_TRACE(absl::StrCat(victim.filename().string(), " byte ", at));
    std::fstream file(victim, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(at);
    const char byte = static_cast<char>(file.get());
    file.seekp(at).put(static_cast<char>(byte ^ (1 << random() % 8)));
    file.close();

    std::unique_ptr<LevelDbStore> store = Open();
    ASSERT_EQ(store->Status().state, StoreState::kReady) << store->Status().detail;
    for (int i = 0; i < 200; ++i) {
      absl::StatusOr<Record> record = store->Get(KeyOf(i));
      ASSERT_EQ(record.ok() ? record->payload : Small(i), Small(i));
    }
    ASSERT_THAT(Put(*store, 500, Small(500)), IsOk());
    ASSERT_THAT(store->Get(KeyOf(500)), IsOk());
  }
}

TEST_F(LevelDbStoreTest, F03_DamagedLogLosesItsBytesNotInSilence) {
  {
    std::unique_ptr<LevelDbStore> store = Open();
    for (int i = 0; i < 3; ++i) ASSERT_THAT(Put(*store, i, Small(i)), IsOk());
    EXPECT_EQ(store->Status().dropped_bytes, 0u);
  }
  std::string path;
  for (const auto& entry : std::filesystem::directory_iterator(folder() + "/db"))
    if (entry.path().extension() == ".log" && entry.file_size() > 0) path = entry.path();
  ASSERT_OK_AND_ASSIGN(const std::string bytes, base::ReadFile(path));
  const size_t at = bytes.find(Small(1));
  ASSERT_NE(at, std::string::npos);
  std::fstream(path, std::ios::in | std::ios::out | std::ios::binary).seekp(at).put('!');
  EXPECT_THAT(log_, IsEmpty());

  std::unique_ptr<LevelDbStore> store = Open();
  EXPECT_EQ(store->Status().state, StoreState::kReady);
  EXPECT_THAT(store->Get(KeyOf(0)), IsOk());
  EXPECT_THAT(store->Get(KeyOf(1)), StatusIs(absl::StatusCode::kNotFound));
  const uint64_t dropped = store->Status().dropped_bytes;
  EXPECT_GT(dropped, Small(1).size());
  EXPECT_LT(dropped, bytes.size());
  EXPECT_THAT(log_, ElementsAre(HasSubstr(absl::StrCat(path, ": dropping ", dropped, " bytes"))));
}

TEST_F(LevelDbStoreTest, F03_LostManifestIsRepaired) {
  { ASSERT_THAT(Put(*Open(), 1, Small(1)), IsOk()); }
  for (const auto& entry : std::filesystem::directory_iterator(folder() + "/db")) {
    if (absl::StartsWith(entry.path().filename().string(), "MANIFEST")) {
      std::filesystem::resize_file(entry.path(), 3);
    }
  }
  std::unique_ptr<LevelDbStore> store = Open();
  EXPECT_EQ(store->Status().state, StoreState::kReady);
  EXPECT_EQ(store->Stats().repairs, 1u);
  ASSERT_OK_AND_ASSIGN(Record record, store->Get(KeyOf(1)));
  EXPECT_EQ(record.payload, Small(1));
  EXPECT_THAT(log_, ElementsAre(HasSubstr("repairing")));
}

// What repair cannot mend is kept beside, the last time only, and the store starts empty.
TEST_F(LevelDbStoreTest, F03_BeyondRepairIsMovedAside) {
  for (int round = 0; round < 2; ++round) {
    { ASSERT_THAT(Put(*Open(), round, Small(round)), IsOk()); }
    std::ofstream(folder() + "/db/" + FaultEnv::kPoison) << round;
    std::unique_ptr<LevelDbStore> store = Open();
    EXPECT_EQ(store->Status().state, StoreState::kReady) << store->Status().detail;
    EXPECT_EQ(store->Stats().moved_aside, 1u);
    EXPECT_THAT(log_.back(), HasSubstr("moved aside, starting empty"));
    EXPECT_THAT(store->Get(KeyOf(round)), StatusIs(absl::StatusCode::kNotFound));
    ASSERT_OK_AND_ASSIGN(std::string kept,
                         base::ReadFile(folder() + "/db.damaged/" + FaultEnv::kPoison));
    EXPECT_EQ(kept, absl::StrCat(round));
    EXPECT_THAT(Put(*store, 9, Small(9)), IsOk());
  }
}

TEST_F(LevelDbStoreTest, F03_DamageMetByAWriteIsRepairedOnTheWayBack) {
  std::unique_ptr<LevelDbStore> store = Open();
  ASSERT_THAT(Put(*store, 1, Small(1)), IsOk());
  env_.FailWrites(leveldb::Status::Corruption("block checksum mismatch"));
  EXPECT_THAT(Put(*store, 2, Small(2)), StatusIs(absl::StatusCode::kUnavailable));
  env_.FailWrites(leveldb::Status::OK());
  clock_.Advance(LevelDbStore::kFirstRetry);
  store->Upkeep();
  EXPECT_EQ(store->Status().state, StoreState::kReady);
  EXPECT_EQ(store->Stats().repairs, 1u);
  EXPECT_THAT(store->Get(KeyOf(1)), IsOk());
  EXPECT_THAT(Put(*store, 2, Small(2)), IsOk());
}

TEST_F(LevelDbStoreTest, F03_PowerCutCostsTheLastSecondsOnly) {
  std::mt19937 random(::fusiond::testing::TestSeed());
  auto payload = [](int i) { return i % 16 == 0 ? Large(i) : Small(i); };
  int next = 0;
  int synced = 0;
  for (int round = 0; round < 10; ++round) {
    std::unique_ptr<LevelDbStore> store = Open();
    ASSERT_EQ(store->Status().state, StoreState::kReady) << store->Status().detail;
    for (int i = 0; i < synced; ++i) {
      ASSERT_OK_AND_ASSIGN(Record record, store->Get(KeyOf(i)));
      ASSERT_TRUE(record.payload == payload(i));
    }
    for (int i = synced; i < next; ++i) {
      absl::StatusOr<Record> record = store->Get(KeyOf(i));
      ASSERT_TRUE(!record.ok() || record->payload == payload(i));
    }
    next = synced;
    const int syncs = static_cast<int>(random() % 3);
    for (int burst = 0; burst <= syncs; ++burst) {
      for (uint32_t n = random() % 30; n > 0; --n, ++next) {
        ASSERT_THAT(Put(*store, next, payload(next)), IsOk());
      }
      if (burst < syncs) {
        store->Upkeep();
        synced = next;
      }
    }
    env_.CutPower();
    store.reset();
    env_.LoseUnsynced();
  }
}

TEST_F(LevelDbStoreTest, F20_SecondStoreIsToldAndTheFirstIsUntouched) {
  std::unique_ptr<LevelDbStore> first = Open();
  ASSERT_THAT(Put(*first, 1, Small(1)), IsOk());
  EXPECT_THAT(LevelDbStore::Create(Options()),
              StatusIs(absl::StatusCode::kAlreadyExists,
                       HasSubstr(absl::StrCat("in use by process ", ::getpid()))));
  EXPECT_THAT(first->Get(KeyOf(1)), IsOk());
  EXPECT_THAT(Put(*first, 2, Small(2)), IsOk());
  first.reset();
  EXPECT_THAT(LevelDbStore::Create(Options()), IsOk());
}

TEST_F(LevelDbStoreTest, OrphanedFilesAreSweptOthersStay) {
  {
    std::unique_ptr<LevelDbStore> store = Open();
    ASSERT_THAT(Put(*store, 1, Large(1)), IsOk());
    ASSERT_THAT(Put(*store, 2, Large(2)), IsOk());
  }
  RawOpen()->Delete({}, KeyOf(1).bytes());                       // a crash before the record
  std::ofstream(folder() + "/blobs/69aa-00.tmp.123") << "half";  // a crash inside a write
  ASSERT_THAT(Blobs(), SizeIs(3));
  std::unique_ptr<LevelDbStore> store = Open();
  store->Upkeep();
  EXPECT_THAT(Blobs(), SizeIs(1));
  EXPECT_EQ(store->Stats().orphaned_files, 2u);
  EXPECT_THAT(store->Get(KeyOf(2)), IsOk());
}

TEST_F(LevelDbStoreTest, F56_StateIsOpeningUntilTheFirstUpkeep) {
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<LevelDbStore> store, LevelDbStore::Create(Options()));
  EXPECT_EQ(store->Status().state, StoreState::kOpening);
  EXPECT_THAT(Put(*store, 1, Small(1)), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(store->Get(KeyOf(1)), StatusIs(absl::StatusCode::kUnavailable));
  store->Upkeep();
  EXPECT_EQ(store->Status().state, StoreState::kReady);
}

// F27: the start of the service does not wait for the store.
TEST_F(LevelDbStoreTest, F27_F56_CacheAnswersPendingWhileTheDataBaseOpens) {
  { ASSERT_THAT(Put(*Open(), 1, Small(1)), IsOk()); }
  env_.HoldOpening();
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<LevelDbStore> store, LevelDbStore::Create(Options()));
  Cache cache({}, std::move(store), clock_);
  EXPECT_FALSE(cache.WaitUntilOpen(absl::ZeroDuration()));
  EXPECT_EQ(cache.Lookup(SampleMaterial(1)).state, LookupState::kPending);
  EXPECT_FALSE(cache.Commit(SampleRequest(2), SampleCompile(2)).persisted);
  EXPECT_EQ(cache.Lookup(SampleMaterial(2)).state, LookupState::kHit);
  env_.ReleaseOpening();
  EXPECT_TRUE(cache.WaitUntilOpen(absl::Minutes(1)));
  EXPECT_EQ(cache.Lookup(SampleMaterial(1)).state, LookupState::kAbsent);
  EXPECT_TRUE(cache.Commit(SampleRequest(1), SampleCompile(1)).persisted);
}

TEST_F(LevelDbStoreTest, RequestsAreCountedExactly) {
  const auto request = [](int i) {
    return RecordKey::Of(RequestKey{base::Sha256(absl::StrCat(i))});
  };
  const auto commit = [&](LevelDbStore& store, int i) {
    const std::string payload = Small(i);
    const StoreWrite writes[] = {{request(i), "material", payload},
                                 {KeyOf(i), "material", payload}};
    ASSERT_THAT(store.Commit(writes), IsOk());
  };
  absl::StatusOr<std::unique_ptr<LevelDbStore>> opening = LevelDbStore::Create(Options());
  ASSERT_THAT(opening, IsOk());
  std::unique_ptr<LevelDbStore> store = *std::move(opening);
  EXPECT_EQ(store->Requests(), std::nullopt);  // not known yet
  store->Upkeep();
  EXPECT_EQ(store->Requests(), 0u);
  for (int i : {1, 2, 3, 2}) commit(*store, i);
  EXPECT_EQ(store->Requests(), 3u);
  const RecordKey gone[] = {request(2), request(7), request(2), KeyOf(3)};
  ASSERT_THAT(store->Delete(gone), IsOk());
  EXPECT_EQ(store->Requests(), 2u);
  store.reset();
  RawPut(request(3), "damaged");
  store = Open();
  EXPECT_EQ(store->Requests(), 2u);
  EXPECT_THAT(store->Get(request(3)), StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_EQ(store->Requests(), 1u);
}

}  // namespace
}  // namespace fusiond::cache
