#include "server/cache/cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/cache/fake_store.h"
#include "tests/cache/sample.h"
#include "tests/support/fake_clock.h"
#include "tests/support/status_matchers.h"

namespace fusiond::cache {
namespace {

using ::fusiond::testing::IsOk;
using ::fusiond::testing::StatusIs;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

base::Digest DigestOf(int i) { return base::Sha256(SampleExecutable(i)); }

class CacheTest : public ::testing::Test {
 protected:
  // A new process on the same disk; ready.
  void Start(const CacheOptions& options = {}) {
    cache_.reset();
    cache_ = std::make_unique<Cache>(options, std::make_unique<FakeStore>(&disk_), clock_);
    ASSERT_TRUE(cache_->WaitUntilOpen(absl::Minutes(1)));
  }
  void SetUp() override { Start(); }

  LookupState StateOf(int i) { return cache_->Lookup(SampleMaterial(i)).state; }
  Committed Commit(int i) { return cache_->Commit(SampleRequest(i), SampleCompile(i)); }

  FakeDisk disk_;
  testing::FakeClock clock_;
  std::unique_ptr<Cache> cache_;
};

TEST_F(CacheTest, CommittedRequestIsFoundWithAllItsParts) {
  EXPECT_EQ(StateOf(1), LookupState::kAbsent);
  Committed committed = Commit(1);
  EXPECT_EQ(committed.executable, DigestOf(1));
  EXPECT_EQ(committed.revision, 1u);
  EXPECT_TRUE(committed.persisted);

  for (Tier tier : {Tier::kMemory, Tier::kDisk}) {
    if (tier == Tier::kDisk) Start();
    RequestLookup lookup = cache_->Lookup(SampleMaterial(1));
    ASSERT_EQ(lookup.state, LookupState::kHit);
    EXPECT_EQ(lookup.tier, tier);
    EXPECT_EQ(lookup.key, RequestKeyOf(SampleMaterial(1)));
    EXPECT_EQ(lookup.entry.revision, 1u);
    ASSERT_THAT(lookup.entry.variants, SizeIs(1));
    EXPECT_EQ(lookup.entry.variants[0].guards, "guards 1");
    EXPECT_EQ(lookup.entry.variants[0].executable_bytes, SampleExecutable(1).size());
    auto executable = cache_->FindExecutable(lookup.entry.variants[0].executable);
    ASSERT_TRUE(executable.has_value());
    EXPECT_EQ(executable->tier, tier);
    EXPECT_EQ(*executable->value, SampleExecutable(1));
    auto canonical = cache_->FindCanonical(SampleCanonical(1));
    ASSERT_TRUE(canonical.has_value());
    EXPECT_EQ(canonical->value, DigestOf(1));
    auto image = cache_->FindImage(SampleImage(1));
    ASSERT_TRUE(image.has_value());
    EXPECT_EQ(*image->value, "cubin 1");
  }
  EXPECT_EQ(StateOf(1), LookupState::kHit);  // kept in memory by now
  EXPECT_EQ(cache_->Stats().requests.memory_hits, 1u);
  EXPECT_EQ(cache_->Stats().requests.disk_hits, 1u);
}

TEST_F(CacheTest, F15_OtherArchOrSignatureIsAbsent) {
  Commit(1);
  KeyMaterial other = SampleMaterial(1);
  other.arch = "sm_89";
  EXPECT_EQ(cache_->Lookup(other).state, LookupState::kAbsent);
  other = SampleMaterial(1);
  other.signature = "f32[3]";
  EXPECT_EQ(cache_->Lookup(other).state, LookupState::kAbsent);
  EXPECT_EQ(cache_->Stats().requests.misses[static_cast<size_t>(MissReason::kAbsent)], 2u);
}

TEST_F(CacheTest, SecondVariantRaisesTheRevision) {
  Commit(1);
  RequestBinding request = SampleRequest(1);
  request.guards = "aligned 16";
  request.position = VariantPosition::kFirst;
  EXPECT_EQ(cache_->Commit(request, SampleCompile(2)).revision, 2u);
  EXPECT_EQ(cache_->Commit(request, SampleCompile(2)).revision, 2u);  // the same again
  Start();
  RequestLookup lookup = cache_->Lookup(SampleMaterial(1));
  ASSERT_THAT(lookup.entry.variants, SizeIs(2));
  EXPECT_EQ(lookup.entry.variants[0].guards, "aligned 16");
  EXPECT_EQ(lookup.entry.variants[0].executable, DigestOf(2));
  EXPECT_EQ(lookup.entry.variants[1].executable, DigestOf(1));
}

TEST_F(CacheTest, LinkAnswersAnotherRequestWithTheSameExecutable) {
  Commit(1);
  ASSERT_OK_AND_ASSIGN(Committed linked, cache_->Link(SampleRequest(2), DigestOf(1)));
  EXPECT_TRUE(linked.persisted);
  RequestLookup lookup = cache_->Lookup(SampleMaterial(2));
  ASSERT_EQ(lookup.state, LookupState::kHit);
  EXPECT_EQ(lookup.entry.variants[0].executable, DigestOf(1));
  EXPECT_EQ(lookup.entry.variants[0].executable_bytes, SampleExecutable(1).size());
  EXPECT_EQ(disk_.Count(RecordKind::kExecutable), 1u);
  EXPECT_THAT(cache_->Link(SampleRequest(3), DigestOf(9)),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr(DigestOf(9).Hex())));
}

// The index names a record that belongs to something else: never a wrong answer.
TEST_F(CacheTest, F12_RecordOfOtherMaterialIsAMissAndDeleted) {
  Commit(1);
  Commit(2);
  cache_.reset();
  const RecordKey request = RecordKey::Of(RequestKeyOf(SampleMaterial(1)));
  const RecordKey image = RecordKey::Of(ImageKeyOf(SampleImage(1)));
  const RecordKey canonical = RecordKey::Of(CanonicalKeyOf(SampleCanonical(1)));
  const RecordKey executable = RecordKey::Executable(DigestOf(1));
  {
    base::MutexLock lock(&disk_.mutex);
    auto& records = disk_.records;
    records[request] = records[RecordKey::Of(RequestKeyOf(SampleMaterial(2)))];
    records[image] = records[RecordKey::Of(ImageKeyOf(SampleImage(2)))];
    records[canonical] = records[RecordKey::Of(CanonicalKeyOf(SampleCanonical(2)))];
    records[executable] = records[RecordKey::Executable(DigestOf(2))];
  }
  Start();
  EXPECT_EQ(StateOf(1), LookupState::kAbsent);
  EXPECT_FALSE(cache_->FindImage(SampleImage(1)).has_value());
  EXPECT_FALSE(cache_->FindCanonical(SampleCanonical(1)).has_value());
  EXPECT_FALSE(cache_->FindExecutable(DigestOf(1)).has_value());
  const CacheStats stats = cache_->Stats();
  constexpr size_t kOther = static_cast<size_t>(MissReason::kOtherMaterial);
  EXPECT_EQ(stats.requests.misses[kOther], 1u);
  EXPECT_EQ(stats.images.misses[kOther], 1u);
  EXPECT_EQ(stats.canonical.misses[kOther], 1u);
  EXPECT_EQ(stats.executables.misses[static_cast<size_t>(MissReason::kBadRecord)], 1u);
  base::MutexLock lock(&disk_.mutex);
  for (const RecordKey& key : {request, image, canonical, executable}) {
    EXPECT_FALSE(disk_.records.contains(key));
  }
}

TEST_F(CacheTest, F01_PayloadThatDoesNotDecodeIsAMissAndDeleted) {
  Commit(1);
  cache_.reset();
  const RecordKey request = RecordKey::Of(RequestKeyOf(SampleMaterial(1)));
  const RecordKey canonical = RecordKey::Of(CanonicalKeyOf(SampleCanonical(1)));
  {
    base::MutexLock lock(&disk_.mutex);
    disk_.records[request].payload = "garbage";
    disk_.records[canonical].payload = "garbage";
  }
  Start();
  EXPECT_EQ(StateOf(1), LookupState::kAbsent);
  EXPECT_FALSE(cache_->FindCanonical(SampleCanonical(1)).has_value());
  constexpr size_t kBad = static_cast<size_t>(MissReason::kBadRecord);
  EXPECT_EQ(cache_->Stats().requests.misses[kBad], 1u);
  EXPECT_EQ(cache_->Stats().canonical.misses[kBad], 1u);
  EXPECT_EQ(Commit(1).revision, 1u);
  EXPECT_EQ(StateOf(1), LookupState::kHit);
}

TEST_F(CacheTest, F56_WhileOpeningTheAnswerIsPendingNotAbsent) {
  Commit(1);
  cache_.reset();
  {
    base::MutexLock lock(&disk_.mutex);
    disk_.status = {StoreState::kOpening, ""};
    disk_.opens_as = {StoreState::kOpening, ""};
  }
  cache_ = std::make_unique<Cache>(CacheOptions(), std::make_unique<FakeStore>(&disk_), clock_);
  EXPECT_FALSE(cache_->WaitUntilOpen(absl::ZeroDuration()));
  EXPECT_EQ(StateOf(1), LookupState::kPending);
  EXPECT_EQ(cache_->Explain(SampleMaterial(1)).state, LookupState::kPending);
  EXPECT_FALSE(Commit(2).persisted);
  EXPECT_EQ(StateOf(2), LookupState::kHit);
  EXPECT_THAT(cache_->List(std::nullopt, 10), StatusIs(absl::StatusCode::kUnavailable));
  {
    base::MutexLock lock(&disk_.mutex);
    disk_.opens_as = {StoreState::kReady, ""};
  }
  cache_->Upkeep();
  EXPECT_TRUE(cache_->WaitUntilOpen(absl::ZeroDuration()));
  EXPECT_EQ(StateOf(1), LookupState::kHit);
}

TEST_F(CacheTest, F19_WithoutTheDiskItServesFromMemoryAndSaysSo) {
  Commit(1);
  disk_.SetStatus(StoreState::kReadOnly, "cache writes are off: No space left on device");
  EXPECT_FALSE(Commit(2).persisted);
  EXPECT_EQ(StateOf(2), LookupState::kHit);
  EXPECT_EQ(StateOf(1), LookupState::kHit);
  EXPECT_EQ(cache_->Stats().degraded, "cache writes are off: No space left on device");
  EXPECT_EQ(cache_->Stats().commits_in_memory_only, 1u);

  disk_.SetStatus(StoreState::kUnavailable, "cache is in memory only");
  EXPECT_EQ(StateOf(2), LookupState::kHit);
  EXPECT_EQ(StateOf(3), LookupState::kAbsent);
  EXPECT_EQ(cache_->Stats().requests.misses[static_cast<size_t>(MissReason::kStoreUnavailable)],
            1u);
  ASSERT_OK_AND_ASSIGN(RequestPage page, cache_->List(std::nullopt, 10));
  EXPECT_THAT(page.requests, SizeIs(2));

  disk_.SetStatus(StoreState::kReady);
  EXPECT_TRUE(Commit(3).persisted);
  EXPECT_EQ(cache_->Stats().degraded, "");
}

TEST_F(CacheTest, WithoutAStoreItIsMemoryOnly) {
  Cache cache({}, nullptr, clock_);
  EXPECT_TRUE(cache.WaitUntilOpen(absl::ZeroDuration()));
  EXPECT_FALSE(cache.Commit(SampleRequest(1), SampleCompile(1)).persisted);
  EXPECT_EQ(cache.Lookup(SampleMaterial(1)).state, LookupState::kHit);
  EXPECT_EQ(cache.Stats().degraded, "");
  ASSERT_OK_AND_ASSIGN(Evicted evicted, cache.Evict(""));
  EXPECT_EQ(evicted.requests, 1u);
  EXPECT_EQ(cache.Lookup(SampleMaterial(1)).state, LookupState::kAbsent);
  EXPECT_FALSE(cache.FindExecutable(DigestOf(1)).has_value());
  EXPECT_THAT(cache.Compact(), IsOk());
}

TEST_F(CacheTest, F16_FailureIsAnsweredUntilItExpiresOrACompileSucceeds) {
  const RequestKey key = RequestKeyOf(SampleMaterial(1));
  EXPECT_FALSE(cache_->AddNegative(key, absl::ResourceExhaustedError("out of memory")));
  EXPECT_EQ(StateOf(1), LookupState::kAbsent);
  EXPECT_TRUE(cache_->AddNegative(key, absl::InternalError("ptxas fatal")));
  RequestLookup lookup = cache_->Lookup(SampleMaterial(1));
  EXPECT_EQ(lookup.state, LookupState::kNegative);
  EXPECT_THAT(lookup.failure, StatusIs(absl::StatusCode::kInternal, "ptxas fatal"));
  EXPECT_EQ(cache_->Stats().negative_hits, 1u);
  EXPECT_EQ(cache_->Explain(SampleMaterial(1)).state, LookupState::kNegative);
  clock_.Advance(absl::Minutes(1));
  EXPECT_EQ(StateOf(1), LookupState::kAbsent);
  cache_->AddNegative(key, absl::InternalError("ptxas fatal"));
  Commit(1);
  EXPECT_EQ(StateOf(1), LookupState::kHit);
}

TEST_F(CacheTest, RequestSourceAndGraphAreFoundByKeyAlone) {
  Commit(1);
  Start();
  const RequestKey key = RequestKeyOf(SampleMaterial(1));
  std::optional<RequestInfo> info = cache_->FindRequest(key);
  ASSERT_TRUE(info.has_value());
  EXPECT_EQ(info->key, key);
  EXPECT_EQ(info->material, SampleMaterial(1));
  EXPECT_EQ(info->entry.variants[0].executable, DigestOf(1));
  EXPECT_EQ(cache_->FindImageMaterial(ImageKeyOf(SampleImage(1))), SampleImage(1));
  EXPECT_EQ(cache_->FindGraph(SampleMaterial(1).graph), "graph bytes 1");
  EXPECT_FALSE(cache_->FindRequest(RequestKeyOf(SampleMaterial(2))).has_value());
  EXPECT_EQ(cache_->FindImageMaterial(ImageKeyOf(SampleImage(2))), std::nullopt);
  EXPECT_EQ(cache_->FindGraph(SampleMaterial(2).graph), std::nullopt);
  EXPECT_EQ(cache_->Stats().memory.entries, 0u);  // looking around keeps nothing
}

TEST_F(CacheTest, ListPagesThroughAllRequests) {
  for (int i = 0; i < 10; ++i) Commit(i);
  StateOf(3);
  Pins::Pin pin = cache_->Pin(DigestOf(3));
  std::vector<RequestInfo> all;
  std::optional<RequestKey> after;
  do {
    ASSERT_OK_AND_ASSIGN(RequestPage page, cache_->List(after, 4));
    all.insert(all.end(), page.requests.begin(), page.requests.end());
    after = page.next;
  } while (after.has_value());
  ASSERT_THAT(all, SizeIs(10));
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end(),
                             [](const auto& a, const auto& b) { return a.key < b.key; }));
  for (const RequestInfo& info : all) {
    const bool third = info.material == SampleMaterial(3);
    EXPECT_EQ(info.pinned, third);
    EXPECT_EQ(info.journal.count, third ? 2u : 1u);
  }
}

TEST_F(CacheTest, JournalKeepsGraphsAndCountsAcrossRestarts) {
  Commit(1);
  KeyMaterial other_arch = SampleMaterial(1);
  other_arch.arch = "sm_89";
  RequestBinding request = SampleRequest(1);
  request.material = other_arch;
  cache_->Commit(request, SampleCompile(2));
  for (int i = 0; i < 5; ++i) StateOf(1);
  Start();
  StateOf(1);
  ASSERT_OK_AND_ASSIGN(JournalPage page, cache_->ListJournal(std::nullopt, 10));
  ASSERT_THAT(page.requests, SizeIs(2));
  EXPECT_FALSE(page.next.has_value());
  for (const JournalInfo& info : page.requests) {
    EXPECT_EQ(info.graph, "graph bytes 1");
    EXPECT_EQ(info.key, RequestKeyOf(info.material));
    EXPECT_EQ(info.journal.count, info.material == SampleMaterial(1) ? 7u : 1u);
  }
  EXPECT_EQ(disk_.Count(RecordKind::kGraph), 1u);
  clock_.Advance(absl::Minutes(1));
  cache_->Upkeep();
  ASSERT_OK_AND_ASSIGN(JournalPage flushed, cache_->ListJournal(std::nullopt, 1));
  EXPECT_TRUE(flushed.next.has_value());
}

TEST_F(CacheTest, ExplainNamesWhatDiffersFromKnownRequests) {
  Commit(1);
  Explanation hit = cache_->Explain(SampleMaterial(1));
  EXPECT_EQ(hit.state, LookupState::kHit);
  EXPECT_THAT(hit.neighbours, IsEmpty());
  KeyMaterial upgraded = SampleMaterial(1);
  upgraded.nvrtc = "13.1+ccdd";
  Explanation miss = cache_->Explain(upgraded);
  EXPECT_EQ(miss.state, LookupState::kAbsent);
  EXPECT_EQ(miss.key, RequestKeyOf(upgraded));
  EXPECT_EQ(miss.fields, Describe(upgraded));
  ASSERT_THAT(miss.neighbours, SizeIs(1));
  ASSERT_THAT(miss.neighbours[0].differences, SizeIs(1));
  EXPECT_EQ(miss.neighbours[0].differences[0].name, "nvrtc");
  EXPECT_EQ(miss.neighbours[0].differences[0].found, "13.0+aabb");
  EXPECT_EQ(cache_->Stats().requests.misses[static_cast<size_t>(MissReason::kAbsent)], 0u);
}

TEST_F(CacheTest, EvictDropsARequestWithAllItWasBuiltFrom) {
  Commit(1);
  Commit(2);
  const std::string prefix = RequestKeyOf(SampleMaterial(1)).Hex().substr(0, 13);  // odd on purpose
  ASSERT_OK_AND_ASSIGN(Evicted evicted, cache_->Evict(prefix));
  EXPECT_EQ(evicted.requests, 1u);
  EXPECT_EQ(evicted.executables, 1u);
  EXPECT_EQ(StateOf(1), LookupState::kAbsent);
  EXPECT_FALSE(cache_->FindExecutable(DigestOf(1)).has_value());
  EXPECT_FALSE(cache_->FindCanonical(SampleCanonical(1)).has_value());
  EXPECT_FALSE(cache_->FindImage(SampleImage(1)).has_value());
  EXPECT_EQ(StateOf(2), LookupState::kHit);
  for (absl::string_view kinds = kRecordKinds; !kinds.empty(); kinds.remove_prefix(1)) {
    EXPECT_EQ(disk_.Count(*RecordKindFromByte(kinds[0])), 1u) << kinds[0];
  }
  ASSERT_OK_AND_ASSIGN(Evicted again, cache_->Evict(prefix));
  EXPECT_EQ(again.requests, 0u);
}

TEST_F(CacheTest, PrefixResolvesToTheOneKeyThatHasIt) {
  for (int i = 0; i < 40; ++i) Commit(i);
  const auto hex = [](int i) { return RequestKeyOf(SampleMaterial(i)).Hex(); };
  EXPECT_THAT(cache_->Resolve(""),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("several keys begin with ")));
  for (int i = 0; i < 40; ++i) {
    for (size_t digits = 1; digits <= 64; ++digits) {
      const std::string prefix = hex(i).substr(0, digits);
      int same = 0;
      for (int k = 0; k < 40; ++k) same += absl::StartsWith(hex(k), prefix) ? 1 : 0;
      const absl::StatusOr<RequestKey> resolved = cache_->Resolve(prefix);
      if (same > 1) {
        EXPECT_THAT(resolved, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(prefix)));
      } else {
        ASSERT_THAT(resolved, IsOk());
        EXPECT_EQ(resolved->Hex(), hex(i));
      }
    }
  }
  EXPECT_THAT(cache_->Resolve(hex(40)), StatusIs(absl::StatusCode::kNotFound, HasSubstr(hex(40))));
  EXPECT_THAT(cache_->Resolve("XY"), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(CacheTest, EvictAllLeavesNothing) {
  for (int i = 0; i < 5; ++i) Commit(i);
  ASSERT_THAT(cache_->Link(SampleRequest(9), DigestOf(1)), IsOk());
  {
    base::MutexLock lock(&disk_.mutex);  // an executable that no request names
    disk_.records[RecordKey::Executable(base::Sha256("orphan"))] = {"", "orphan"};
  }
  ASSERT_OK_AND_ASSIGN(Evicted evicted, cache_->Evict(""));
  EXPECT_EQ(evicted.requests, 6u);
  EXPECT_EQ(evicted.executables, 6u);
  base::MutexLock lock(&disk_.mutex);
  EXPECT_TRUE(disk_.records.empty());
}

TEST_F(CacheTest, F17_EvictPassesOverLeasedExecutables) {
  for (int i = 1; i < 4; ++i) Commit(i);
  {
    Pins::Pin pin = cache_->Pin(DigestOf(2));
    ASSERT_OK_AND_ASSIGN(Evicted evicted, cache_->Evict(""));
    EXPECT_EQ(evicted.requests, 2u);
    EXPECT_EQ(evicted.pinned, 1u);
    EXPECT_EQ(StateOf(2), LookupState::kHit);
    EXPECT_TRUE(cache_->FindExecutable(DigestOf(2)).has_value());
    EXPECT_TRUE(cache_->FindCanonical(SampleCanonical(2)).has_value());
    EXPECT_EQ(disk_.Count(RecordKind::kExecutable), 1u);
    EXPECT_EQ(disk_.Count(RecordKind::kJournal), 1u);
    EXPECT_EQ(disk_.Count(RecordKind::kGraph), 1u);
    EXPECT_EQ(cache_->Stats().pinned_executables, 1u);
  }
  ASSERT_OK_AND_ASSIGN(Evicted evicted, cache_->Evict(""));
  EXPECT_EQ(evicted.requests, 1u);
  base::MutexLock lock(&disk_.mutex);
  EXPECT_TRUE(disk_.records.empty());
}

TEST_F(CacheTest, EvictRefusesWhatIsNoPrefix) {
  for (absl::string_view bad : {"xyz", "AB", " ", "0x12"}) {
    EXPECT_THAT(cache_->Evict(bad), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(bad)));
  }
  EXPECT_THAT(cache_->Evict(std::string(65, 'a')), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(CacheTest, EvictWithWritesOffIsUnavailable) {
  Commit(1);
  disk_.SetStatus(StoreState::kReadOnly, "cache writes are off: full");
  EXPECT_THAT(cache_->Evict(""), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("full")));
  EXPECT_EQ(StateOf(1), LookupState::kHit);
}

TEST_F(CacheTest, F04_DroppedExecutableIsBuiltAnewFromNothing) {
  Commit(1);
  Pins::Pin pin = cache_->Pin(DigestOf(1));
  EXPECT_THAT(cache_->DropExecutable(DigestOf(1)), IsOk());
  EXPECT_EQ(StateOf(1), LookupState::kHit);  // names an executable that is gone
  EXPECT_FALSE(cache_->FindExecutable(DigestOf(1)).has_value());
  EXPECT_FALSE(cache_->FindCanonical(SampleCanonical(1)).has_value());
  EXPECT_FALSE(cache_->FindImage(SampleImage(1)).has_value());
  EXPECT_EQ(Commit(1).revision, 1u);
  EXPECT_TRUE(cache_->FindExecutable(DigestOf(1)).has_value());
}

// Whatever comes and goes, the count is that of a list at the same moment.
TEST_F(CacheTest, RequestsAreCountedExactly) {
  const auto expect_exact = [this](uint64_t count) {
    EXPECT_EQ(cache_->Stats().requests_kept, count);
    ASSERT_OK_AND_ASSIGN(const RequestPage page, cache_->List(std::nullopt, Cache::kMaxPage));
    EXPECT_EQ(page.requests.size(), count);
  };
  expect_exact(0);
  for (int i = 0; i < 3; ++i) Commit(i);
  expect_exact(3);
  Commit(1);  // again
  expect_exact(3);
  Start();  // another process
  expect_exact(3);
  EXPECT_EQ(StateOf(1), LookupState::kHit);  // now in memory too
  expect_exact(3);
  disk_.SetStatus(StoreState::kReadOnly, "cache writes are off: full");
  Commit(1);
  expect_exact(3);
  Commit(4);  // in memory alone
  expect_exact(4);
  disk_.SetStatus(StoreState::kReady);
  Commit(4);
  expect_exact(4);
  ASSERT_THAT(cache_->Evict(RequestKeyOf(SampleMaterial(4)).Hex()), IsOk());
  expect_exact(3);
  disk_.LoseAll();
  cache_->Upkeep();
  expect_exact(1);  // that memory holds
  ASSERT_THAT(cache_->Evict(""), IsOk());
  expect_exact(0);
}

TEST_F(CacheTest, RequestsOfMemoryAloneAreCounted) {
  Cache memory({}, nullptr);
  for (int i = 0; i < 3; ++i) memory.Commit(SampleRequest(i), SampleCompile(i));
  EXPECT_EQ(memory.Stats().requests_kept, 3u);
  ASSERT_THAT(memory.Evict(""), IsOk());
  EXPECT_EQ(memory.Stats().requests_kept, 0u);
}

TEST_F(CacheTest, HealthListsNoFolders) {
  Commit(1);
  Pins::Pin pin = cache_->Pin(DigestOf(1));
  EXPECT_EQ(cache_->Degraded(), "");
  EXPECT_EQ(cache_->PinnedExecutables(), 1u);
  disk_.SetStatus(StoreState::kReadOnly, "cache writes are off: full");
  EXPECT_EQ(cache_->Degraded(), "cache writes are off: full");
  EXPECT_EQ(disk_.Listings(), 0);
}

}  // namespace
}  // namespace fusiond::cache
