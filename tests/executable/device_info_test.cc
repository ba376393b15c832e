#include "runtime/executable/device_info.h"

#include <set>

#include "tests/support/status_matchers.h"

namespace fusiond::executable {
namespace {

using ::fusiond::testing::StatusIs;
using ::testing::HasSubstr;

TEST(DeviceInfoTest, ProfileNamesAreUniqueAndEveryArchHasADefault) {
  std::set<std::string> names, archs;
  for (const DeviceInfo& info : Profiles()) {
    EXPECT_TRUE(names.insert(info.profile).second) << info.profile;
    archs.insert(info.arch);
  }
  for (const std::string& arch : archs) {
    ASSERT_OK_AND_ASSIGN(DeviceInfo info, ProfileByName(arch));
    EXPECT_EQ(info.arch, arch);
  }
  EXPECT_EQ(archs, (std::set<std::string>{"cpu", "sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a",
                                          "sm_120a"}));
}

TEST(DeviceInfoTest, CardsMapToTheirProfileOrTheArchDefault) {
  ASSERT_OK_AND_ASSIGN(DeviceInfo h200, ProfileForCard("NVIDIA H200", 90));
  EXPECT_EQ(h200.profile, "h200");
  ASSERT_OK_AND_ASSIGN(DeviceInfo l40s, ProfileForCard("NVIDIA L40S", 89));
  EXPECT_EQ(l40s.profile, "l40s");
  ASSERT_OK_AND_ASSIGN(DeviceInfo unknown, ProfileForCard("NVIDIA Something New", 90));
  EXPECT_EQ(unknown.profile, "sm_90a");
}

TEST(DeviceInfoTest, UnknownNamesAndCardsAreErrors) {
  EXPECT_THAT(ProfileByName("h900"), StatusIs(absl::StatusCode::kNotFound, HasSubstr("h200")));
  EXPECT_THAT(ProfileForCard("NVIDIA V100", 70),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("7.0")));
}

TEST(DeviceInfoTest, OnlyHopperAndLaterHaveClusters) {
  for (const DeviceInfo& info : Profiles()) {
    EXPECT_EQ(info.has_clusters, info.compute_capability >= 90) << info.profile;
    EXPECT_EQ(info.has_pdl, info.compute_capability >= 90) << info.profile;
  }
}

}  // namespace
}  // namespace fusiond::executable
