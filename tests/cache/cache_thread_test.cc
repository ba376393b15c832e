// The cache under threads, on a store in memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>

#include "server/cache/cache.h"
#include "server/cache/single_flight.h"
#include "tests/cache/fake_store.h"
#include "tests/cache/sample.h"

namespace fusiond::cache {
namespace {

// The server's use of look-up, single flight and commit, in small: 64 clients, one compile.
TEST(CacheThreadTest, F14_ManyClientsOneCompile) {
  using Flights = SingleFlight<RequestKey, std::shared_ptr<const std::string>>;
  FakeDisk disk;
  Cache cache({}, std::make_unique<FakeStore>(&disk));
  ASSERT_TRUE(cache.WaitUntilOpen(absl::Minutes(1)));
  Flights flights;
  std::atomic<int> compiles{0};
  std::atomic<int> answers{0};
  auto answer = [&](const std::shared_ptr<const std::string>& bytes) {
    EXPECT_EQ(*bytes, SampleExecutable(1));
    ++answers;
  };
  auto from_cache = [&]() -> std::shared_ptr<const std::string> {
    RequestLookup lookup = cache.Lookup(SampleMaterial(1));
    if (lookup.state != LookupState::kHit) return nullptr;
    return cache.FindExecutable(lookup.entry.variants[0].executable)->value;
  };
  std::vector<std::thread> clients;
  for (int c = 0; c < 64; ++c) {
    clients.emplace_back([&] {
      if (auto bytes = from_cache()) return answer(bytes);
      Flights::Joined joined = flights.JoinOrLead(
          RequestKeyOf(SampleMaterial(1)), [&](const Flights::Result& result) { answer(*result); });
      if (!joined.lead.has_value()) return;
      // Another lead may have finished between the look-up and the joining.
      if (auto bytes = from_cache()) return joined.lead->Finish(bytes);
      ++compiles;
      Committed committed = cache.Commit(SampleRequest(1), SampleCompile(1));
      joined.lead->Finish(cache.FindExecutable(committed.executable)->value);
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(compiles, 1);
  EXPECT_EQ(answers, 64);
}

// Look-ups, commits, evictions, pins and upkeep at once: no answer is ever wrong.
TEST(CacheThreadTest, MixedLoadNeverGivesAWrongAnswer) {
  FakeDisk disk;
  CacheOptions options;
  options.memory_bytes = 40000;  // forces traffic between the tiers
  Cache cache(options, std::make_unique<FakeStore>(&disk));
  ASSERT_TRUE(cache.WaitUntilOpen(absl::Minutes(1)));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&cache, t] {
      std::mt19937 random(t);
      for (int round = 0; round < 400; ++round) {
        const int i = 1 + 2 * static_cast<int>(random() % 20);  // none of them long
        switch (random() % 8) {
          case 0:
            ASSERT_TRUE(cache.Evict(RequestKeyOf(SampleMaterial(i)).Hex()).ok());
            break;
          case 1:
            cache.Upkeep();
            ASSERT_TRUE(cache.List(std::nullopt, 5).ok());
            break;
          case 2:
          case 3:
            cache.Commit(SampleRequest(i), SampleCompile(i));
            break;
          default: {
            RequestLookup lookup = cache.Lookup(SampleMaterial(i));
            if (lookup.state != LookupState::kHit) break;
            ASSERT_EQ(lookup.entry.variants[0].executable, base::Sha256(SampleExecutable(i)));
            Pins::Pin pin = cache.Pin(lookup.entry.variants[0].executable);
            if (auto found = cache.FindExecutable(lookup.entry.variants[0].executable)) {
              ASSERT_EQ(*found->value, SampleExecutable(i));
            }
          }
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(cache.Evict("").ok());
  base::MutexLock lock(&disk.mutex);
  EXPECT_TRUE(disk.records.empty());
}

}  // namespace
}  // namespace fusiond::cache
