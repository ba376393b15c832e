#include "compiler/schedule/axis_match.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fusiond::schedule {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(AxisMatchTest, AxesOfEqualExtentMeetInnermostFirst) {
  AxisMatch match({{8}, {32}});
  EXPECT_THAT(match.Unite({{32}, {8}}, {}), ElementsAre(1, 0));
  EXPECT_THAT(match.axes(), ElementsAre(Axis{8}, Axis{32}));
}

TEST(AxisMatchTest, KnownPairsComeFirst) {
  AxisMatch match({{8}, {8}});
  EXPECT_THAT(match.Unite({{8}, {8}}, {{0, 1}}), ElementsAre(1, 0));
}

TEST(AxisMatchTest, TwoAxesNeverBecomeOne) {
  AxisMatch match({{8}, {8}});
  EXPECT_THAT(match.Unite({{8}, {8}}, {{0, 1}, {1, 1}}), IsEmpty());
  DimMap frame = {0, 0};
  EXPECT_FALSE(match.Place({8, 8}, frame));
}

TEST(AxisMatchTest, RolesForbidNewAxes) {
  AxisMatch match({{8, Role::kRow}, {32, Role::kColumn}});
  EXPECT_THAT(match.Unite({{64}}, {}), IsEmpty());
  DimMap frame = {kNone};
  EXPECT_FALSE(match.Place({64}, frame));
}

TEST(AxisMatchTest, RolesSpreadToAxesThatMeetThem) {
  AxisMatch match({{8}, {32}});
  EXPECT_THAT(match.Unite({{8, Role::kRow}, {32, Role::kColumn}}, {}), ElementsAre(0, 1));
  EXPECT_EQ(match.axes()[0].role, Role::kRow);
  EXPECT_TRUE(match.split());
}

TEST(AxisMatchTest, ReductionOverTheInnerAxisIsOverColumns) {
  AxisMatch match({{8}, {32}});
  EXPECT_EQ(match.Reduce({1}, /*inner=*/1), Role::kColumn);
  EXPECT_EQ(match.Reduce({0}, 1), Role::kRow);  // the complement: a column reduction
}

TEST(AxisMatchTest, ReductionOverAnOuterAxisIsOverRows) {
  AxisMatch match({{8}, {32}});
  EXPECT_EQ(match.Reduce({0}, /*inner=*/1), Role::kRow);
}

TEST(AxisMatchTest, ReductionOverPartOfAGroupDoesNotFit) {
  AxisMatch match({{4}, {8}, {32}});
  EXPECT_EQ(match.Reduce({1, 2}, 2), Role::kColumn);
  EXPECT_EQ(match.Reduce({2}, 2), Role::kNone);
  EXPECT_EQ(match.Reduce({0, 1}, 2), Role::kNone);
}

}  // namespace
}  // namespace fusiond::schedule
