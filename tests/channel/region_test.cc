#include "runtime/channel/region.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "tests/support/status_matchers.h"

namespace fusiond::channel {
namespace {

using ::fusiond::testing::IsOk;
using ::fusiond::testing::StatusIs;
using ::testing::HasSubstr;

constexpr RingGeometry kGeometry{16, 8192};

TEST(RegionTest, ClientSeesWhatTheWorkerWrote) {
  ASSERT_OK_AND_ASSIGN(WorkerRegions worker, CreateRegions(kGeometry, 77, kFeatureCopy));
  ASSERT_OK_AND_ASSIGN(ClientRegions client,
                       MapRegions(worker.memory_a.fd.get(), worker.memory_b.fd.get(), kGeometry));
  EXPECT_EQ(client.epoch, 77u);
  EXPECT_EQ(client.b.control->header.features, kFeatureCopy);
  EXPECT_EQ(client.a.control->header.slab_bytes, 8192u);
  worker.b.entries[15].cookie = 5;
  EXPECT_EQ(client.b.entries[15].cookie, 5u);
  std::memcpy(client.a.slab + 8184, "slab end", 8);
  EXPECT_EQ(std::memcmp(worker.a.slab + 8184, "slab end", 8), 0);
  EXPECT_EQ(client.a.slab + 8192, client.mapping_a.data() + client.mapping_a.size());
}

TEST(RegionTest, F34_ClientCanNeitherResizeNorWriteTheWorkersRegion) {
  ASSERT_OK_AND_ASSIGN(WorkerRegions worker, CreateRegions(kGeometry, 1, 0));
  for (int fd : {worker.memory_a.fd.get(), worker.memory_b.fd.get()}) {
    EXPECT_EQ(ftruncate(fd, 4096), -1);
    EXPECT_EQ(errno, EPERM);
    EXPECT_EQ(ftruncate(fd, 1 << 20), -1);
    EXPECT_EQ(errno, EPERM);
    EXPECT_EQ(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
    EXPECT_EQ(errno, EPERM);
  }
  const int b = worker.memory_b.fd.get();
  EXPECT_EQ(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, b, 0), MAP_FAILED);
  EXPECT_EQ(pwrite(b, "x", 1, 0), -1);
  EXPECT_EQ(fallocate(b, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096), -1);
  ASSERT_OK_AND_ASSIGN(ClientRegions client, MapRegions(worker.memory_a.fd.get(), b, kGeometry));
  EXPECT_EQ(mprotect(client.mapping_b.data(), 4096, PROT_READ | PROT_WRITE), -1);
}

TEST(RegionTest, ImpossibleGeometryIsNamed) {
  const struct {
    RingGeometry geometry;
    const char* text;
  } cases[] = {
      {{0, 4096}, "got 0"},       {{1, 4096}, "got 1"},           {{3, 4096}, "got 3"},
      {{8192, 4096}, "got 8192"}, {{~0u, 4096}, "4294967295"},    {{16, 0}, "got 0"},
      {{16, 4095}, "got 4095"},   {{16, 8 << 20}, "got 8388608"},
  };
  for (const auto& c : cases) {
    EXPECT_THAT(CheckGeometry(c.geometry),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(c.text)));
    EXPECT_FALSE(CreateRegions(c.geometry, 1, 0).ok());
  }
}

TEST(RegionTest, F38_OtherLayoutIsRefusedWithBothValues) {
  ASSERT_OK_AND_ASSIGN(WorkerRegions worker, CreateRegions(kGeometry, 1, 0));
  const int a = worker.memory_a.fd.get();
  const int b = worker.memory_b.fd.get();
  RegionHeader& header = worker.b.control->header;
  const RegionHeader original = header;
  header.abi_major = 9;
  EXPECT_THAT(
      MapRegions(a, b, kGeometry).status(),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr(absl::StrCat("9.", kAbiMinor))));
  header = original;
  header.completion_entry_bytes = 128;
  EXPECT_THAT(MapRegions(a, b, kGeometry).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("completion entry bytes is 128, this client expects 64")));
  header = original;
  header.magic ^= 1;
  EXPECT_THAT(MapRegions(a, b, kGeometry).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("magic")));
  header = original;
  EXPECT_THAT(MapRegions(b, a, kGeometry).status(), StatusIs(absl::StatusCode::kFailedPrecondition))
      << "regions exchanged";
  EXPECT_THAT(MapRegions(a, b, {32, 8192}).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition))
      << "memory too small";
  EXPECT_THAT(MapRegions(a, b, kGeometry), IsOk());
}

TEST(RegionTest, UnsealedMemoryIsRefused) {
  ASSERT_OK_AND_ASSIGN(WorkerRegions worker, CreateRegions(kGeometry, 1, 0));
  base::UniqueFd unsealed(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(unsealed.get(), 1 << 20), 0);
  EXPECT_THAT(MapRegions(unsealed.get(), worker.memory_b.fd.get(), kGeometry).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("seals")));
  EXPECT_THAT(MapRegions(worker.memory_a.fd.get(), unsealed.get(), kGeometry).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("seals")));
}

}  // namespace
}  // namespace fusiond::channel
