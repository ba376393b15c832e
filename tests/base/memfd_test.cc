#include "runtime/base/memfd.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "tests/support/status_matchers.h"

namespace fusiond::base {
namespace {

using ::fusiond::testing::IsOk;
using ::fusiond::testing::StatusIs;

TEST(MemfdTest, F34_PeerWritableCannotBeResized) {
  ASSERT_OK_AND_ASSIGN(SharedMemory memory, CreatePeerWritable("test", 8192));
  EXPECT_EQ(ftruncate(memory.fd.get(), 4096), -1);
  EXPECT_EQ(errno, EPERM);
  EXPECT_EQ(ftruncate(memory.fd.get(), 16384), -1);
  ASSERT_OK_AND_ASSIGN(Mapping peer, Mapping::Map(memory.fd.get(), 8192, true));
  std::memcpy(peer.data(), "hello", 6);
  EXPECT_STREQ(memory.mapping.data(), "hello");
}

TEST(MemfdTest, OwnerWritableIsReadOnlyForPeers) {
  ASSERT_OK_AND_ASSIGN(SharedMemory memory, CreateOwnerWritable("test", 4096));
  EXPECT_FALSE(Mapping::Map(memory.fd.get(), 4096, true).ok());
  ASSERT_OK_AND_ASSIGN(Mapping peer, Mapping::Map(memory.fd.get(), 4096, false));
  EXPECT_EQ(mprotect(peer.data(), 4096, PROT_READ | PROT_WRITE), -1);
  std::memcpy(memory.mapping.data(), "seen", 5);
  EXPECT_STREQ(peer.data(), "seen");
}

TEST(MemfdTest, ImmutableRefusesWrites) {
  ASSERT_OK_AND_ASSIGN(UniqueFd fd, CreateImmutable("test", "contents"));
  EXPECT_EQ(pwrite(fd.get(), "x", 1, 0), -1);
  EXPECT_FALSE(Mapping::Map(fd.get(), 8, true).ok());
  ASSERT_OK_AND_ASSIGN(Mapping mapping, Mapping::Map(fd.get(), 8, false));
  EXPECT_EQ(mapping.view(), "contents");
}

TEST(MemfdTest, CheckSealsNamesWhatIsMissing) {
  ASSERT_OK_AND_ASSIGN(SharedMemory memory, CreatePeerWritable("test", 4096));
  EXPECT_THAT(CheckSeals(memory.fd.get(), F_SEAL_SHRINK | F_SEAL_GROW, 4096), IsOk());
  EXPECT_THAT(CheckSeals(memory.fd.get(), F_SEAL_WRITE, 4096),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(CheckSeals(memory.fd.get(), F_SEAL_SHRINK, 8192),
              StatusIs(absl::StatusCode::kFailedPrecondition, ::testing::HasSubstr("8192")));
}

}  // namespace
}  // namespace fusiond::base
