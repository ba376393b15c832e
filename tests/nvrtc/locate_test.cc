#include "compiler/nvrtc/locate.h"

#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "runtime/base/file.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_folder.h"

namespace fusiond::nvrtc {
namespace {

using ::fusiond::testing::IsOk;
using ::fusiond::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(NvrtcLocateTest, CallersFoldersComeBeforeInstalledCuda) {
  std::vector<std::string> folders = SearchFolders({.folders = {"/b", "/a", "/b", ""}});
  auto position = [&](const std::string& folder) {
    auto it = std::find(folders.begin(), folders.end(), folder);
    EXPECT_NE(it, folders.end()) << folder;
    return it - folders.begin();
  };
  EXPECT_EQ(position("/b"), 0);
  EXPECT_LT(position("/b/nvidia/cu13/lib"), position("/a"));
  EXPECT_LT(position("/a/nvidia/cuda_nvrtc/lib"), position("/usr/local/cuda/lib64"));
  EXPECT_EQ(std::count(folders.begin(), folders.end(), "/b/lib64"), 1);
}

TEST(NvrtcLocateTest, WrongExplicitPathIsNotFoundWithoutSearch) {
  for (const char* path : {"/nonexistent/libnvrtc.so.13", "libnvrtc.so.13", "/usr/include"}) {
    EXPECT_THAT(OpenNvrtc({.explicit_path = path}),
                StatusIs(absl::StatusCode::kNotFound, HasSubstr("libnvrtc.so.13")))
        << path;
  }
}

TEST(NvrtcLocateTest, MissingBuiltinsAreNamed) {
  EXPECT_THAT(OpenBuiltins("/nonexistent/libnvrtc.so.13", 99, 7),
              StatusIs(absl::StatusCode::kNotFound, AllOf(HasSubstr("/nonexistent/libnvrtc.so.13"),
                                                          HasSubstr("libnvrtc-builtins.so.99.7"))));
}

TEST(NvrtcLocateTest, FileThatOthersMayReplaceIsRefused) {
  EXPECT_THAT(CheckRootOwned("/bin/sh"), IsOk());
  std::string path = absl::StrCat(::testing::TempDir(), "locate_test.so.",
                                  ::getpid());  // under a folder open to all
  ASSERT_THAT(base::WriteFileAtomically(path, "x"), IsOk());
  EXPECT_THAT(CheckRootOwned(path), StatusIs(absl::StatusCode::kPermissionDenied));
  EXPECT_THAT(CheckRootOwned("/nonexistent/x"), StatusIs(absl::StatusCode::kNotFound));
}

// glibc: "No such file or directory".
TEST(NvrtcLocateTest, LibraryForAnotherArchitectureIsSaidToBeThat) {
  Elf64_Ehdr header = {};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_DYN;
  header.e_machine = EM_S390;
  header.e_version = EV_CURRENT;
  header.e_ehsize = sizeof(header);
  header.e_phentsize = sizeof(Elf64_Phdr);
  const fusiond::testing::TempFolder folder;
  const std::string path = folder.path() + "/libnvrtc.so.13";
  ASSERT_THAT(
      base::WriteFileAtomically(path, {reinterpret_cast<const char*>(&header), sizeof(header)}),
      IsOk());
  EXPECT_THAT(OpenNvrtc({.explicit_path = path}),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr(path + ": is there, but for another architecture")));
}

}  // namespace
}  // namespace fusiond::nvrtc
