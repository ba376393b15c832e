// kill -9 at any instant of a commit, and a second process on one folder. CRASH_WRITER is the path
// of crash_writer.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "runtime/base/file.h"
#include "server/cache/cache.h"
#include "server/cache/leveldb_store.h"
#include "tests/cache/sample.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_folder.h"
#include "tests/support/test_seed.h"

namespace fusiond::cache {
namespace {

class Child {
 public:
  Child(const std::string& folder, int first) {
    int ends[2];
    FUSIOND_CHECK(::pipe2(ends, O_CLOEXEC) == 0);
    base::UniqueFd write_end(ends[1]);
    output_ = base::UniqueFd(ends[0]);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, write_end.get(), STDOUT_FILENO);
    std::string program = CRASH_WRITER, folder_arg = folder, first_arg = absl::StrCat(first);
    char* argv[] = {program.data(), folder_arg.data(), first_arg.data(), nullptr};
    FUSIOND_CHECK(::posix_spawn(&pid_, CRASH_WRITER, &actions, nullptr, argv, environ) == 0);
    ::posix_spawn_file_actions_destroy(&actions);
  }
  ~Child() { Kill(); }

  // One commit has returned; false when the child has ended.
  bool AwaitCommit() {
    char byte;
    return ::read(output_.get(), &byte, 1) == 1;
  }
  // Kills it; returns how many commits it had announced beyond those awaited.
  int Kill() {
    if (pid_ == 0) return 0;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
    int more = 0;
    while (AwaitCommit()) ++more;
    return more;
  }
  int ExitStatus() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t pid_ = 0;
  base::UniqueFd output_;
};

std::unique_ptr<Cache> OpenCache(const std::string& folder) {
  LevelDbStoreOptions options;
  options.folder = folder;
  options.allow_network_fs = true;
  absl::StatusOr<std::unique_ptr<LevelDbStore>> store = LevelDbStore::Create(options);
  EXPECT_THAT(store, testing::IsOk());
  if (!store.ok()) return nullptr;
  auto cache = std::make_unique<Cache>(CacheOptions(), *std::move(store));
  EXPECT_TRUE(cache->WaitUntilOpen(absl::Minutes(1)));
  return cache;
}

// Nothing of number i, or all of it.
void ExpectCompleteOrAbsent(Cache& cache, int i, bool must_be_there) {
  SCOPED_TRACE(absl::StrCat("entry ", i));
  RequestLookup lookup = cache.Lookup(SampleMaterial(i));
  if (lookup.state == LookupState::kAbsent) {
    EXPECT_FALSE(must_be_there);
    EXPECT_FALSE(cache.FindCanonical(SampleCanonical(i)).has_value());
    EXPECT_FALSE(cache.FindImage(SampleImage(i)).has_value());
    EXPECT_FALSE(cache.FindExecutable(base::Sha256(SampleExecutable(i))).has_value());
    return;
  }
  ASSERT_EQ(lookup.state, LookupState::kHit);
  ASSERT_EQ(lookup.entry.variants.size(), 1u);
  auto executable = cache.FindExecutable(lookup.entry.variants[0].executable);
  ASSERT_TRUE(executable.has_value());
  EXPECT_TRUE(*executable->value == SampleExecutable(i));
  auto canonical = cache.FindCanonical(SampleCanonical(i));
  ASSERT_TRUE(canonical.has_value());
  EXPECT_EQ(canonical->value, lookup.entry.variants[0].executable);
  auto image = cache.FindImage(SampleImage(i));
  ASSERT_TRUE(image.has_value());
  EXPECT_EQ(*image->value, absl::StrCat("cubin ", i));
}

TEST(CacheCrashTest, F02_KilledAtAnyInstantEntriesAreAbsentOrComplete) {
  std::mt19937 random(::fusiond::testing::TestSeed());
  const char* nightly = std::getenv("FUSIOND_NIGHTLY");  // NOLINT(concurrency-mt-unsafe): alone
  const int rounds = nightly != nullptr ? 400 : 25;
  testing::TempFolder folder;
  int committed = 0;
  for (int round = 0; round < rounds; ++round) {
    {
      Child child(folder.path(), committed);
      for (uint32_t n = random() % 20; n > 0; --n) {
        ASSERT_TRUE(child.AwaitCommit());
        ++committed;
      }
      // Somewhere inside the next commits.
      const auto until =
          std::chrono::steady_clock::now() + std::chrono::microseconds(random() % 3000);
      while (std::chrono::steady_clock::now() < until) {
      }
      committed += child.Kill();
    }
    std::unique_ptr<Cache> cache = OpenCache(folder.path());
    ASSERT_NE(cache, nullptr);
    for (int i = std::max(0, committed - 60); i < committed; ++i) {
      ExpectCompleteOrAbsent(*cache, i, true);
    }
    // The commit under way when the signal came: one at most, and it may have been announced by
    // nobody.
    ExpectCompleteOrAbsent(*cache, committed, false);
    ExpectCompleteOrAbsent(*cache, committed + 1, false);
    EXPECT_EQ(cache->Lookup(SampleMaterial(committed + 1)).state, LookupState::kAbsent);
    const CacheStats stats = cache->Stats();
    EXPECT_EQ(stats.store.bad_records, 0u);
    EXPECT_EQ(stats.store.repairs, 0u);
    EXPECT_EQ(stats.degraded, "");
  }
  EXPECT_GT(committed, 0);
}

TEST(CacheCrashTest, F20_SecondProcessIsRefusedWithItsOwnStatus) {
  testing::TempFolder folder;
  std::unique_ptr<Cache> cache = OpenCache(folder.path());
  ASSERT_NE(cache, nullptr);
  cache->Commit(SampleRequest(1), SampleCompile(1));
  EXPECT_EQ(Child(folder.path(), 0).ExitStatus(), 3);
  EXPECT_TRUE(cache->Commit(SampleRequest(2), SampleCompile(2)).persisted);
  ExpectCompleteOrAbsent(*cache, 1, true);
}

}  // namespace
}  // namespace fusiond::cache
