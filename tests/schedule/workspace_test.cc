#include "compiler/schedule/workspace.h"

#include <gtest/gtest.h>

namespace fusiond::schedule {
namespace {

using executable::Formula;
using executable::FormulaTerm;

TEST(WorkspaceTest, BuffersThatNeverMeetShareBytes) {
  const WorkspacePlan plan = PlanWorkspace({{Formula::Constant(1000), 0, 1},
                                            {Formula::Constant(1000), 2, 3},
                                            {Formula::Constant(100), 1, 2}});
  EXPECT_EQ(plan.offsets[0], plan.offsets[1]);
  EXPECT_EQ(*plan.offsets[2].AsConstant(), 1024);
  EXPECT_EQ(*plan.bytes.AsConstant(), 1024 + 256);
}

TEST(WorkspaceTest, BuffersThatMeetInOneStepDoNot) {
  const WorkspacePlan plan =
      PlanWorkspace({{Formula::Constant(256), 0, 1}, {Formula::Constant(256), 1, 1}});
  EXPECT_NE(plan.offsets[0], plan.offsets[1]);
  EXPECT_EQ(*plan.bytes.AsConstant(), 512);
}

TEST(WorkspaceTest, SizesOfTheDeviceLieBehindTheOthers) {
  const Formula partials =
      Formula::Combine(FormulaTerm::Kind::kMultiply, Formula::SmCount(), Formula::Constant(100));
  const WorkspacePlan plan = PlanWorkspace({{partials, 0, 1}, {Formula::Constant(300), 0, 1}});
  EXPECT_EQ(*plan.offsets[0].Evaluate({}, 3), 512);
  EXPECT_EQ(*plan.bytes.Evaluate({}, 3), 512 + 512);
  EXPECT_EQ(*plan.bytes.Evaluate({}, 132), 512 + 13312);
}

TEST(WorkspaceTest, SizesOfTheDeviceTakeTurns) {
  const Formula partials =
      Formula::Combine(FormulaTerm::Kind::kMultiply, Formula::SmCount(), Formula::Constant(256));
  std::vector<WorkspaceBuffer> buffers;
  for (size_t step = 0; step < 100; ++step) buffers.push_back({partials, step, step + 1});
  const WorkspacePlan plan = PlanWorkspace(buffers);
  EXPECT_NE(plan.offsets[0], plan.offsets[1]);
  EXPECT_EQ(plan.offsets[0], plan.offsets[2]);
  EXPECT_EQ(plan.offsets[1], plan.offsets[99]);
  EXPECT_EQ(*plan.bytes.Evaluate({}, 10), 2 * 2560);
}

}  // namespace
}  // namespace fusiond::schedule
