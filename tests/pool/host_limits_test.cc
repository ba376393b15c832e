#include "server/pool/host_limits.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "runtime/base/file.h"
#include "tests/support/status_matchers.h"

namespace fusiond::server {
namespace {

using ::fusiond::testing::IsOk;

constexpr uint64_t kGiB = uint64_t{1} << 30;

class HostLimitsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = absl::StrCat(::testing::TempDir(), "host_limits_test.", ::getpid());
    std::filesystem::remove_all(root_);
    Write("/proc/meminfo", "MemTotal:       16777216 kB\nMemFree: 1 kB\n");
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void Write(const std::string& path, const std::string& text) {
    ASSERT_THAT(base::MakeFolders(std::filesystem::path(root_ + path).parent_path()), IsOk());
    ASSERT_THAT(base::WriteFileAtomically(root_ + path, text), IsOk());
  }
  std::string root_;
};

TEST_F(HostLimitsTest, WithoutCgroupTheHostLimits) {
  HostLimits limits = ReadHostLimits(root_);
  EXPECT_GE(limits.affinity_cpus, 1);
  EXPECT_EQ(limits.quota_cpus, std::nullopt);
  EXPECT_EQ(limits.memory_bytes, 16 * kGiB);
}

TEST_F(HostLimitsTest, TightestCgroupOnTheWayUpCounts) {
  Write("/proc/self/cgroup", "0::/pods/one\n");
  Write("/sys/fs/cgroup/pods/one/cpu.max", "max 100000\n");
  Write("/sys/fs/cgroup/pods/one/memory.max", "max\n");
  Write("/sys/fs/cgroup/pods/cpu.max", "250000 100000\n");
  Write("/sys/fs/cgroup/pods/memory.max", "4294967296\n");
  Write("/sys/fs/cgroup/cpu.max", "800000 100000\n");
  HostLimits limits = ReadHostLimits(root_);
  EXPECT_EQ(limits.quota_cpus, 2.5);
  EXPECT_EQ(limits.memory_bytes, 4 * kGiB);
}

TEST_F(HostLimitsTest, TightestCgroupOfTheFirstVersionCountsToo) {
  Write("/proc/self/cgroup", "8:memory:/docker/one\n3:cpu,cpuacct:/docker/one\n0::/\n");
  Write("/sys/fs/cgroup/memory/docker/one/memory.limit_in_bytes", "2147483648\n");
  Write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  Write("/sys/fs/cgroup/cpu/docker/one/cpu.cfs_quota_us", "150000\n");
  Write("/sys/fs/cgroup/cpu/docker/one/cpu.cfs_period_us", "100000\n");
  Write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  Write("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  HostLimits limits = ReadHostLimits(root_);
  EXPECT_EQ(limits.quota_cpus, 1.5);
  EXPECT_EQ(limits.memory_bytes, 2 * kGiB);
}

// A container sees its own cgroup at the root, and the path that the host gave it.
TEST_F(HostLimitsTest, PathThatIsNotHereEndsAtTheRoot) {
  Write("/proc/self/cgroup", "8:memory:/docker/one\n");
  Write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "2147483648\n");
  EXPECT_EQ(ReadHostLimits(root_).memory_bytes, 2 * kGiB);
}

TEST_F(HostLimitsTest, AvailableIsWhatTheHostCanGiveWithinTheCgroup) {
  Write("/proc/meminfo", "MemTotal: 16777216 kB\nMemAvailable: 3145728 kB\n");
  EXPECT_EQ(ReadHostLimits(root_).available_bytes, 3 * kGiB);
  Write("/sys/fs/cgroup/memory.max", "1073741824\n");
  EXPECT_EQ(ReadHostLimits(root_).available_bytes, kGiB);
}

TEST_F(HostLimitsTest, MalformedFilesSetNoLimit) {
  Write("/proc/self/cgroup", "1:cpu:/x\n0::/..\n:\nmemory\n\n");
  Write("/sys/fs/cgroup/cpu.max", "-1 0\n");
  Write("/sys/fs/cgroup/memory.max", "lots\n");
  Write("/proc/meminfo", "");
  HostLimits limits = ReadHostLimits(root_);
  EXPECT_EQ(limits.quota_cpus, std::nullopt);
  EXPECT_EQ(limits.memory_bytes, 0u);
}

TEST(ShareOfMemoryTest, IsBetweenLeastAndMost) {
  HostLimits limits;
  EXPECT_EQ(ShareOfMemory(limits, 8, 10, 1000), 1000);
  limits.available_bytes = 800;
  EXPECT_EQ(ShareOfMemory(limits, 8, 10, 1000), 100);
  EXPECT_EQ(ShareOfMemory(limits, 8, 10, 50), 50);
  EXPECT_EQ(ShareOfMemory(limits, 8, 200, 1000), 200);
}

TEST(CompileProcessCountTest, SmallestBoundWins) {
  auto count = [](int cpus, std::optional<double> quota, uint64_t memory, int cap) {
    HostLimits limits;
    limits.affinity_cpus = cpus;
    limits.quota_cpus = quota;
    limits.memory_bytes = memory;
    return CompileProcessCount(limits, kGiB, cap);
  };
  EXPECT_EQ(count(64, std::nullopt, 0, 0), 64);
  EXPECT_EQ(count(64, 2.5, 0, 0), 3);
  EXPECT_EQ(count(64, 0.1, 0, 0), 1);
  EXPECT_EQ(count(64, std::nullopt, 16 * kGiB, 0), 16);
  EXPECT_EQ(count(64, std::nullopt, kGiB / 2, 0), 1);
  EXPECT_EQ(count(64, 32.0, 16 * kGiB, 4), 4);
}

}  // namespace
}  // namespace fusiond::server
