// What a plan says of itself.
#include "compiler/explanation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler/compiler.h"
#include "compiler/ir/text.h"
#include "compiler/schedule/kernel_schedule.h"
#include "runtime/executable/explanation.h"
#include "tests/support/status_matchers.h"

namespace fusiond::compiler {
namespace {

using ::fusiond::testing::IsOk;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using v1::Explanation;

// A norm's backward without its casts, and something that no kernel computes with it.
constexpr char kGraph[] = R"(fir 1
%x = input : f32[256,2048]
%w = input : f32[2048]
%e = input : f64
%z = input : f32[256,1024]
%xw = mul %x, %w
%s = sum %xw {dims=[1], keepdim=true}
%y = mul %xw, %s
%c = sum %y {dims=[0]}
%t = permute %z {dims=[1,0]}
%ef = cast %e {dtype=f32}
%te = mul %t, %ef
output %y
output %c
output %te
)";

PlanRequest Request(absl::string_view text, absl::string_view device) {
  PlanRequest request;
  request.graph = *ir::Parse(text);
  for (ir::ValueId input : request.graph.inputs()) {
    const ir::Type& type = request.graph.type(input);
    request.inputs.push_back({type.shape, type.strides});
  }
  request.device = *executable::ProfileByName(device);
  request.explain = true;
  return request;
}

Explanation Explained(const PlanRequest& request) {
  const absl::StatusOr<PlanResult> plan = Plan(request);
  EXPECT_THAT(plan, IsOk());
  return plan.ok() ? plan->explanation : Explanation();
}

const Explanation::Segment& SegmentOf(const Explanation& explanation, absl::string_view scheduler) {
  for (const Explanation::Segment& segment : explanation.segments()) {
    const Explanation::Choice* chosen = executable::Chosen(segment);
    if (chosen != nullptr && absl::StartsWith(chosen->schedule(), scheduler)) return segment;
  }
  ADD_FAILURE() << "no segment of " << scheduler << " in\n" << executable::Print(explanation);
  return Explanation::Segment::default_instance();
}

TEST(ExplanationTest, OnlyWhoAsksGetsOne) {
  PlanRequest request = Request(kGraph, "h200");
  request.explain = false;
  EXPECT_EQ(Explained(request).ByteSizeLong(), 0u);
}

TEST(ExplanationTest, NamesDeviceOptionsInputsAndOutputs) {
  PlanRequest request = Request(kGraph, "h200");
  request.options.math = Math::kStrict;
  request.inputs[0].alignment = 64;
  const Explanation e = Explained(request);
  EXPECT_EQ(e.profile(), "h200");
  EXPECT_EQ(e.sm_count(), 132);
  EXPECT_THAT(e.options(), ElementsAre(::testing::Pair("math", "strict")));
  EXPECT_THAT(e.inputs(),
              ElementsAre("f32[256,2048]{2048,1}, 64-byte aligned", "f32[2048]{1}, 16-byte aligned",
                          "f64", "f32[256,1024]{1024,1}, 16-byte aligned"));
  EXPECT_THAT(e.outputs(),
              ElementsAre("f32[256,2048]{2048,1}", "f32[2048]{1}", "f32[1024,256]{256,1}"));
  EXPECT_EQ(e.canonical_hash().size(), 32u);
}

TEST(ExplanationTest, EveryNodeThatIsComputedHasASegment) {
  const Explanation e = Explained(Request(kGraph, "h200"));
  ASSERT_EQ(e.segments_size(), 2) << executable::Print(e);
  EXPECT_EQ(e.scheduled_ir(), "");
  const std::vector<std::string> lines = executable::GraphLines(e);
  std::vector<int> owners(lines.size(), 0);
  for (const Explanation::Segment& segment : e.segments()) {
    for (const uint32_t node : segment.nodes()) {
      ASSERT_LT(node, lines.size());
      ++owners[node];
    }
  }
  for (size_t i = 0; i < lines.size(); ++i) {
    const bool computed = absl::StrContains(lines[i], " sum ") ||
                          absl::StrContains(lines[i], " mul ") ||
                          absl::StrContains(lines[i], " permute ");
    const bool given =
        absl::StrContains(lines[i], " input") || absl::StrContains(lines[i], "output");
    EXPECT_TRUE(!computed || owners[i] > 0) << lines[i];
    EXPECT_TRUE(!given || owners[i] == 0) << lines[i];
  }
}

TEST(ExplanationTest, SegmentTellsSpaceMemoryHeldAndKernels) {
  const Explanation e = Explained(Request(kGraph, "h200"));
  const Explanation::Segment& s = SegmentOf(e, "row_column");
  EXPECT_EQ(s.space(), "256 rows x 2048 columns");
  ASSERT_GE(s.tensors_size(), 4);
  for (const Explanation::Tensor& tensor : s.tensors()) {
    const bool large = tensor.name() == "input 0" || tensor.name() == "output 0";
    const int64_t bytes = large ? 256 * 2048 * 4 : 2048 * 4;
    const bool read = absl::StartsWith(tensor.name(), "input");
    EXPECT_EQ(tensor.read_bytes(), read ? bytes : 0) << tensor.name();
    EXPECT_EQ(tensor.written_bytes(), read ? 0 : bytes) << tensor.name();
    EXPECT_GE(tensor.access_bytes(), 4) << tensor.name();
  }
  std::vector<std::string> registers, shared;
  for (const Explanation::Buffer& buffer : s.held()) {
    EXPECT_GT(buffer.bytes(), 0);
    (buffer.shared() ? shared : registers).push_back(buffer.what());
  }
  EXPECT_THAT(registers, Contains("input 0"));
  EXPECT_THAT(registers, Contains(::testing::StartsWith("column sum %")));
  EXPECT_THAT(shared, Contains(HasSubstr("stages for input 0")));
  ASSERT_EQ(s.kernels_size(), 2);
  EXPECT_THAT(s.kernels(0).name(), HasSubstr("row_column"));
  EXPECT_EQ(s.kernels(0).grid_size(), 3);
  EXPECT_GT(s.kernels(0).grid(0), 1);
  EXPECT_GT(s.kernels(0).threads(), 0);
  EXPECT_GT(s.kernels(0).dynamic_smem_bytes(), 0);
  EXPECT_TRUE(s.kernels(1).pdl());

  const Explanation::Segment& t = SegmentOf(e, "transpose");
  EXPECT_EQ(t.space(), "1024x256 elements");
  EXPECT_THAT(t.held(), Not(IsEmpty()));
}

TEST(ExplanationTest, EveryScheduleReadsBackAndHasACostOrAReason) {
  for (const char* device : {"a100", "l40s", "h200", "b200"}) {
    const Explanation e = Explained(Request(kGraph, device));
    for (const Explanation::Segment& segment : e.segments()) {
      int chosen = 0;
      for (const Explanation::Choice& choice : segment.choices()) {
        EXPECT_THAT(schedule::ParsePattern(choice.schedule()), IsOk());
        chosen += choice.chosen();
        if (choice.refused().empty()) {
          EXPECT_THAT(schedule::ParseSchedule(choice.schedule()), IsOk());
          EXPECT_NE(choice.meaning(), "");
          EXPECT_GT(choice.dram_bytes(), 0);
          EXPECT_GT(choice.microseconds(), 1);
        }
      }
      EXPECT_EQ(chosen, 1);
    }
  }
}

TEST(ExplanationTest, AttemptIsTheChosenOneAndRanksStay) {
  PlanRequest request = Request(kGraph, "h200");
  const Explanation first = Explained(request);
  request.attempt = 1;
  const Explanation second = Explained(request);
  const Explanation::Segment& s = SegmentOf(second, "row_column");
  EXPECT_TRUE(s.choices(1).chosen());
  EXPECT_FALSE(s.choices(0).chosen());
  EXPECT_EQ(s.choices(0).schedule(),
            executable::Chosen(SegmentOf(first, "row_column"))->schedule());
}

TEST(ExplanationTest, OutputThatIsAnInputIsACopyAndTheGraphSaysSo) {
  const Explanation e = Explained(
      Request("fir 1\n%x = input : f32[64]\n%y = neg %x\noutput %x\noutput %y\n", "h200"));
  EXPECT_THAT(e.scheduled_ir(), HasSubstr("set %0"));
  EXPECT_THAT(e.canonical_ir(), Not(HasSubstr("set %0")));
}

TEST(ExplanationTest, CpuSaysWhyItHasNoKernels) {
  PlanRequest request = Request("fir 1\n%x = input : f32[64]\n%y = neg %x\noutput %y\n", "cpu");
  const Explanation e = Explained(request);
  EXPECT_EQ(e.segments_size(), 0);
  EXPECT_THAT(e.notes(), ElementsAre(HasSubstr("arch cpu has no kernels")));
}

}  // namespace
}  // namespace fusiond::compiler
