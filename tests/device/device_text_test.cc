#include "compiler/device/device_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler/nvrtc/nvrtc.h"
#include "runtime/base/file.h"
#include "tests/support/nvrtc_for_tests.h"
#include "tests/support/status_matchers.h"

namespace fusiond::device {
namespace {

using ::fusiond::testing::IsOk;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::string WholePrelude() {
  std::string all;
  for (const DeviceFile& file : DeviceFiles()) all.append(file.text.data(), file.text.size());
  return all;
}

TEST(DeviceTextTest, EachFileStandsAfterThoseItNeeds) {
  std::set<absl::string_view> before;
  for (const DeviceFile& file : DeviceFiles()) {
    for (absl::string_view need : Needs(file)) EXPECT_THAT(before, Contains(need)) << file.name;
    EXPECT_EQ(Needs(file).empty(), file.name == "types.cuh") << file.name;
    before.insert(file.name);
  }
}

TEST(DeviceTextTest, FilesIncludeNothing) {
  for (const DeviceFile& file : DeviceFiles()) {
    EXPECT_THAT(std::string(file.text), Not(HasSubstr("#include"))) << file.name;
    EXPECT_THAT(std::string(file.text), StartsWith("// ")) << file.name;
  }
}

TEST(DeviceTextTest, PreludeHoldsWhatIsNeededOnceInOrder) {
  const std::string prelude = Prelude({"copy.cuh", "pdl.cuh"});
  std::string expected;
  for (const DeviceFile& file : DeviceFiles()) {
    for (absl::string_view name : {"types.cuh", "smem.cuh", "mbarrier.cuh", "copy.cuh", "pdl.cuh"})
      if (file.name == name) expected.append(file.text.data(), file.text.size());
  }
  EXPECT_EQ(prelude, expected);
  EXPECT_EQ(Prelude({}), "");
}

class DeviceCompileTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    absl::StatusOr<std::unique_ptr<nvrtc::Nvrtc>> nvrtc =
        nvrtc::Nvrtc::Open(testing::NvrtcLocationForTests());
    if (!nvrtc.ok()) GTEST_SKIP() << nvrtc.status();
    nvrtc_ = *std::move(nvrtc);
  }
  absl::Status Compile(const std::string& source) {
    return nvrtc_->Compile({source, "device_text_test.cu", GetParam(), {"--std=c++17"}}).status();
  }

  std::unique_ptr<nvrtc::Nvrtc> nvrtc_;
};

TEST_P(DeviceCompileTest, EveryHelperCompiles) {
  ASSERT_OK_AND_ASSIGN(std::string body, base::ReadFile("tests/device/every_helper.cuh"));
  EXPECT_THAT(Compile(absl::StrCat(WholePrelude(), body)), IsOk());
}

TEST_P(DeviceCompileTest, EachFileCompilesWithWhatItNeeds) {
  for (const DeviceFile& file : DeviceFiles()) {
    EXPECT_THAT(Compile(absl::StrCat(Prelude({file.name}), "__global__ void k() {}\n")), IsOk())
        << file.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Archs, DeviceCompileTest,
                         ::testing::Values("sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a",
                                           "sm_120a"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace fusiond::device
