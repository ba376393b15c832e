// Maps: what reads memory at indices of its own, inside the kernels of its users.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/string_view.h"
#include "compiler/ir/text.h"
#include "tests/codegen/plan_runner.h"
#include "tests/support/status_matchers.h"

namespace fusiond::codegen {
namespace {

using ::fusiond::testing::PlanRunOptions;
using ::fusiond::testing::RequestFor;
using ::fusiond::testing::RunPlan;

// Runs right, in so many kernels.
void Check(absl::string_view text, size_t kernels, const PlanRunOptions& options = {}) {
  ASSERT_OK_AND_ASSIGN(const ir::Graph graph, ir::Parse(text));
  ASSERT_OK_AND_ASSIGN(const compiler::PlanRequest request, RequestFor(graph, options));
  ASSERT_OK_AND_ASSIGN(const compiler::PlanResult plan, compiler::Plan(request));
  EXPECT_EQ(plan.skeleton.steps.size(), kernels) << plan.explanation;
  EXPECT_THAT(plan.notes, ::testing::IsEmpty());
  const absl::Status status = RunPlan(graph, options);
  EXPECT_TRUE(status.ok()) << status << text << plan.explanation;
}

TEST(MapsTest, SlicesOfOneInputAreReadWhereTheyLie) {
  for (const int start : {0, 8, 3}) {
    const std::string at = std::to_string(start), end = std::to_string(start + 64);
    Check(
        "fir 1\n%x = input : bf16[24,160]\n"
        "%a = slice %x {start_indices=[4," +
            at + "], end_indices=[20," + end +
            "]}\n"
            "%b = slice %x {start_indices=[8,80], end_indices=[24,144]}\n"
            "%y = mul %a, %b\noutput %y\n",
        1);
  }
}

TEST(MapsTest, SliceIsAnOutput) {
  Check(
      "fir 1\n%x = input : f32[6,40]\n"
      "%a = slice %x {start_indices=[1,3], end_indices=[5,39]}\noutput %a\n",
      1);
}

TEST(MapsTest, RowsOfASliceAreReduced) {
  for (const char* end : {"136", "135"}) {
    Check(std::string("fir 1\n%x = input : bf16[24,160]\n"
                      "%a = slice %x {start_indices=[4,8], end_indices=[20,") +
              end +
              "]}\n"
              "%m = max %a {dims=[1], keepdim=true}\n%y = sub %a, %m\noutput %y\n",
          1);
  }
}

TEST(MapsTest, ColumnsOfASliceAreReduced) {
  Check(
      "fir 1\n%x = input : f32[300,96]\n"
      "%a = slice %x {start_indices=[20,16], end_indices=[299,80]}\n"
      "%y = sum %a {dims=[0]}\noutput %y\n",
      1);
}

// What the slice takes away is not computed at all.
TEST(MapsTest, SliceOfWhatIsComputedIsComputedThere) {
  Check(
      "fir 1\n%x = input : f32[40,96]\n%w = input : f32[96]\n"
      "%a = mul %x, %w\n%b = exp %a\n"
      "%c = slice %b {start_indices=[0,0], end_indices=[40,48]}\n"
      "%d = slice %b {start_indices=[0,48], end_indices=[40,96]}\n"
      "%e = add %c, %d\noutput %e\n",
      1);
}

TEST(MapsTest, SliceOfAReductionIsReadFromMemory) {
  Check(
      "fir 1\n%x = input : f32[40,96]\n"
      "%a = sum %x {dims=[1]}\n"
      "%c = slice %a {start_indices=[8], end_indices=[32]}\n"
      "%e = exp %c\noutput %e\noutput %a\n",
      2);
}

TEST(MapsTest, PermutesCostNothing) {
  Check(
      "fir 1\n%x = input : f32[6,10,8]\n%w = input : f32[10,6]\n"
      "%p = permute %x {dims=[1,0,2]}\n%s = sum %p {dims=[2]}\n%y = mul %s, %w\n"
      "%q = permute %y {dims=[1,0]}\noutput %q\n",
      1);
  Check(
      "fir 1\n%x = input : f32[70,130]\n%w = input : f32[130,70]\n"
      "%p = permute %x {dims=[1,0]}\n%y = mul %p, %w\noutput %y\n",
      1);
}

// A square that meets its own transpose is read twice.
TEST(MapsTest, TransposeMeetsItself) {
  Check(
      "fir 1\n%x = input : f32[40,40]\n"
      "%p = permute %x {dims=[1,0]}\n%y = add %p, %x\noutput %y\n",
      1);
}

TEST(MapsTest, AnInputThatIsWrittenIsReadBefore) {
  Check(
      "fir 1\n%x = input : f32[40,40]\n"
      "%a = slice %x {start_indices=[0,0], end_indices=[1,40]}\n"
      "%y = add %x, %a\noutput %y alias %x\n",
      2);
}

// More than one kernel computes again for an element.
TEST(MapsTest, LongChainsOfMapsAreCut) {
  std::string text = "fir 1\n%v0 = input : f32[500]\n";
  for (int i = 0; i < 60; ++i) {
    const std::string from = "%v" + std::to_string(i), to = "%v" + std::to_string(i + 1);
    text += "%a" + std::to_string(i) + " = slice " + from +
            " {start_indices=[1], end_indices=[1000]}\n%b" + std::to_string(i) + " = slice " +
            from + " {start_indices=[0], end_indices=[" + std::to_string(499 - i) + "]}\n" + to +
            " = sub %a" + std::to_string(i) + ", %b" + std::to_string(i) + "\n";
  }
  const absl::Status status = RunPlan(text + "output %v60\n");
  EXPECT_TRUE(status.ok()) << status;
}

}  // namespace
}  // namespace fusiond::codegen
