#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/codegen/plan_runner.h"
#include "tests/support/status_matchers.h"

namespace fusiond::codegen {
namespace {

using ::fusiond::testing::IsOk;
using ::fusiond::testing::PlanRunOptions;
using ::fusiond::testing::RunPlan;

std::string ColumnSum(absl::string_view dtype, int rows, int columns) {
  return absl::StrCat("fir 1\n%x = input : ", dtype, "[", rows, ",", columns,
                      "]\n%f = cast %x {dtype=f32}\n%s = sum %f {dims=[0]}\n%o = cast %s {dtype=",
                      dtype, "}\noutput %o\n");
}

struct Shape {
  int rows, columns;
};

// Whole and split, every thread with columns and some without; vectors of 8, 4, 2, 1.
class ColumnShapeTest : public ::testing::TestWithParam<Shape> {};

TEST_P(ColumnShapeTest, Sum) {
  EXPECT_THAT(RunPlan(ColumnSum("bf16", GetParam().rows, GetParam().columns)), IsOk());
}

INSTANTIATE_TEST_SUITE_P(Shapes, ColumnShapeTest,
                         ::testing::Values(Shape{1, 1024}, Shape{3, 8}, Shape{7, 1001},
                                           Shape{64, 256}, Shape{300, 512}, Shape{129, 1004},
                                           Shape{1000, 3}, Shape{2000, 258}, Shape{513, 64},
                                           Shape{4099, 1}),
                         [](const auto& info) {
                           return absl::StrCat(info.param.rows, "x", info.param.columns);
                         });

TEST(ColumnTextTest, SeveralReductionsOfAnExpressionOverSeveralInputs) {
  EXPECT_THAT(RunPlan(R"(fir 1
%x = input : bf16[400,320]
%g = input : f32[400,320]
%w = input : bf16[320]
%r = input : f32[400,1]
%k = input : f64
%xr = mul %x, %r
%a = mul %xr, %g
%b = add %a, %w
%c = mul %b, %k
%s = sum %c {dims=[0]}
%t = sum %g {dims=[0]}
%m = max %a {dims=[0]}
%n = min %xr {dims=[0]}
output %s
output %t
output %m
output %n
)"),
              IsOk());
}

TEST(ColumnTextTest, ReductionsOfEveryKindAndType) {
  for (const char* dtype : {"bool", "i32", "i64", "f16", "bf16", "f32", "f64"}) {
    for (const int rows : {6, 700}) {
      EXPECT_THAT(RunPlan(absl::StrCat("fir 1\n%x = input : ", dtype, "[", rows, R"(,40]
%s = sum %x {dims=[0]}
%a = max %x {dims=[0]}
%b = min %x {dims=[0]}
output %s
output %a
output %b
)")),
                  IsOk())
          << dtype << " " << rows;
    }
  }
  EXPECT_THAT(RunPlan(R"(fir 1
%x = input : f32[9,33]
%p = prod %x {dims=[0]}
output %p
)"),
              IsOk());
}

TEST(ColumnTextTest, ElementsOnTheWayAndAnEpilogue) {
  for (const int rows : {20, 900}) {
    EXPECT_THAT(RunPlan(absl::StrCat("fir 1\n%x = input : bf16[", rows, R"(,96]
%b = input : bf16[96]
%f = add %x, %b
%y = relu %f
%o = cast %y {dtype=bf16}
%s = sum %y {dims=[0]}
%n = constant {value=0.5}
%m = mul %s, %n
%e = exp %b
%z = add %m, %e
%c = cast %z {dtype=bf16}
output %o
output %s
output %c
output %e
)")),
                IsOk())
        << rows;
  }
}

TEST(ColumnTextTest, OuterDimsByIndexMap) {
  // Statistics of [n, h, w, c] over n, h, w; a middle dim; two dims that do not touch.
  EXPECT_THAT(RunPlan(R"(fir 1
%x = input : f32[3,5,7,24]
%v, %m = var_mean %x {dims=[0,1,2], correction=1}
output %v
output %m
)"),
              IsOk());
  EXPECT_THAT(RunPlan(R"(fir 1
%x = input : f32[5,40,12]
%s = sum %x {dims=[1]}
output %s
)"),
              IsOk());
  EXPECT_THAT(RunPlan(R"(fir 1
%x = input : bf16[5,6,7,16]
%s = sum %x {dims=[0,2]}
output %s
)"),
              IsOk());
}

TEST(ColumnTextTest, StridedPermutedAndExpandedInputs) {
  EXPECT_THAT(RunPlan(R"(fir 1
%a = input {contiguity=[f,f]} : f32[48,64]
%b = input : bf16[48,64]
%s = add %a, %b
%t = sum %s {dims=[0]}
output %t
)"),
              IsOk());
  EXPECT_THAT(RunPlan(R"(fir 1
%a = input {stride_order=[0,1]} : f32[48,64]
%t = sum %a {dims=[1]}
output %t
)"),
              IsOk());
}

TEST(ColumnTextTest, WeakAlignment) {
  for (const int alignment : {2, 4, 8}) {
    PlanRunOptions options;
    options.alignment = alignment;
    EXPECT_THAT(RunPlan(ColumnSum("bf16", 40, 512), options), IsOk()) << alignment;
  }
}

TEST(ColumnTextTest, EveryCandidate) {
  for (int attempt = 0; attempt < 8; ++attempt) {
    PlanRunOptions options;
    options.attempt = attempt;
    EXPECT_THAT(RunPlan(ColumnSum("bf16", 600, 264), options), IsOk()) << attempt;
  }
}

}  // namespace
}  // namespace fusiond::codegen
