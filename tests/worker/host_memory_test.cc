#include "runtime/worker/host_memory.h"

#include <sys/resource.h>

#include <fstream>

#include "runtime/worker/buffers.h"
#include "tests/support/status_matchers.h"

namespace fusiond::worker {
namespace {

using ::fusiond::testing::IsOk;
using ::fusiond::testing::StatusIs;
using ::testing::Eq;
using ::testing::HasSubstr;

class HostMemoryTest : public ::testing::Test {
 protected:
  void SetAvailable(uint64_t bytes) {
    std::ofstream(path_) << "MemTotal:       8000000 kB\nMemFree:          1 kB\nMemAvailable:   "
                         << bytes / 1024 << " kB\nBuffers:   3 kB\n";
  }
  const std::string path_ = ::testing::TempDir() + "/host_memory_test_meminfo";
};

TEST_F(HostMemoryTest, FreeIsWhatIsLeftOfTheLimitAndWhatTheKernelCanGive) {
  SetAvailable(5000 * 1024);
  HostMemory memory(9000 * 1024, path_);
  EXPECT_EQ(memory.limit_bytes(), 9000u * 1024);
  EXPECT_EQ(memory.FreeBytes(), 5000u * 1024);
  memory.Take(8000 * 1024);
  EXPECT_EQ(memory.FreeBytes(), 1000u * 1024);
  SetAvailable(10 * 1024);  // seen at once
  EXPECT_EQ(memory.FreeBytes(), 10u * 1024);
  EXPECT_THAT(memory.CheckRoom("host memory", 10 * 1024), IsOk());
  EXPECT_THAT(memory.CheckRoom("host memory", 10 * 1024 + 1),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       Eq("host memory; 10241 bytes needed, 10240 free of 9216000")));
}

TEST_F(HostMemoryTest, WithoutMeminfoTheLimitAloneCounts) {
  HostMemory memory(1000, "/nowhere");
  memory.Take(2000);
  EXPECT_EQ(memory.FreeBytes(), 0u);
  memory.Give(1500);
  EXPECT_EQ(memory.FreeBytes(), 500u);
  EXPECT_GT(HostMemory(0, "/nowhere").limit_bytes(), 0u);  // the machine's
}

// One by one they fit, together they do not.
TEST_F(HostMemoryTest, LowerLimitOfAddressSpaceCounts) {
  struct rlimit given;
  ASSERT_EQ(::getrlimit(RLIMIT_AS, &given), 0);
  constexpr uint64_t kLimit = uint64_t{1} << 46;  // beyond what sanitizers reserve
  const struct rlimit lower = {kLimit, given.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &lower), 0);
  const HostMemory memory(2 * kLimit, "/nowhere");
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &given), 0);
  EXPECT_EQ(memory.limit_bytes(), kLimit);
}

TEST_F(HostMemoryTest, BuffersTakeAndGiveBack) {
  HostMemory memory(3 << 20, "/nowhere");
  {
    ASSERT_OK_AND_ASSIGN(const auto first, AllocateHost(memory, 2 << 20));
    EXPECT_THAT(AllocateHost(memory, 2 << 20),
                StatusIs(absl::StatusCode::kResourceExhausted,
                         HasSubstr("2097152 bytes needed, 1048576 free of 3145728")));
  }
  EXPECT_THAT(AllocateHost(memory, 2 << 20), IsOk());
}

}  // namespace
}  // namespace fusiond::worker
