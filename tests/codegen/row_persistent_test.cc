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

std::string Softmax(int rows, int columns) {
  return absl::StrCat("fir 1\n%x = input : bf16[", rows, ",", columns, R"(]
%f = cast %x {dtype=f32}
%m = max %f {dims=[1], keepdim=true}
%d = sub %f, %m
%e = exp %d
%s = sum %e {dims=[1], keepdim=true}
%y = div %e, %s
%o = cast %y {dtype=bf16}
output %o
)");
}

std::string LayerNorm(int rows, int columns) {
  return absl::StrCat("fir 1\n%x = input : bf16[", rows, ",", columns, "]\n%w = input : bf16[",
                      columns, "]\n%b = input : bf16[", columns, R"(]
%f = cast %x {dtype=f32}
%v, %m = var_mean %f {dims=[1], correction=0, keepdim=true}
%d = sub %f, %m
%eps = constant {value=1e-5}
%ve = add %v, %eps
%r = rsqrt %ve
%h = mul %d, %r
%hw = mul %h, %w
%y = add %hw, %b
%o = cast %y {dtype=bf16}
output %o
output %m
output %r
)");
}

// Team sizes and tails of every variant: 8, 16, 32, 64 … threads a row; full, masked, shifted.
class RowLengthTest : public ::testing::TestWithParam<int> {};

TEST_P(RowLengthTest, Softmax) { EXPECT_THAT(RunPlan(Softmax(5, GetParam())), IsOk()); }
TEST_P(RowLengthTest, LayerNorm) { EXPECT_THAT(RunPlan(LayerNorm(5, GetParam())), IsOk()); }

INSTANTIATE_TEST_SUITE_P(Columns, RowLengthTest,
                         ::testing::Values(1, 3, 24, 61, 64, 100, 128, 256, 1001, 1024, 1032, 2047,
                                           4096, 5001, 8192));

TEST(RowPersistentTextTest, SumsOverSeveralDims) {
  EXPECT_THAT(RunPlan(R"(fir 1
%x = input : f32[3,5,7,11]
%s = sum %x {dims=[2,3]}
%m = max %x {dims=[3], keepdim=true}
output %s
output %m
)"),
              IsOk());
}

TEST(RowPersistentTextTest, ReductionsOfEveryKindAndType) {
  for (const char* dtype : {"i32", "i64", "f16", "bf16", "f32", "f64"}) {
    EXPECT_THAT(RunPlan(absl::StrCat("fir 1\n%x = input : ", dtype, R"([4,96]
%s = sum %x {dims=[1]}
%a = max %x {dims=[1]}
%b = min %x {dims=[1]}
output %s
output %a
output %b
)")),
                IsOk())
        << dtype;
  }
  EXPECT_THAT(RunPlan(R"(fir 1
%x = input : bool[4,96]
%s = sum %x {dims=[1]}
%a = max %x {dims=[1]}
output %s
output %a
)"),
              IsOk());
}

TEST(RowPersistentTextTest, FullReductionOfAShortTensor) {
  EXPECT_THAT(RunPlan(R"(fir 1
%x = input : f32[30,33]
%s = sum %x {dims=[0,1]}
%y = mul %x, %s
output %s
output %y
)"),
              IsOk());
}

TEST(RowPersistentTextTest, ChannelsOfImagesByIndexMap) {
  // Instance statistics of [n, c, h, w] over n, h, w: rows are channels.
  EXPECT_THAT(RunPlan(R"(fir 1
%x = input : f32[3,5,4,8]
%v, %m = var_mean %x {dims=[0,2,3], correction=1, keepdim=true}
%d = sub %x, %m
output %d
output %v
)"),
              IsOk());
}

// Vectors of shifted rows begin below column 0, at no multiple of a weight's stride in memory.
TEST(RowPersistentTextTest, ShiftedRowsMeetStridedColumns) {
  PlanRunOptions options;
  options.strides = {{37, 1}, {3}};
  EXPECT_THAT(RunPlan(R"(fir 1
%x = input : f32[6,37]
%w = input {contiguity=[f]} : f32[37]
%m = max %x {dims=[1], keepdim=true}
%d = sub %x, %m
%y = mul %d, %w
output %y
)",
                      options),
              IsOk());
}

TEST(RowPersistentTextTest, FusedAddInPlace) {
  EXPECT_THAT(RunPlan(R"(fir 1
%x = input : bf16[6,512]
%r = input : bf16[6,512]
%w = input : bf16[512]
%h = add %x, %r
%q = mul %h, %h
%s = sum %q {dims=[1], keepdim=true}
%n = constant {value=512.0}
%m = div %s, %n
%eps = constant {value=1e-5}
%me = add %m, %eps
%i = rsqrt %me
%y = mul %h, %i
%z = mul %y, %w
%o = cast %z {dtype=bf16}
%ho = cast %h {dtype=bf16}
output %o
output %ho alias %r
)"),
              IsOk());
}

}  // namespace
}  // namespace fusiond::codegen
