#include "server/cache/state_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "absl/strings/str_cat.h"
#include "server/cache/nvrtc_identity.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_folder.h"

namespace fusiond::cache {
namespace {

using ::fusiond::testing::IsOk;
using ::fusiond::testing::StatusIs;
using ::testing::HasSubstr;

TEST(StateFolderTest, F21_NetworkAndOverlayFileSystemsAreKnown) {
  EXPECT_EQ(UnreliableFileSystemName(0x6969), "NFS");
  EXPECT_EQ(UnreliableFileSystemName(0x794C7630), "overlayfs");
  EXPECT_EQ(UnreliableFileSystemName(0x65735546), "FUSE");
  // statfs gives a signed long: numbers above 2^31 arrive negative on some machines.
  EXPECT_EQ(UnreliableFileSystemName(static_cast<int32_t>(0xFF534D42)), "CIFS");
  for (int64_t local : {0xEF53, 0x58465342, 0x01021994}) {  // ext4, xfs, tmpfs
    EXPECT_EQ(UnreliableFileSystemName(local), "");
  }
}

TEST(StateFolderTest, F20_LockNamesItsHolder) {
  testing::TempFolder folder;
  {
    ASSERT_OK_AND_ASSIGN(base::UniqueFd lock, LockFolder(folder.path()));
    EXPECT_THAT(LockFolder(folder.path()),
                StatusIs(absl::StatusCode::kAlreadyExists,
                         HasSubstr(absl::StrCat("in use by process ", ::getpid()))));
  }
  EXPECT_THAT(LockFolder(folder.path()), IsOk());
}

TEST(StateFolderTest, FolderThatIsNotThereIsNamed) {
  EXPECT_THAT(LockFolder("/nonexistent/folder"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("/nonexistent/folder/lock")));
  EXPECT_THAT(CheckFileSystem("/nonexistent/folder"), StatusIs(absl::StatusCode::kNotFound));
}

TEST(NvrtcIdentityTest, IsRememberedAcrossRestarts) {
  testing::TempFolder folder;
  EXPECT_EQ(LastNvrtcIdentity(folder.path()), std::nullopt);
  EXPECT_THAT(RememberNvrtcIdentity(folder.path(), "13.0+aabb+ccdd"), IsOk());
  EXPECT_EQ(LastNvrtcIdentity(folder.path()), "13.0+aabb+ccdd");
  EXPECT_THAT(RememberNvrtcIdentity(folder.path(), "13.1+x"), IsOk());
  EXPECT_EQ(LastNvrtcIdentity(folder.path()), "13.1+x");
}

TEST(NvrtcIdentityTest, F01_DamagedFileIsNoIdentity) {
  testing::TempFolder folder;
  ASSERT_THAT(RememberNvrtcIdentity(folder.path(), "13.0+aabb+ccdd"), IsOk());
  const std::string path = folder.path() + "/nvrtc";
  ASSERT_OK_AND_ASSIGN(const std::string good, base::ReadFile(path));
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] ^= 1;
    std::ofstream(path, std::ios::binary) << bad;
    EXPECT_EQ(LastNvrtcIdentity(folder.path()), std::nullopt) << "byte " << i;
    std::ofstream(path, std::ios::binary) << good.substr(0, i);
    EXPECT_EQ(LastNvrtcIdentity(folder.path()), std::nullopt) << "cut at " << i;
  }
}

}  // namespace
}  // namespace fusiond::cache
