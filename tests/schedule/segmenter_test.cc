#include "compiler/schedule/segmenter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "compiler/schedule/cost.h"
#include "runtime/base/file.h"
#include "tests/schedule/scheduling.h"
#include "tests/support/status_matchers.h"

namespace fusiond::schedule {
namespace {

using ::fusiond::testing::CountOf;
using ::fusiond::testing::SegmentedGraph;
using ::fusiond::testing::SegmentText;
using ::testing::SizeIs;

std::string GraphFile(const std::string& name) {
  return *base::ReadFile(absl::StrCat("tests/data/graphs/", name, ".fir"));
}

TEST(SegmenterTest, NormsBackwardAreOneSegmentWithRowAndColumnReductions) {
  for (const char* name : {"layer_norm_backward", "rms_norm_backward_thunder"}) {
    ASSERT_OK_AND_ASSIGN(const SegmentedGraph cut, SegmentText(GraphFile(name)));
    ASSERT_THAT(cut.regions, SizeIs(1)) << name;
    EXPECT_TRUE(cut.regions[0].row_reductions) << name;
    EXPECT_TRUE(cut.regions[0].column_reductions) << name;
    EXPECT_EQ(cut.regions[0].Rows(), 2048);
    EXPECT_EQ(cut.regions[0].Columns(), 8192);
  }
}

TEST(SegmenterTest, RoundingOfAColumnSumIsItsEpilogue) {
  ASSERT_OK_AND_ASSIGN(const SegmentedGraph cut, SegmentText(R"(fir 1
%g = input : bf16[512,256]
%h = input : bf16[512,256]
%f = cast %g {dtype=f32}
%p = mul %f, %h
%s = sum %p {dims=[0]}
%o = cast %s {dtype=bf16}
%q = cast %p {dtype=bf16}
output %o
output %q
)"));
  ASSERT_THAT(cut.regions, SizeIs(1));
  const Region& region = cut.regions[0];
  EXPECT_TRUE(region.column_reductions);
  EXPECT_FALSE(region.row_reductions);
  ASSERT_THAT(region.stores, SizeIs(2));
}

TEST(SegmenterTest, ColumnSumUsedByElementsEndsItsSegment) {
  // Batch statistics over the rows: the mean is complete only when the grid has ended.
  ASSERT_OK_AND_ASSIGN(const SegmentedGraph cut, SegmentText(R"(fir 1
%x = input : f32[512,256]
%s = sum %x {dims=[0], keepdim=true}
%n = constant {value=512.0}
%m = div %s, %n
%d = sub %x, %m
output %d
)"));
  ASSERT_THAT(cut.regions, SizeIs(2));
  EXPECT_TRUE(cut.regions[0].column_reductions);
  EXPECT_FALSE(cut.regions[1].column_reductions);
}

TEST(SegmenterTest, WhatIsCheapIsComputedAgainRatherThanStored) {
  // x - mean is needed by two segments; only the mean goes through memory.
  ASSERT_OK_AND_ASSIGN(const SegmentedGraph cut, SegmentText(R"(fir 1
%x = input : f32[512,256]
%s = sum %x {dims=[0], keepdim=true}
%n = constant {value=512.0}
%m = div %s, %n
%d = sub %x, %m
%q = mul %d, %d
%v = sum %q {dims=[0], keepdim=true}
%y = mul %d, %v
output %y
)"));
  ASSERT_THAT(cut.regions, SizeIs(3));
  for (size_t s = 0; s < 2; ++s) {
    for (const Store& store : cut.regions[s].stores)
      EXPECT_THAT(cut.regions[s].tensors[store.access.tensor].shape,
                  ::testing::ElementsAre(1, 256));
  }
}

TEST(SegmenterTest, CutValuesAreStoredAsNarrowAsTheirCastsAllow) {
  ASSERT_OK_AND_ASSIGN(const SegmentedGraph cut, SegmentText(R"(fir 1
%x = input : f32[512,256]
%e = exp %x
%h = cast %e {dtype=bf16}
%b = segment_set %h
%f = cast %b {dtype=f32}
%y = neg %f
output %y
)"));
  ASSERT_THAT(cut.regions, SizeIs(2));
  ASSERT_THAT(cut.regions[0].stores, SizeIs(1));
  EXPECT_EQ(cut.regions[0].tensors[cut.regions[0].stores[0].access.tensor].dtype,
            ir::DType::kBFloat16);
}

TEST(SegmenterTest, ReadersOfOneTensorAreOneSegment) {
  ASSERT_OK_AND_ASSIGN(const SegmentedGraph cut, SegmentText(R"(fir 1
%x = input : f32[512,256]
%a = exp %x
%b = tanh %x
%c = sum %b {dims=[1]}
output %a
output %c
)"));
  ASSERT_THAT(cut.regions, SizeIs(1));
  EXPECT_THAT(cut.regions[0].tensors, SizeIs(3));
}

TEST(SegmenterTest, CastOfASharedInputTiesNoSegmentsTogether) {
  ASSERT_OK_AND_ASSIGN(const SegmentedGraph cut, SegmentText(R"(fir 1
%w = input : bf16[256]
%x = input : f32[512,256]
%y = input : f32[256,64]
%f = cast %w {dtype=f32}
%a = mul %x, %f
%r = sum %a {dims=[1]}
%c = broadcast %f {is_broadcast_dim=[false,true]}
%b = mul %y, %c
output %r
output %b
)"));
  ASSERT_THAT(cut.regions, SizeIs(2));
  EXPECT_EQ(cut.segments[0].level, 0);
  EXPECT_EQ(cut.segments[1].level, 0);
}

TEST(SegmenterTest, NoKernelWalksASpaceThatNoneOfItsValuesFills) {
  // %s joins neither vector to the other: 12,000 times 50,000 points for 62,000 values.
  ASSERT_OK_AND_ASSIGN(const SegmentedGraph cut, SegmentText(R"(fir 1
%p = input : f32[12000]
%q = input : f32[1]
%e = expand %q {shape=[50000]}
%a = cosh %e
%s = tanh %q
%b = pow %p, %s
output %a
output %b
output %s
)"));
  for (const Region& region : cut.regions) EXPECT_LE(region.Elements(), 50000);
  // A sum of a row and a column fills it.
  ASSERT_OK_AND_ASSIGN(const SegmentedGraph outer, SegmentText(R"(fir 1
%p = input : f32[12000,1]
%q = input : f32[50000]
%a = cosh %p
%b = tanh %q
%c = add %a, %b
output %c
)"));
  EXPECT_THAT(outer.regions, SizeIs(1));
}

TEST(SegmenterTest, StrangersOfOneShapeShareALaunch) {
  ASSERT_OK_AND_ASSIGN(const SegmentedGraph cut, SegmentText(R"(fir 1
%p = input : f32[64,32]
%q = input : f32[64,32]
%r = input {stride_order=[0,1]} : f32[64,32]
%s = input : f32[64,16]
%a = exp %p
%b = exp %q
%c = exp %r
%d = exp %s
output %a
output %b
output %c
output %d
)"));
  // %c runs along other memory, %d over another space.
  EXPECT_THAT(cut.regions, SizeIs(3));
}

TEST(SegmenterTest, SegmentSetIsABoundary) {
  ASSERT_OK_AND_ASSIGN(const SegmentedGraph cut, SegmentText(R"(fir 1
%x = input : f32[64]
%a = exp %x
%b = segment_set %a
%c = neg %b
output %c
)"));
  EXPECT_THAT(cut.regions, SizeIs(2));
}

TEST(SegmenterTest, ReductionsOverDifferentDimsAreCut) {
  ASSERT_OK_AND_ASSIGN(const SegmentedGraph cut, SegmentText(R"(fir 1
%x = input : f32[8,16,32]
%a = sum %x {dims=[2]}
%b = sum %x {dims=[1]}
%c = sum %x {dims=[0,1]}
output %a
output %b
output %c
)"));
  // %a and %c sum over complementary dims; %b fits neither.
  EXPECT_THAT(cut.regions, SizeIs(2));
}

TEST(SegmenterTest, FewLongRowsAreOneSegmentWithWhatFollowsTheirReductions) {
  const std::string text = R"(fir 1
%x = input : f32[4,100000]
%m = max %x {dims=[1], keepdim=true}
%d = sub %x, %m
output %d
)";
  ASSERT_OK_AND_ASSIGN(const SegmentedGraph cut, SegmentText(text));
  EXPECT_THAT(cut.regions, SizeIs(1));
}

TEST(SegmenterTest, StricterFusionCutsMore) {
  const std::string text = GraphFile("layer_norm_backward");
  size_t before = 0;
  for (Fusion fusion : {Fusion::kAll, Fusion::kOneKind, Fusion::kSimple, Fusion::kNodeAlone}) {
    ASSERT_OK_AND_ASSIGN(const SegmentedGraph cut, SegmentText(text, fusion));
    EXPECT_GT(cut.regions.size(), before);
    before = cut.regions.size();
    for (const Region& region : cut.regions)
      EXPECT_TRUE(fusion == Fusion::kAll || !region.row_reductions || !region.column_reductions);
  }
}

TEST(SegmenterTest, TransposedInputDecidesWhichDimIsColumns) {
  // Memory runs along dim 0, which the sum takes: a row reduction.
  ASSERT_OK_AND_ASSIGN(const SegmentedGraph cut, SegmentText(R"(fir 1
%x = input {stride_order=[0,1]} : f32[512,256]
%s = sum %x {dims=[0]}
output %s
)"));
  ASSERT_THAT(cut.regions, SizeIs(1));
  EXPECT_TRUE(cut.regions[0].row_reductions);
  EXPECT_EQ(cut.regions[0].Columns(), 512);
}

// NVRTC takes half a minute and more for 256 sines in one kernel.
TEST(SegmenterTest, ChainsOfHeavyFunctionsAreCutSooner) {
  for (const auto& [op, nodes, most] : {std::tuple("sin", 256, 4u), std::tuple("neg", 255, 1u)}) {
    std::string text = "fir 1\n%v0 = input : f32[64,256]\n";
    for (int i = 0; i < nodes; ++i) absl::StrAppend(&text, "%v", i + 1, " = ", op, " %v", i, "\n");
    absl::StrAppend(&text, "output %v", nodes, "\n");
    ASSERT_OK_AND_ASSIGN(const SegmentedGraph cut, SegmentText(text));
    EXPECT_THAT(cut.regions, SizeIs(most));
    for (const Region& region : cut.regions) {
      int slots = 0;
      for (const Instr& instr : region.instrs)
        if (instr.kind == Instr::Kind::kCompute) slots += IssueSlots(instr.op);
      EXPECT_LE(slots, 2048);
    }
  }
}

TEST(SegmenterTest, ChainsOfTensOfThousandsOfNodesAreCutInLinearTime) {
  // 20,000 nodes; quadratic work would take minutes.
  std::string text = "fir 1\n%v0 = input : f32[64,64]\n";
  for (int i = 0; i < 20000; ++i)
    absl::StrAppend(&text, "%v", i + 1, " = ", i % 2 == 0 ? "neg" : "abs", " %v", i, "\n");
  absl::StrAppend(&text, "output %v20000\n");
  ASSERT_OK_AND_ASSIGN(const SegmentedGraph cut, SegmentText(text));
  EXPECT_GE(cut.regions.size(), 20000u / 256);
  EXPECT_LE(cut.regions.size(), 20000u / 128);
}

}  // namespace
}  // namespace fusiond::schedule
