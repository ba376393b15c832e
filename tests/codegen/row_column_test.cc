#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/codegen/norm_graphs.h"
#include "tests/codegen/plan_runner.h"
#include "tests/support/status_matchers.h"

namespace fusiond::codegen {
namespace {

using ::fusiond::testing::IsOk;
using ::fusiond::testing::LayerNormBackward;
using ::fusiond::testing::PlanRunOptions;
using ::fusiond::testing::RmsNormBackward;
using ::fusiond::testing::RunPlan;

struct Shape {
  int rows, columns;
};
std::string ShapeName(const ::testing::TestParamInfo<Shape>& info) {
  return absl::StrCat(info.param.rows, "x", info.param.columns);
}

// Warps a row 1, 4, 8, 16; one row, fewer rows than CTAs, more rows than a
// ring holds, than a warp has lanes for their statistics; full and masked vectors, vectors of 8, 4,
// 2, 1.
class RowColumnShapeTest : public ::testing::TestWithParam<Shape> {
 protected:
  void Check(const char* device) const {
    PlanRunOptions options;
    options.device = device;
    const auto [rows, columns] = GetParam();
    EXPECT_THAT(RunPlan(RmsNormBackward(rows, columns), options), IsOk());
    EXPECT_THAT(RunPlan(LayerNormBackward(rows, columns), options), IsOk());
  }
};

TEST_P(RowColumnShapeTest, BulkCopies) { Check("h200"); }
TEST_P(RowColumnShapeTest, CopiesByEachThread) { Check("sm_80"); }
TEST_P(RowColumnShapeTest, LessSharedMemory) { Check("sm_89"); }

INSTANTIATE_TEST_SUITE_P(Shapes, RowColumnShapeTest,
                         ::testing::Values(Shape{1, 256}, Shape{40, 512}, Shape{61, 1000},
                                           Shape{7, 1001}, Shape{50, 1024}, Shape{33, 1502},
                                           Shape{29, 2048}, Shape{2, 3001}, Shape{23, 4096},
                                           Shape{20, 8192}, Shape{5, 6004}, Shape{9, 8200},
                                           Shape{1700, 72}, Shape{100, 4200}),
                         ShapeName);

// Clusters of 2, 3 and 5. 64 rows: 32 for each of the two clusters that run.
class RowColumnClusterTest : public RowColumnShapeTest {};
TEST_P(RowColumnClusterTest, BulkCopies) { Check("h200"); }
TEST_P(RowColumnClusterTest, LessSharedMemory) { Check("sm_120a"); }
INSTANTIATE_TEST_SUITE_P(Shapes, RowColumnClusterTest,
                         ::testing::Values(Shape{64, 8448}, Shape{69, 16384}, Shape{3, 16400},
                                           Shape{2, 40000}),
                         ShapeName);

}  // namespace
}  // namespace fusiond::codegen
