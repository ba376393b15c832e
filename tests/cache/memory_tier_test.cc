#include "server/cache/memory_tier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"

namespace fusiond::cache {
namespace {

RecordKey KeyOf(int i) { return RecordKey::Executable(base::Sha256(absl::StrCat(i))); }
std::shared_ptr<const Record> Of(std::string payload) {
  return std::make_shared<const Record>(Record{"", std::move(payload)});
}

TEST(MemoryTierTest, KeepsAndReplacesAndRemoves) {
  MemoryTier tier(1 << 20);
  EXPECT_EQ(tier.Get(KeyOf(1)), nullptr);
  tier.Put(KeyOf(1), Of("one"));
  tier.Put(KeyOf(1), Of("two"));
  EXPECT_EQ(tier.Get(KeyOf(1))->payload, "two");
  EXPECT_FALSE(tier.PutIfAbsent(KeyOf(1), Of("three")));
  EXPECT_EQ(tier.Get(KeyOf(1))->payload, "two");
  EXPECT_EQ(tier.GetStats().entries, 1u);
  tier.Remove(KeyOf(1));
  tier.Remove(KeyOf(1));
  EXPECT_EQ(tier.Get(KeyOf(1)), nullptr);
  EXPECT_EQ(tier.GetStats().bytes, 0u);
  EXPECT_TRUE(tier.PutIfAbsent(KeyOf(1), Of("three")));
}

TEST(MemoryTierTest, StaysWithinItsBudget) {
  constexpr size_t kBudget = 1 << 20;
  MemoryTier tier(kBudget);
  for (int i = 0; i < 1000; ++i) {
    tier.Put(KeyOf(i), Of(std::string(10000, 'x')));
    ASSERT_LE(tier.GetStats().bytes, kBudget);
    ASSERT_NE(tier.Get(KeyOf(i)), nullptr);
  }
  EXPECT_GT(tier.GetStats().entries, 90u);
  EXPECT_EQ(tier.GetStats().entries + tier.GetStats().evictions, 1000u);
}

TEST(MemoryTierTest, EntryUsedAgainAndAgainStays) {
  MemoryTier tier(1 << 20);
  tier.Put(KeyOf(0), Of("hot"));
  for (int i = 1; i < 1000; ++i) {
    tier.Put(KeyOf(i), Of(std::string(4000, 'x')));
    ASSERT_NE(tier.Get(KeyOf(0)), nullptr) << i;
  }
}

TEST(MemoryTierTest, EntryAboveTheBudgetIsNotKept) {
  MemoryTier tier(1000);
  tier.Put(KeyOf(1), Of("small"));
  tier.Put(KeyOf(1), Of(std::string(2000, 'x')));
  EXPECT_EQ(tier.Get(KeyOf(1)), nullptr);
  EXPECT_EQ(tier.GetStats().bytes, 0u);
}

TEST(MemoryTierTest, LargeEntryMayTakeTheWholeBudget) {
  MemoryTier tier(1 << 20);
  for (int i = 0; i < 50; ++i) tier.Put(KeyOf(i), Of(std::string(10000, 'x')));
  tier.Put(KeyOf(99), Of(std::string((1 << 20) - 1000, 'x')));
  EXPECT_NE(tier.Get(KeyOf(99)), nullptr);
  EXPECT_EQ(tier.GetStats().entries, 1u);
}

TEST(MemoryTierTest, KeysListsOneKindByPrefix) {
  MemoryTier tier(1 << 20);
  const base::Digest digest = base::Sha256("x");
  tier.Put(RecordKey::Executable(digest), Of(""));
  tier.Put(RecordKey::Of(RequestKey{digest}), Of(""));
  EXPECT_THAT(tier.Keys(RecordKind::kRequest, ""),
              ::testing::ElementsAre(RecordKey::Of(RequestKey{digest})));
  EXPECT_THAT(tier.Keys(RecordKind::kRequest, digest.View().substr(0, 2)), ::testing::SizeIs(1));
  EXPECT_THAT(tier.Keys(RecordKind::kRequest, "no"), ::testing::IsEmpty());
}

TEST(MemoryTierTest, ThreadsNeverSeeAnotherKeysRecord) {
  MemoryTier tier(200000);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&tier, t] {
      std::mt19937 random(t);
      for (int i = 0; i < 5000; ++i) {
        const int n = static_cast<int>(random() % 100);
        if (std::shared_ptr<const Record> record = tier.Get(KeyOf(n)); record != nullptr) {
          ASSERT_EQ(record->payload, std::string(5000, static_cast<char>(n)));
        }
        if (random() % 8 == 0) tier.Remove(KeyOf(n));
        tier.Put(KeyOf(n), Of(std::string(5000, static_cast<char>(n))));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(tier.GetStats().bytes, 200000u);
  for (int i = 0; i < 100; ++i) tier.Remove(KeyOf(i));
  EXPECT_EQ(tier.GetStats().bytes, 0u);
}

}  // namespace
}  // namespace fusiond::cache
