#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "compiler/ir/text.h"
#include "tests/codegen/plan_runner.h"
#include "tests/support/status_matchers.h"

namespace fusiond::codegen {
namespace {

using ::fusiond::testing::IsOk;
using ::fusiond::testing::PlanRunOptions;
using ::fusiond::testing::RequestFor;
using ::fusiond::testing::RunPlan;
using ::testing::HasSubstr;

// Runs the graph, after making sure that it is Transpose's.
void Check(const std::string& text, const PlanRunOptions& options = {}) {
  SCOPED_TRACE(text);
  ASSERT_OK_AND_ASSIGN(const ir::Graph graph, ir::Parse(text));
  ASSERT_OK_AND_ASSIGN(const compiler::PlanRequest request, RequestFor(graph, options));
  ASSERT_OK_AND_ASSIGN(const compiler::PlanResult plan, compiler::Plan(request));
  ASSERT_THAT(plan.skeleton.provenance.schedule, HasSubstr("transpose/"));
  EXPECT_THAT(RunPlan(graph, options), IsOk());
}

// Vectors of 8, 4, 2, 1 on either side; a dim shorter than a tile, a tile longer than both.
TEST(TransposeTextTest, LoadsThatRunAlongAnotherDim) {
  for (const auto& [rows, columns] :
       {std::pair{64, 64}, {130, 68}, {65, 66}, {3, 1000}, {999, 5}, {2, 2}, {63, 67}}) {
    Check(absl::Substitute(R"(fir 1
%x = input {stride_order=[0,1]} : bf16[$0,$1]
%y = input : bf16[$0,$1]
%s = mul %x, %y
%o = cast %s {dtype=bf16}
output %o
)",
                           rows, columns));
  }
}

// The wider operands decide how the tile lies; the output passes through shared memory.
TEST(TransposeTextTest, StoresThatRunAlongAnotherDim) {
  for (const auto& [rows, columns] : {std::pair{64, 128}, {100, 36}, {7, 65}}) {
    Check(absl::Substitute(R"(fir 1
%x = input {stride_order=[0,1]} : f32[$0,$1]
%c = input : f32[$1]
%s = add %x, %c
%o = cast %s {dtype=bf16}
output %o
)",
                           rows, columns));
  }
}

TEST(TransposeTextTest, OuterDimsAndDimsBetween) {
  for (const char* order : {"[2,0,1]", "[0,2,1]", "[0,1,2]", "[1,0,2]"}) {
    Check(absl::Substitute(R"(fir 1
%x = input {stride_order=$0} : f16[5,20,70]
%y = input : f16[5,20,70]
%r = input : f32[5,1,70]
%s = add %x, %y
%q = mul %s, %r
%o = cast %q {dtype=f16}
output %o
output %s
)",
                           order));
  }
}

TEST(TransposeTextTest, ElementsOfEverySize) {
  for (const char* dtype : {"bool", "bf16", "f32", "i64", "f64"}) {
    Check(absl::Substitute(R"(fir 1
%x = input {stride_order=[0,1]} : $0[48,80]
%y = input : $0[48,80]
%z = ne %x, %y
%o = where %z, %x, %y
output %o
)",
                           dtype));
  }
}

// An output that lacks a dim of the tile, and one that lacks both.
TEST(TransposeTextTest, OutputsThatLackADim) {
  Check(R"(fir 1
%x = input {stride_order=[0,1]} : f32[40,70]
%y = input : f32[40,70]
%r = input : f32[40,1]
%n = neg %r
%s = add %x, %y
%o = mul %s, %n
output %o
output %n
)");
}

}  // namespace
}  // namespace fusiond::codegen
