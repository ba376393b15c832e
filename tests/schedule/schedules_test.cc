// What the rules propose for each arch: the figures of compiler/schedule/README.md.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/schedule/candidates.h"
#include "compiler/schedule/device_model.h"
#include "compiler/schedule/online.h"
#include "compiler/schedule/stages.h"
#include "compiler/schedule/variants.h"
#include "tests/codegen/norm_graphs.h"
#include "tests/schedule/scheduling.h"
#include "tests/support/status_matchers.h"

namespace fusiond::schedule {
namespace {

using ::fusiond::testing::RmsNormBackward;
using ::fusiond::testing::SegmentedGraph;
using ::fusiond::testing::SegmentText;
using ::testing::HasSubstr;
using ::testing::SizeIs;

executable::DeviceInfo Device(const std::string& name) { return *executable::ProfileByName(name); }

KernelSchedule First(const std::string& text, const std::string& device) {
  const absl::StatusOr<SegmentedGraph> cut = SegmentText(text);
  EXPECT_TRUE(cut.ok()) << cut.status();
  EXPECT_THAT(cut->regions, SizeIs(1));
  const Candidates candidates = FindCandidates(cut->regions[0], Device(device));
  EXPECT_FALSE(candidates.accepted.empty());
  for (const Candidate& candidate : candidates.accepted)
    EXPECT_NE(FindVariant(candidate.schedule), nullptr) << Print(candidate.schedule);
  return candidates.accepted[0].schedule;
}

// A line each.
std::string Words(const std::vector<Refusal>& refused) {
  std::string words;
  for (const Refusal& r : refused) absl::StrAppend(&words, r.schedule, ": ", r.reason, "\n");
  return words;
}

std::string Pointwise(int inputs, const std::string& dtype, const std::string& shape) {
  std::string text = "fir 1\n";
  for (int i = 0; i < inputs; ++i)
    absl::StrAppend(&text, "%x", i, " = input : ", dtype, shape, "\n");
  absl::StrAppend(&text, "%s0 = neg %x0\n");
  for (int i = 1; i < inputs; ++i)
    absl::StrAppend(&text, "%s", i, " = add %s", i - 1, ", %x", i, "\n");
  return absl::StrCat(text, "%o = cast %s", inputs - 1, " {dtype=", dtype, "}\noutput %o\n");
}

TEST(PointwiseScheduleTest, VectorsInFlightFollowTheDevice) {
  struct Row {
    const char* device;
    int one, two, four;  // vectors a thread, by number of inputs
  };
  for (const Row& row :
       {Row{"a100", 2, 1, 1}, Row{"l40s", 1, 1, 1}, Row{"h100", 2, 1, 1}, Row{"h200", 4, 2, 1}}) {
    EXPECT_EQ(First(Pointwise(1, "bf16", "[8192,8192]"), row.device).unroll, row.one);
    EXPECT_EQ(First(Pointwise(2, "bf16", "[8192,8192]"), row.device).unroll, row.two);
    EXPECT_EQ(First(Pointwise(4, "bf16", "[8192,8192]"), row.device).unroll, row.four);
  }
}

TEST(PointwiseScheduleTest, VectorIsSixteenBytesOfTheNarrowestTensor) {
  EXPECT_EQ(First(Pointwise(2, "bf16", "[4096,64]"), "h100").vector, 8);
  EXPECT_EQ(First(Pointwise(2, "f32", "[4096,64]"), "h100").vector, 4);
  EXPECT_EQ(First(Pointwise(2, "f64", "[4096,64]"), "h100").vector, 2);
  EXPECT_EQ(
      First("fir 1\n%x = input : bool[4096]\n%y = logical_not %x\noutput %y\n", "h100").vector, 16);
  EXPECT_EQ(First("fir 1\n%x = input : bf16[4096]\n%y = exp %x\noutput %y\n", "h100").vector, 8);
}

TEST(PointwiseScheduleTest, SmallTensorsSpreadOverTheDevice) {
  EXPECT_EQ(First(Pointwise(1, "bf16", "[64,1024]"), "h200").unroll, 1);
}

TEST(PointwiseScheduleTest, LargeTensorsTakeWideIndices) {
  EXPECT_FALSE(First(Pointwise(1, "bf16", "[32768,32768]"), "h200").wide_index);
  EXPECT_TRUE(First(Pointwise(1, "bf16", "[65536,32768]"), "h200").wide_index);
}

// `dtype`: of the operand that lies transposed.
std::string TransposedAdd(int rows, int columns, const std::string& dtype) {
  return absl::StrCat("fir 1\n%x = input {stride_order=[0,1]} : ", dtype, "[", rows, ",", columns,
                      "]\n%y = input : ", dtype, "[", rows, ",", columns,
                      "]\n%s = add %x, %y\noutput %s\n");
}

TEST(TransposeScheduleTest, TilesOfFourThousandElements) {
  struct Row {
    int rows, columns, along, across;  // elements of a tile along the output's columns, and rows
  };
  for (const Row& row : {Row{8192, 8192, 64, 64}, Row{8192, 24, 32, 128}, Row{3, 8192, 1024, 4}}) {
    const KernelSchedule schedule = First(TransposedAdd(row.rows, row.columns, "bf16"), "h200");
    EXPECT_EQ(schedule.scheduler, SchedulerId::kTranspose) << Print(schedule);
    EXPECT_EQ(schedule.threads_per_row * schedule.vector, row.along) << Print(schedule);
    EXPECT_EQ(schedule.rows_per_cta, row.across) << Print(schedule);
    EXPECT_EQ(schedule.threads, 256) << Print(schedule);
  }
}

TEST(TransposeScheduleTest, SharedMemoryIsWhatEveryLaunchMayHave) {
  for (const char* dtype : {"bf16", "f32", "f64"})
    EXPECT_LE(First(TransposedAdd(8192, 8192, dtype), "sm_80").smem_bytes, 48 * 1024) << dtype;
}

TEST(TransposeScheduleTest, NothingThatRunsTheSameWay) {
  EXPECT_EQ(First(Pointwise(2, "bf16", "[8192,8192]"), "h200").scheduler, SchedulerId::kPointwise);
}

std::string Softmax(int64_t rows, int64_t columns) {
  return absl::StrCat("fir 1\n%x = input : bf16[", rows, ",", columns, R"(]
%f = cast %x {dtype=f32}
%s = sum %f {dims=[1], keepdim=true}
%y = mul %f, %s
%o = cast %y {dtype=bf16}
output %o
)");
}

// By the rule up to 6144 columns; beyond, a thread would hold more than is comfortable.
TEST(RowPersistentScheduleTest, TeamsGrowWithTheRow) {
  struct Row {
    int columns, team, rows;
  };
  for (const char* device : {"sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a"}) {
    for (const Row& row : {Row{64, 8, 16}, Row{128, 16, 8}, Row{1024, 32, 4}, Row{3072, 32, 4},
                           Row{6144, 64, 1}, Row{16384, 256, 1}, Row{32768, 512, 1}}) {
      const KernelSchedule schedule = First(Softmax(8192, row.columns), device);
      EXPECT_EQ(schedule.scheduler, SchedulerId::kRowPersistent);
      EXPECT_EQ(schedule.threads_per_row, row.team) << device << " " << row.columns;
      EXPECT_EQ(schedule.rows_per_cta, row.rows) << device << " " << row.columns;
      EXPECT_EQ(schedule.vector, 8);
    }
  }
}

TEST(RowPersistentScheduleTest, OddRowsKeepWholeVectors) {
  const KernelSchedule schedule = First(Softmax(8192, 1023), "h100");
  EXPECT_EQ(schedule.vector, 8);
  EXPECT_EQ(schedule.variant, "warp_shifted");
}

TEST(RowPersistentScheduleTest, ClustersShareRowsThatACtaHoldsInDiscomfort) {
  EXPECT_EQ(First(Softmax(8192, 49152), "h200").cluster, 0);
  EXPECT_EQ(First(Softmax(8192, 65536), "h200").cluster, 4);
  EXPECT_EQ(First(Softmax(8192, 131072), "h200").cluster, 8);
  EXPECT_EQ(First(Softmax(8192, 65536), "sm_89").cluster, 0);
}

TEST(RowPersistentScheduleTest, RowsThatDoNotFitAreRefusedWithBothNumbers) {
  ASSERT_OK_AND_ASSIGN(const SegmentedGraph cut, SegmentText(Softmax(8192, 1 << 18)));
  const Candidates candidates = FindCandidates(cut.regions[0], Device("h100"));
  EXPECT_THAT(Words(candidates.refused),
              HasSubstr("row_persistent: a row takes 1024 bytes of registers a thread, the limit "
                        "is 320\n"));
}

TEST(CandidatesTest, WhatNoSmHasRoomForIsRefusedWithBothNumbers) {
  KernelSchedule s;
  s.threads = 1024;
  EXPECT_EQ(WhyNotResident(s, Device("l40s")), "");
  s.threads = 1056;
  EXPECT_EQ(WhyNotResident(s, Device("l40s")), "a CTA takes 1056 threads, the limit is 1024");
  s.threads = 512;
  s.smem_bytes = 100 * 1024;
  EXPECT_EQ(WhyNotResident(s, Device("h200")), "");
  EXPECT_EQ(WhyNotResident(s, Device("l40s")),
            "a CTA takes 102400 bytes of shared memory, the limit is 101376");
  s.smem_bytes = 0;
  s.cluster = 8;
  EXPECT_EQ(WhyNotResident(s, Device("h200")), "");
  EXPECT_EQ(WhyNotResident(s, Device("l40s")), "sm_89 has no clusters");
  s.cluster = 16;
  EXPECT_EQ(WhyNotResident(s, Device("h200")), "a cluster has 16 CTAs, the limit is 8");
}

TEST(CandidatesTest, ProposalsWithoutRoomAreRefused) {
  ASSERT_OK_AND_ASSIGN(const SegmentedGraph cut, SegmentText(Softmax(8192, 4096)));
  executable::DeviceInfo device = Device("h100");
  device.max_threads_per_block = 200;
  const Candidates candidates = FindCandidates(cut.regions[0], device);
  EXPECT_FALSE(candidates.accepted.empty());
  for (const Candidate& candidate : candidates.accepted)
    EXPECT_LE(candidate.schedule.threads, 200) << Print(candidate.schedule);
  EXPECT_THAT(Words(candidates.refused), HasSubstr("a CTA takes 256 threads, the limit is 200"));
}

TEST(RowColumnScheduleTest, WarpsShareLongRowsAndElementsStayConvertedWhereTheyFit) {
  struct Row {
    int columns, warps, teams;
    const char* form;
    bool unpacked;
  };
  for (const auto& [device, source] :
       {std::pair{"sm_80", "async"}, std::pair{"sm_90a", "bulk"}, std::pair{"sm_100a", "bulk"}}) {
    for (const Row& row : {Row{512, 1, 12, "_warp", true}, Row{1024, 1, 12, "_warp", false},
                           Row{2048, 4, 4, "_team", true}, Row{4096, 8, 2, "_team", true},
                           Row{8192, 16, 1, "_cta", true}}) {
      const KernelSchedule schedule = First(RmsNormBackward(2048, row.columns), device);
      SCOPED_TRACE(absl::StrCat(device, ": ", Print(schedule)));
      EXPECT_EQ(schedule.scheduler, SchedulerId::kRowColumn);
      EXPECT_EQ(schedule.variant, absl::StrCat(source, row.form));
      EXPECT_EQ(schedule.threads_per_row, 32 * row.warps);
      EXPECT_EQ(schedule.rows_per_cta, row.teams);
      EXPECT_EQ(schedule.unpacked, row.unpacked);
    }
  }
}

TEST(RowColumnScheduleTest, ClustersShareRowsThatLeaveALaneMoreThan16Columns) {
  EXPECT_EQ(First(RmsNormBackward(2048, 16384), "sm_80").variant, "async_cta");
  for (const auto& [columns, ctas] : {std::pair{8200, 2}, std::pair{16384, 2}, std::pair{16392, 3},
                                      std::pair{32768, 4}, std::pair{65536, 8}}) {
    const KernelSchedule schedule = First(RmsNormBackward(2048, columns), "h200");
    SCOPED_TRACE(Print(schedule));
    EXPECT_EQ(schedule.variant, "bulk_cluster");
    EXPECT_EQ(schedule.cluster, ctas);
    EXPECT_EQ(schedule.stages, 6);
    EXPECT_LE(schedule.vector * schedule.unroll, 16);
    EXPECT_LE(schedule.splits * ctas, Device("h200").sm_count);
  }
  // Rows that no bulk copy can bring.
  EXPECT_EQ(First(RmsNormBackward(2048, 12287), "h200").variant, "direct_cta");
}

TEST(RowColumnScheduleTest, NothingIsUnpackedThatMemoryHoldsInFull) {
  EXPECT_FALSE(First(RmsNormBackward(2048, 2048, "f32"), "h200").unpacked);
}

TEST(RowStreamScheduleTest, LongRowsAreStreamedByACtaEach) {
  for (const char* device : {"sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a"}) {
    const KernelSchedule schedule = First(Softmax(4096, 1 << 18), device);
    EXPECT_EQ(schedule.scheduler, SchedulerId::kRowStream) << device;
    EXPECT_EQ(schedule.variant, "cta");
    EXPECT_EQ(schedule.threads, 512);
    // 32 KB a CTA on the way.
    EXPECT_EQ(schedule.vector * schedule.unroll, 32);
    EXPECT_EQ(schedule.splits, 0);
  }
}

TEST(RowStreamScheduleTest, FewLongRowsGetTwoCtasAnSm) {
  for (const char* device : {"sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a"}) {
    for (const int rows : {1, 3, 10}) {
      const KernelSchedule schedule = First(Softmax(rows, 1 << 24), device);
      EXPECT_EQ(schedule.variant, "split") << device;
      EXPECT_EQ(schedule.splits, 2 * Device(device).sm_count / rows) << device;
    }
    // As many as there are steps.
    EXPECT_EQ(First(Softmax(1, 1 << 18), device).splits, 64) << device;
  }
}

TEST(RowStreamScheduleTest, RowsAreSplitWhereThatPaysForTheLaunches) {
  EXPECT_EQ(First(Softmax(1, 8192), "h200").scheduler, SchedulerId::kRowPersistent);
  EXPECT_EQ(First(Softmax(1, 65536), "sm_89").variant, "split");
  EXPECT_EQ(First(Softmax(132, 65536), "sm_89").variant, "cta");
  // One launch of a few CTAs.
  EXPECT_EQ(First(Softmax(1, 65536), "h200").variant, "cluster");
}

TEST(RowStreamScheduleTest, ReductionsOnlineAreOnePass) {
  const auto passes = [](const std::string& text) {
    const absl::StatusOr<SegmentedGraph> cut = SegmentText(text);
    EXPECT_TRUE(cut.ok()) << cut.status();
    return PlanStages(WithOnlineReductions(cut->regions.at(0)), kReadAgain).passes.size();
  };
  const std::string head = "fir 1\n%x = input : f32[8,100000]\n";
  EXPECT_EQ(passes(head + "%v, %m = var_mean %x {dims=[1], correction=1}\noutput %v\noutput %m\n"),
            2u);  // the second has no columns
  EXPECT_EQ(passes(head + R"(%v, %m = var_mean %x {dims=[1], correction=0, keepdim=true}
%d = sub %x, %m
%r = rsqrt %v
%y = mul %d, %r
output %y
)"),
            2u);
  // Squares around something else than the mean.
  const std::string centred = R"(%s = sum %x {dims=[1], keepdim=true}
%n = constant {value=N}
%m = div %s, %n
%d = sub %x, %m
%q = mul %d, %d
%v = sum %q {dims=[1], keepdim=true}
%y = mul %x, %v
output %y
)";
  const auto with = [&](const std::string& divisor) {
    std::string text = head + centred;
    return text.replace(text.find('N'), 1, divisor);
  };
  EXPECT_EQ(passes(with("100000.0")), 2u);
  EXPECT_EQ(passes(with("99999.0")), 3u);
  // Softmax; exponentials below something else than the maximum.
  const auto exponentials = [&](const std::string& of) {
    return passes(head + "%m = " + of + R"( {dims=[1], keepdim=true}
%d = sub %x, %m
%e = exp %d
%s = sum %e {dims=[1], keepdim=true}
%y = div %e, %s
output %y
)");
  };
  EXPECT_EQ(exponentials("max %x"), 2u);
  EXPECT_EQ(exponentials("min %x"), 3u);
}

TEST(RowStreamScheduleTest, WhatIsDearToComputeAgainIsNotTaken) {
  // Each step computes all steps before it anew.
  const auto refused = [](int steps) {
    std::string text = "fir 1\n%x0 = input : f32[8,262144]\n";
    for (int i = 0; i < steps; ++i)
      absl::StrAppend(&text, "%m", i, " = max %x", i, " {dims=[1], keepdim=true}\n%x", i + 1,
                      " = sub %x", i, ", %m", i, "\n");
    absl::StrAppend(&text, "output %x", steps, "\n");
    const absl::StatusOr<SegmentedGraph> cut = SegmentText(text);
    EXPECT_TRUE(cut.ok()) << cut.status();
    return Words(FindCandidates(cut->regions.at(0), Device("h100")).refused);
  };
  EXPECT_THAT(refused(5), ::testing::Not(HasSubstr("row_stream")));
  EXPECT_THAT(refused(20), HasSubstr("row_stream: computing elements again takes 380 issue slots"));
}

TEST(RowStreamScheduleTest, LargeTensorsTakeWideIndices) {
  EXPECT_FALSE(First(Softmax(1 << 10, 1 << 20), "h200").wide_index);
  EXPECT_TRUE(First(Softmax(1 << 11, 1 << 20), "h200").wide_index);
  EXPECT_TRUE(First(Softmax(1, int64_t{1} << 33), "h200").wide_index);
}

TEST(RegionTest, DimsThatEveryTensorRunsThroughAreMerged) {
  ASSERT_OK_AND_ASSIGN(const SegmentedGraph cut, SegmentText(R"(fir 1
%x = input : f32[4,8,16,32]
%b = input : f32[32]
%s = add %x, %b
output %s
)"));
  ASSERT_THAT(cut.regions, SizeIs(1));
  EXPECT_THAT(cut.regions[0].dims, ::testing::ElementsAre(Dim{4 * 8 * 16}, Dim{32}));
}

TEST(RegionTest, PermutedTensorsAreWalkedAsMemoryRuns) {
  // Both inputs channels-last; the output is row-major and weighs more.
  ASSERT_OK_AND_ASSIGN(const SegmentedGraph cut, SegmentText(R"(fir 1
%x = input {stride_order=[3,0,2,1]} : f32[2,8,4,4]
%s = sum %x {dims=[1]}
output %s
)"));
  ASSERT_THAT(cut.regions, SizeIs(1));
  EXPECT_TRUE(cut.regions[0].row_reductions);
  EXPECT_EQ(cut.regions[0].Rows(), 2 * 4 * 4);
  EXPECT_EQ(cut.regions[0].Columns(), 8);
}

}  // namespace
}  // namespace fusiond::schedule
