#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "compiler/ir/text.h"
#include "tests/codegen/norm_graphs.h"
#include "tests/codegen/plan_runner.h"
#include "tests/support/status_matchers.h"

namespace fusiond::codegen {
namespace {

using ::fusiond::testing::IsOk;
using ::fusiond::testing::LayerNorm;
using ::fusiond::testing::PlanRunOptions;
using ::fusiond::testing::RequestFor;
using ::fusiond::testing::RunPlan;

// One interleaving: that all six agree is shown by the variants' cases. A device without clusters,
// which take some of these rows.
PlanRunOptions Quick() {
  PlanRunOptions options;
  options.device = "a100";
  options.emulation.interleavings = {emulation::SixInterleavings()[2]};
  return options;
}

// The schedules that a graph gets, a line a region.
std::string Schedules(const std::string& text, const PlanRunOptions& options) {
  const absl::StatusOr<ir::Graph> graph = ir::Parse(text);
  if (!graph.ok()) return graph.status().ToString();
  const absl::StatusOr<compiler::PlanRequest> request = RequestFor(*graph, options);
  if (!request.ok()) return request.status().ToString();
  const absl::StatusOr<compiler::PlanResult> plan = compiler::Plan(*request);
  return plan.ok() ? plan->skeleton.provenance.schedule : plan.status().ToString();
}

void Check(const std::string& text, const std::string& schedule,
           const PlanRunOptions& options = Quick()) {
  EXPECT_THAT(Schedules(text, options), ::testing::StartsWith(schedule));
  EXPECT_THAT(RunPlan(text, options), IsOk()) << text;
}

struct Shape {
  const char* dtype;
  int rows, columns;
  const char* schedule;
};

// Whole rows and split ones; one step and several; vectors of 8, 4, 2 and 1; rows that begin inside
// vectors.
class RowStreamShapeTest : public ::testing::TestWithParam<Shape> {};

TEST_P(RowStreamShapeTest, LayerNorm) {
  const Shape& shape = GetParam();
  Check(LayerNorm(shape.rows, shape.columns, shape.dtype), shape.schedule);
}

INSTANTIATE_TEST_SUITE_P(Shapes, RowStreamShapeTest,
                         ::testing::Values(Shape{"bf16", 4, 65536, "row_stream/cta{"},
                                           Shape{"bf16", 5, 45000, "row_stream/cta_masked{"},
                                           Shape{"bf16", 5, 45003, "row_stream/cta_shifted{"},
                                           Shape{"f32", 4, 30002, "row_stream/cta_masked{"},
                                           Shape{"f64", 4, 20001, "row_stream/cta"},
                                           Shape{"bf16", 1, 131072, "row_stream/split{"},
                                           Shape{"bf16", 2, 100008, "row_stream/split_masked{"},
                                           Shape{"f32", 2, 100003, "row_stream/split_shifted{"},
                                           Shape{"f64", 1, 60001, "row_stream/split"}),
                         [](const auto& info) {
                           return absl::StrCat(info.param.dtype, "_", info.param.rows, "x",
                                               info.param.columns);
                         });

TEST(RowStreamTextTest, FullReductionsTakeTwoKernels) {
  for (const char* shape : {"300,400", "301,307", "90001", "1,50000,1,2"}) {
    std::string dims = "0";
    for (int d = 1; d < static_cast<int>(std::count(shape, shape + std::strlen(shape), ',')) + 1;
         ++d)
      absl::StrAppend(&dims, ",", d);
    Check(absl::StrCat("fir 1\n%x = input : f32[", shape, "]\n%t = input : bf16[", shape, R"(]
%d = sub %x, %t
%q = mul %d, %d
%s = sum %q {dims=[)",
                       dims, R"(]}
%n = constant {value=1e-5}
%m = mul %s, %n
output %m
output %s
)"),
          "row_stream/split");
  }
}

TEST(RowStreamTextTest, VarianceOfEverythingAndWhatIsMadeOfIt) {
  Check(R"(fir 1
%x = input : f32[300,401]
%v, %m = var_mean %x {dims=[0,1], correction=1}
%d = sub %x, %m
%r = rsqrt %v
%y = mul %d, %r
output %v
output %m
output %y
)",
        "row_stream/split");
}

TEST(RowStreamTextTest, ReductionsOfEveryKindAndType) {
  for (const char* dtype : {"bool", "i32", "i64", "f16", "bf16", "f32", "f64"}) {
    for (const int rows : {1, 4}) {
      Check(absl::StrCat("fir 1\n%x = input : ", dtype, "[", rows, R"(,170001]
%s = sum %x {dims=[1]}
%a = max %x {dims=[1]}
%b = min %x {dims=[1]}
output %s
output %a
output %b
)"),
            rows == 1 ? "row_stream/split" : "row_stream/cta");
    }
  }
  Check(R"(fir 1
%x = input : f32[1,90000]
%c = constant {value=1e-6}
%d = mul %x, %c
%o = constant {value=1.0}
%y = add %d, %o
%p = prod %y {dims=[1]}
output %p
)",
        "row_stream/split");
}

TEST(RowStreamTextTest, SeveralColumnDims) {
  // Statistics of each channel of [n, c, h, w]: rows are channels, columns two dims.
  for (const int channels : {1, 2, 5}) {
    Check(absl::StrCat("fir 1\n%x = input : f32[7,", channels, R"(,90,100]
%v, %m = var_mean %x {dims=[0,2,3], correction=1, keepdim=true}
%d = sub %x, %m
output %d
output %v
)"),
          channels < 5 ? "row_stream/split" : "row_stream/cta");
  }
}

TEST(RowStreamTextTest, TransposedStridedAndExpandedInputs) {
  PlanRunOptions options = Quick();
  Check(R"(fir 1
%a = input {stride_order=[0,1]} : f32[300,307]
%b = input {contiguity=[f,f]} : f32[300,307]
%s = add %a, %b
%t = sum %s {dims=[0,1]}
output %t
)",
        "row_stream/split", options);
  options.strides = {{0, 1}, {1}};
  Check(R"(fir 1
%a = input {contiguity=[b,t]} : f32[4,50003]
%w = input : f32[50003]
%e = exp %a
%p = mul %e, %w
%t = sum %p {dims=[1]}
output %t
)",
        "row_stream/cta", options);
}

TEST(RowStreamTextTest, WeakAlignment) {
  for (const int alignment : {2, 4, 8}) {
    PlanRunOptions options = Quick();
    options.alignment = alignment;
    EXPECT_THAT(RunPlan(LayerNorm(1, 65003), options), IsOk()) << alignment;
    EXPECT_THAT(RunPlan(LayerNorm(4, 65008), options), IsOk()) << alignment;
  }
}

TEST(RowStreamTextTest, OutputsOverWhatIsReadAgainWaitForTheLastPass) {
  for (const int rows : {1, 4}) {
    Check(absl::StrCat("fir 1\n%x = input : bf16[", rows, ",65536]\n%r = input : bf16[", rows,
                       R"(,65536]
%w = input : bf16[65536]
%h = add %x, %r
%q = mul %h, %h
%s = sum %q {dims=[1], keepdim=true}
%n = constant {value=65536.0}
%m = div %s, %n
%i = rsqrt %m
%y = mul %h, %i
%z = mul %y, %w
%o = cast %z {dtype=bf16}
%ho = cast %h {dtype=bf16}
output %o
output %ho alias %r
)"),
          rows == 1 ? "row_stream/split" : "row_stream/cta");
  }
}

TEST(RowStreamTextTest, ReductionsOfAPassThatNobodyWalksAfter) {
  // The second sum is of a value that the row's first sum gave; both are outputs alone.
  for (const int rows : {1, 4}) {
    Check(absl::StrCat("fir 1\n%x = input : f32[", rows, R"(,80000]
%m = max %x {dims=[1], keepdim=true}
%d = sub %x, %m
%e = exp %d
%s = sum %e {dims=[1], keepdim=true}
%l = log %s
%y = add %l, %m
output %y
)"),
          rows == 1 ? "row_stream/split" : "row_stream/cta");
  }
}

TEST(RowStreamTextTest, MaskedElementsAndRowsOfNothingElse) {
  // Hardly any element is left, so that most partial maxima are -inf; of some rows none is: nan.
  for (const int rows : {2, 4}) {
    Check(absl::StrCat("fir 1\n%x = input : f32[", rows, ",80003]\n%w = input : f32[80003]\n",
                       "%r = input : bool[", rows, R"(,1]
%limit = constant {value=2.5}
%g = gt %w, %limit
%k = logical_and %g, %r
%inf = constant {value=-inf}
%z = where %k, %x, %inf
%m = max %z {dims=[1], keepdim=true}
%d = sub %z, %m
%e = exp %d
%s = sum %e {dims=[1], keepdim=true}
%y = div %e, %s
%l = log %s
%t = add %l, %m
output %y
output %t
)"),
          rows == 2 ? "row_stream/split" : "row_stream/cta");
  }
}

TEST(RowStreamTextTest, EveryCandidate) {
  for (int attempt = 1; attempt < 12; attempt += 2) {
    PlanRunOptions options = Quick();
    options.attempt = attempt;
    EXPECT_THAT(RunPlan(LayerNorm(2, 50003), options), IsOk()) << attempt;
    EXPECT_THAT(RunPlan(LayerNorm(4, 50008), options), IsOk()) << attempt;
  }
}

TEST(RowStreamTextTest, ManyReductionsOfOnePass) {
  for (const int rows : {1, 4}) {
    std::string text = absl::StrCat("fir 1\n%x = input : f32[", rows, ",40000]\n");
    for (int i = 0; i < 24; ++i) {
      absl::StrAppend(&text, "%c", i, " = constant {value=", i, ".5}\n%a", i, " = sub %x, %c", i,
                      "\n%b", i, " = abs %a", i, "\n%s", i, " = ", i % 2 == 0 ? "sum" : "max",
                      " %b", i, " {dims=[1]}\noutput %s", i, "\n");
    }
    Check(text, rows == 1 ? "row_stream/split" : "row_stream/cta");
  }
}

}  // namespace
}  // namespace fusiond::codegen
