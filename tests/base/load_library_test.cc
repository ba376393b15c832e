#include "runtime/base/load_library.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <cmath>
#include <filesystem>

#include "tests/support/status_matchers.h"
#include "tests/support/temp_folder.h"

namespace fusiond::base {
namespace {

using ::fusiond::testing::IsOk;
using ::fusiond::testing::StatusIs;
using ::testing::HasSubstr;

std::string PathOfLibm() {
  const absl::StatusOr<void*> libm = LoadLibrary("libm.so.6");
  Dl_info info = {};
  if (!libm.ok() || ::dladdr(::dlsym(*libm, "cosh"), &info) == 0) return "";
  return std::filesystem::canonical(info.dli_fname).string();
}

TEST(LoadLibraryTest, IsLoadedByNameAndByPath) {
  EXPECT_THAT(LoadLibrary("libm.so.6"), IsOk());
  EXPECT_THAT(LoadLibrary(PathOfLibm()), IsOk());
}

TEST(LoadLibraryTest, WhatIsNoFileIsNotOpened) {
  const testing::TempFolder folder;
  const std::string pipe = folder.path() + "/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const std::pair<std::string, std::string> rows[] = {
      {pipe, ": is a pipe, no file"},
      {"/dev/zero", ": is a device, no file"},
      {folder.path(), ": is a folder, no file"},
      {folder.path() + "/none", ": cannot open shared object file: No such file"},
      {"no such library", ": cannot open shared object file: No such file"}};
  for (const auto& [path, words] : rows)
    EXPECT_THAT(LoadLibrary(path), StatusIs(absl::StatusCode::kNotFound, HasSubstr(path + words)))
        << path;
}

// The loader would map it, and the first touch of a page behind its end would be SIGBUS.
TEST(LoadLibraryTest, FileThatEndsBeforeItsSegmentsIsRefused) {
  const testing::TempFolder folder;
  const std::string cut = folder.path() + "/libm.so.6";
  std::filesystem::copy_file(PathOfLibm(), cut);
  EXPECT_THAT(LoadLibrary(cut), IsOk());
  for (const uintmax_t bytes : {std::filesystem::file_size(cut) / 2, uintmax_t{4096}}) {
    const std::string shorter = folder.path() + "/" + std::to_string(bytes);
    std::filesystem::copy_file(cut, shorter);
    std::filesystem::resize_file(shorter, bytes);
    EXPECT_THAT(LoadLibrary(shorter),
                StatusIs(absl::StatusCode::kNotFound,
                         HasSubstr(": is cut short: " + std::to_string(bytes) + " bytes of at")));
  }
}

}  // namespace
}  // namespace fusiond::base
