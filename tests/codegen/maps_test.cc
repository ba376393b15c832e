// Maps: what reads memory at indices of its own, inside the kernels of its users.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "compiler/ir/text.h"
#include "runtime/executable/explanation.h"
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
  EXPECT_EQ(plan.skeleton.steps.size(), kernels) << executable::Print(plan.explanation);
  EXPECT_THAT(plan.notes, ::testing::IsEmpty());
  const absl::Status status = RunPlan(graph, options);
  EXPECT_TRUE(status.ok()) << status << text << executable::Print(plan.explanation);
}

// The same, where AddressSanitizer sees every access out of bounds.
void CheckBounds(absl::string_view text, size_t kernels) {
  PlanRunOptions options;
  options.emulation.checker = emulation::Checker::kAddress;
  options.emulation.interleavings = {emulation::SixInterleavings()[2]};
  Check(text, kernels, options);
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

// The kernel that computes what is reshaped writes the output.
TEST(MapsTest, OutputsBehindAReshapeCostNothing) {
  for (const char* k : {"24", "28"}) {
    const std::string rows = absl::StrCat("6,", k);
    Check(absl::StrCat("fir 1\n%x = input : f32[2,12,", k[1] == '4' ? "6" : "7", "]\n",
                       "%w = input : f32[12,1]\n%g = reshape %x {shape=[", rows, "]}\n",
                       "%m = max %g {dims=[1], keepdim=true}\n%d = sub %g, %m\n",
                       "%r = reshape %d {shape=[2,12,", k[1] == '4' ? "6" : "7",
                       "]}\n%y = mul %r, %w\n%n = neg %y\noutput %n\noutput %m\n"),
          1);
  }
  // Where what stands behind the reshape is used besides, it is not.
  Check(
      "fir 1\n%x = input : f32[2,12,6]\n%g = reshape %x {shape=[6,24]}\n"
      "%m = max %g {dims=[1], keepdim=true}\n%d = sub %g, %m\n"
      "%r = reshape %d {shape=[2,12,6]}\n%y = exp %r\n%z = sum %y {dims=[2]}\n"
      "output %y\noutput %z\n",
      2);
}

// Merging dims of dense memory is a matter of strides, splitting them always; the rest divides.
TEST(MapsTest, ReshapesAreAddresses) {
  Check(
      "fir 1\n%x = input : f32[6,5,8]\n%w = input : f32[30,8]\n"
      "%a = reshape %x {shape=[30,8]}\n%y = mul %a, %w\noutput %y\n",
      1);
  Check(
      "fir 1\n%x = input : bf16[6,40]\n%w = input : f32[6,5,8]\n"
      "%a = reshape %x {shape=[6,5,8]}\n%y = mul %a, %w\noutput %y\n",
      1);
  Check(
      "fir 1\n%x = input : f32[6,5,8]\n%w = input : f32[48,5]\n"
      "%p = permute %x {dims=[2,0,1]}\n%a = reshape %p {shape=[48,5]}\n"
      "%y = mul %a, %w\noutput %y\n",
      1);
  // [batch, sequence, 3 · heads · width] to queries of [batch, heads, sequence, width].
  Check(
      "fir 1\n%x = input : bf16[2,9,192]\n"
      "%q = slice %x {start_indices=[0,0,64], end_indices=[2,9,128]}\n"
      "%h = reshape %q {shape=[2,9,4,16]}\n%p = permute %h {dims=[0,2,1,3]}\n"
      "%f = cast %p {dtype=f32}\n%s = sum %f {dims=[3], keepdim=true}\n%y = sub %f, %s\n"
      "output %y\n",
      1);
}

TEST(MapsTest, ReshapeOfAReductionIsReadFromMemory) {
  Check(
      "fir 1\n%x = input : f32[2,12,9]\n%w = input : f32[6]\n"
      "%g = reshape %x {shape=[4,54]}\n%m = max %g {dims=[1]}\n"
      "%r = reshape %m {shape=[2,2,1]}\n%b = expand %r {shape=[2,2,6]}\n"
      "%c = reshape %b {shape=[2,12,1]}\n%y = sub %x, %c\noutput %y\n",
      2);
}

TEST(MapsTest, CoordinatesAreValues) {
  for (const char* n : {"64", "61"}) {
    Check(std::string("fir 1\n%x = input : f32[40,") + n +
              "]\n%s = constant {value=3}\n%t = constant {value=-2}\n"
              "%i = iota %s, %t {dtype=f32, shape=[" +
              n + "]}\n%y = mul %x, %i\noutput %y\n",
          1);
  }
  Check("fir 1\n%s = constant {value=1}\n%i = iota %s, %s {dtype=bf16, shape=[300]}\noutput %i\n",
        1);
}

// Causal softmax, in rows of every form: a part of a warp, a warp, a CTA; masked and shifted;
// streamed.
TEST(MapsTest, CausalMasksAreComputedInRows) {
  for (const int n : {24, 31, 200, 513, 20000, 20001}) {
    Check(absl::StrCat("fir 1\n%x = input : bf16[", n > 1000 ? 3 : 7, ",", n,
                       "]\n%f = cast %x {dtype=f32}\n%t = triu %f {diagonal=2}\n"
                       "%m = max %t {dims=[1], keepdim=true}\n%d = sub %t, %m\n%e = exp %d\n"
                       "%s = sum %e {dims=[1], keepdim=true}\n%y = truediv %e, %s\noutput %y\n"),
          1);
  }
}

TEST(MapsTest, PadsAndCatsReadOnlyWhatIsThere) {
  for (const char* n : {"64", "61"}) {
    CheckBounds(
        absl::StrCat("fir 1\n%x = input : bf16[12,", n, "]\n%v = constant {value=0.5}\n",
                     "%a = pad %x, %v {pad_widths=[2,3,1,0]}\n"
                     "%b = pad %x, %v {pad_widths=[5,0,-2,3]}\n%y = add %a, %b\noutput %y\n"),
        1);
  }
  CheckBounds(
      "fir 1\n%x = input : f32[20,64]\n%z = input : f32[20,10]\n"
      "%a = slice %x {start_indices=[0,0], end_indices=[20,32]}\n"
      "%b = slice %x {start_indices=[0,32], end_indices=[20,64]}\n%n = neg %b\n"
      "%c = cat %n, %a, %z {dims=[1]}\n%s = sum %c {dims=[1]}\n"
      "%d = cat %a, %n {dims=[1]}\n%y = mul %d, %x\noutput %y\noutput %s\n",
      2);
  CheckBounds(
      "fir 1\n%x = input : f32[300,33]\n%v = constant {value=2.0}\n"
      "%a = pad %x, %v {pad_widths=[1,2,3,4]}\n%s = sum %a {dims=[0]}\noutput %s\n",
      2);
}

// A pad that is cut off again is none.
TEST(MapsTest, SliceOfAPadIsALoad) {
  ASSERT_OK_AND_ASSIGN(
      const ir::Graph graph,
      ir::Parse("fir 1\n%x = input : f32[40,64]\n%v = constant {value=1.0}\n"
                "%a = pad %x, %v {pad_widths=[8,8]}\n"
                "%b = slice %a {start_indices=[0,8], end_indices=[40,72]}\n%y = neg %b\n"
                "output %y\n"));
  ASSERT_OK_AND_ASSIGN(const compiler::PlanRequest request, RequestFor(graph, {}));
  ASSERT_OK_AND_ASSIGN(const compiler::PlanResult plan, compiler::Plan(request));
  ASSERT_EQ(plan.explanation.segments_size(), 1);
  EXPECT_THAT(plan.explanation.segments(0).body(),
              ::testing::AllOf(::testing::HasSubstr("load"),
                               ::testing::Not(::testing::HasSubstr("fetch"))));
}

// Indices out of range give 0 and touch nothing: the emulation's inputs end where they end.
TEST(MapsTest, IndicesOutOfRangeGiveZero) {
  const std::string indices =
      "%s = constant {value=-3}\n%t = constant {value=2}\n%i = iota %s, %t {shape=[11]}\n";
  CheckBounds("fir 1\n%x = input : bf16[9,40]\n" + indices +
                  "%a = index_select %x, %i {dims=[0]}\n%y = exp %a\noutput %y\n",
              1);
  CheckBounds("fir 1\n%x = input : f32[9,13]\n" + indices +
                  "%b = broadcast_in_dim %i {shape=[9,11], broadcast_dims=[1]}\n"
                  "%a = gather %x, %b {dims=[1]}\n%y = sum %a {dims=[1]}\noutput %y\noutput %a\n",
              1);
  CheckBounds("fir 1\n%x = input : f32[14,13]\n" + indices +
                  "%b = broadcast_in_dim %i {shape=[11,1], broadcast_dims=[0]}\n"
                  "%a = take_along_axis %x, %b {dims=[0]}\noutput %a\n",
              1);
}

// Vectors at a time where offset and guard are one for a vector, in kernels of every kind of row.
TEST(MapsTest, RowsOfATableComeInVectors) {
  for (const int n : {64, 61, 20000}) {
    const std::string text = absl::StrCat(
        "fir 1\n%x = input : bf16[9,", n, "]\n%s = constant {value=-1}\n%t = constant {value=3}\n",
        "%i = iota %s, %t {shape=[5]}\n%a = index_select %x, %i {dims=[0]}\n",
        "%v = constant {value=1.0}\n%p = pad %a, %v {pad_widths=[8,16]}\n%f = cast %p "
        "{dtype=f32}\n",
        "%m = max %f {dims=[1], keepdim=true}\n%y = sub %f, %m\noutput %y\n");
    CheckBounds(text, 1);
    ASSERT_OK_AND_ASSIGN(const ir::Graph graph, ir::Parse(text));
    ASSERT_OK_AND_ASSIGN(const compiler::PlanRequest request, RequestFor(graph, {}));
    ASSERT_OK_AND_ASSIGN(const compiler::PlanResult plan, compiler::Plan(request));
    if (n % 8 != 0) continue;
    EXPECT_THAT(plan.sources[0].text, ::testing::HasSubstr("= fd_load_nc<bf16, 4>(p0 + ")) << n;
  }
}

// Cross entropy: the target's logit is one load a row.
TEST(MapsTest, TargetsAreTakenOnceARow) {
  for (const char* n : {"64", "1001"}) {
    Check(absl::StrCat("fir 1\n%x = input : bf16[9,", n, "]\n%t = input : i64[9]\n",
                       "%f = cast %x {dtype=f32}\n%m = max %f {dims=[1], keepdim=true}\n"
                       "%d = sub %f, %m\n%e = exp %d\n%s = sum %e {dims=[1], keepdim=true}\n"
                       "%l = log %s\n%i = broadcast %t {is_broadcast_dim=[false,true]}\n"
                       "%p = take_along_axis %f, %i {dims=[1]}\n%a = add %l, %m\n"
                       "%y = sub %a, %p\noutput %y\n"),
          1);
  }
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
