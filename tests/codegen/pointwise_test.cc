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

TEST(PointwiseTextTest, FlatMultipleOfTheVector) {
  EXPECT_THAT(RunPlan(R"(fir 1
%a = input : bf16[64,128]
%b = input : bf16[64,128]
%x = cast %a {dtype=f32}
%y = cast %b {dtype=f32}
%s = mul %x, %y
%t = silu %s
%o = cast %t {dtype=bf16}
output %o
)"),
              IsOk());
}

// Default math computes (x + 1)·c, which rounds the second term once more than was written.
TEST(PointwiseTextTest, FactoredSum) {
  EXPECT_THAT(RunPlan(R"(fir 1
%x = input : f32[64,1024]
%c = input : f32[1024]
%p = mul %x, %c
%s = add %p, %c
output %s
)"),
              IsOk());
}

TEST(PointwiseTextTest, FlatWithACutVector) {
  for (const int n : {1, 7, 1027}) {
    EXPECT_THAT(RunPlan(absl::StrCat("fir 1\n%a = input : f16[", n, "]\n%b = input : f32[", n,
                                     "]\n%s = add %a, %b\noutput %s\n")),
                IsOk());
  }
}

TEST(PointwiseTextTest, BroadcastOperandsWithinTheVector) {
  EXPECT_THAT(RunPlan(R"(fir 1
%a = input : f32[5,3,64]
%b = input : f32[64]
%c = input : f32[5,1,1]
%d = input : f32[3,64]
%e = add %a, %b
%f = mul %e, %c
%g = sub %f, %d
output %g
)"),
              IsOk());
}

TEST(PointwiseTextTest, BroadcastOperandsAcrossRowEnds) {
  EXPECT_THAT(RunPlan(R"(fir 1
%a = input : bf16[6,37]
%b = input : bf16[37]
%c = input : f32[6,1]
%e = add %a, %b
%f = mul %e, %c
%g = cast %f {dtype=bf16}
output %g
output %e
)"),
              IsOk());
}

TEST(PointwiseTextTest, StridedAndPermutedInputs) {
  EXPECT_THAT(RunPlan(R"(fir 1
%a = input {contiguity=[f,f]} : f32[24,16]
%b = input {stride_order=[0,1]} : f32[24,16]
%s = add %a, %b
output %s
)"),
              IsOk());
}

TEST(PointwiseTextTest, RankZeroAndScalars) {
  EXPECT_THAT(RunPlan(R"(fir 1
%a = input : f32[]
%b = input : f32[]
%s = input : f64
%i = input : i64
%c = mul %a, %b
%d = mul %c, %s
%e = add %d, %i
output %e
)"),
              IsOk());
}

TEST(PointwiseTextTest, TensorInHostMemoryComesByValue) {
  EXPECT_THAT(RunPlan(R"(fir 1
%a = input : f32[40]
%k = input {host=true} : bf16[]
%b = mul %a, %k
%c = neg %k
output %b
output %c
)"),
              IsOk());
}

TEST(PointwiseTextTest, OutputsOfSeveralShapes) {
  EXPECT_THAT(RunPlan(R"(fir 1
%a = input : f32[8,32]
%b = input : f32[32]
%r = input : f32[8,1]
%x = exp %b
%y = neg %r
%s = add %a, %x
%t = mul %s, %y
output %t
output %x
output %y
)"),
              IsOk());
}

TEST(PointwiseTextTest, ExpandedOutput) {
  EXPECT_THAT(RunPlan(R"(fir 1
%a = input : f32[8,1]
%e = expand %a {shape=[8,20]}
%c = constant {value=2.5}
%f = full %c {dtype=bf16, shape=[3,5]}
output %e
output %f
)"),
              IsOk());
}

TEST(PointwiseTextTest, UpdateInPlace) {
  EXPECT_THAT(RunPlan(R"(fir 1
%p = input : f32[1000]
%g = input : f32[1000]
%lr = input : f64
%u = mul %g, %lr
%n = sub %p, %u
output %n alias %p
)"),
              IsOk());
}

TEST(PointwiseTextTest, WeakAlignment) {
  PlanRunOptions options;
  options.alignment = 2;
  EXPECT_THAT(RunPlan(R"(fir 1
%a = input : bf16[64,128]
%b = input : bf16[64,128]
%s = add %a, %b
%o = cast %s {dtype=bf16}
output %o
)",
                      options),
              IsOk());
}

TEST(PointwiseTextTest, EveryDtypeThroughMemory) {
  for (const char* dtype : {"bool", "i32", "i64", "f16", "bf16", "f32", "f64"}) {
    EXPECT_THAT(RunPlan(absl::StrCat("fir 1\n%a = input : ", dtype, "[9,40]\n%b = input : ", dtype,
                                     "[40]\n%c = gt %a, %b\n%m = where %c, %a, %b\noutput %m\n")),
                IsOk())
        << dtype;
  }
}

// More than a kernel has arguments for: the rest is copied.
TEST(PointwiseTextTest, ValueThatIsAnOutputManyTimes) {
  std::string text = "fir 1\n%a = input : f32[64]\n%b = neg %a\n";
  for (int i = 0; i < 520; ++i) text += "output %b\n";
  EXPECT_THAT(RunPlan(text), IsOk());
}

}  // namespace
}  // namespace fusiond::codegen
