#include "compiler/compiler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/ir/text.h"
#include "compiler/nvrtc/nvrtc.h"
#include "runtime/executable/explanation.h"
#include "runtime/executable/serialise.h"
#include "tests/support/nvrtc_for_tests.h"
#include "tests/support/status_matchers.h"

namespace fusiond::compiler {
namespace {

using executable::Guard;
using executable::KernelArgument;
using executable::KernelStep;
using ::fusiond::testing::IsOk;
using ::fusiond::testing::StatusIs;
using ::testing::Contains;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

constexpr char kAdd[] = R"(fir 1
%a = input : bf16[64,1024]
%b = input : bf16[1024]
%s = input : f64
%x = cast %a {dtype=f32}
%y = cast %b {dtype=f32}
%z = add %x, %y
%f = cast %s {dtype=f32}
%w = mul %z, %f
%o = cast %w {dtype=bf16}
output %o
)";

PlanRequest Request(absl::string_view text, absl::string_view device) {
  PlanRequest request;
  request.graph = *ir::Parse(text);
  for (ir::ValueId input : request.graph.inputs()) {
    const ir::Type& type = request.graph.type(input);
    request.inputs.push_back({type.shape, type.strides});
  }
  request.device = *executable::ProfileByName(device);
  return request;
}

const KernelStep& Kernel(const PlanResult& plan, size_t step) {
  return std::get<KernelStep>(plan.skeleton.steps[step]);
}

bool HasGuard(const PlanResult& plan, Guard::Kind kind, uint32_t input, int64_t value) {
  for (const Guard& guard : plan.skeleton.guards)
    if (guard.kind == kind && guard.input == input && guard.value == value && !guard.output)
      return true;
  return false;
}

TEST(PlanTest, WhatNoKernelHoldsBecomesAKernelPerOp) {
  // Arguments of a few tensors at most: none of the segments fits.
  std::string text = "fir 1\n%v0 = input : f32[64,256]\n";
  for (int i = 1; i < 9; ++i)
    absl::StrAppend(&text, "%x", i, " = input : f32[64,256]\n%e", i, " = exp %x", i, "\n%v", i,
                    " = add %v", i - 1, ", %e", i, "\n");
  absl::StrAppend(&text, "%s = sum %v8 {dims=[1], keepdim=true}\n%y = mul %v8, %s\n",
                  "%c = sum %y {dims=[0]}\noutput %y\noutput %c\n");
  for (const char* arch : {"sm_80", "sm_90a"}) {
    PlanRequest request = Request(text, arch);
    request.device.max_argument_bytes = 48;
    request.explain = true;
    ASSERT_OK_AND_ASSIGN(const PlanResult plan, Plan(request));
    EXPECT_GE(plan.skeleton.steps.size(), 18u);
    EXPECT_THAT(plan.notes, Contains(HasSubstr("last resort, a kernel per op")));
    EXPECT_THAT(executable::Print(plan.explanation), HasSubstr("one op, the last resort"));
    EXPECT_THAT(plan.explanation.cuts(),
                Contains(ContainsRegex("^[0-9]+ nodes: arguments of segment [0-9]+ take [0-9]+ "
                                       "bytes, the limit is 48$")));
    EXPECT_THAT(plan.skeleton.provenance.schedule, HasSubstr("last resort pointwise/"));
    EXPECT_THAT(plan.skeleton.provenance.schedule, HasSubstr("last resort row_"));
    ASSERT_OK_AND_ASSIGN(const PlanResult whole, Plan(Request(text, arch)));
    EXPECT_LE(whole.skeleton.steps.size(), 2u);
    EXPECT_THAT(whole.notes, ::testing::IsEmpty());
  }
}

TEST(PlanTest, ValueThatIsAThousandOutputsTakesFewLaunches) {
  std::string text = "fir 1\n%a = input : f32[64,256]\n%b = neg %a\n";
  for (int i = 0; i < 1000; ++i) absl::StrAppend(&text, "output %b\n");
  for (const char* arch : {"sm_80", "sm_90a"}) {
    ASSERT_OK_AND_ASSIGN(const PlanResult plan, Plan(Request(text, arch)));
    EXPECT_LE(plan.skeleton.steps.size(), 9u) << arch;
    EXPECT_LE(plan.sources.size(), 3u) << arch;  // equal copies are one image
    EXPECT_THAT(executable::Validate(plan.skeleton), IsOk());
  }
}

TEST(PlanTest, PointwiseGraphBecomesOneKernelWithGuards) {
  ASSERT_OK_AND_ASSIGN(const PlanResult plan, Plan(Request(kAdd, "h100")));
  ASSERT_THAT(plan.skeleton.steps, SizeIs(1));
  ASSERT_THAT(plan.sources, SizeIs(1));
  const KernelStep& kernel = Kernel(plan, 0);
  EXPECT_EQ(kernel.entry, "fd_pointwise");
  std::vector<KernelArgument::Kind> kinds;
  for (const KernelArgument& argument : kernel.arguments) kinds.push_back(argument.kind);
  EXPECT_THAT(kinds,
              ::testing::ElementsAre(KernelArgument::Kind::kInput, KernelArgument::Kind::kInput,
                                     KernelArgument::Kind::kOutput, KernelArgument::Kind::kScalar,
                                     KernelArgument::Kind::kInt32));
  EXPECT_EQ(kernel.arguments[3].index, 2u);
  EXPECT_EQ(kernel.arguments[3].dtype, executable::DType::kDouble);
  EXPECT_TRUE(HasGuard(plan, Guard::Kind::kExtentEquals, 0, 64));
  EXPECT_TRUE(HasGuard(plan, Guard::Kind::kStrideEquals, 0, 1024));
  EXPECT_TRUE(HasGuard(plan, Guard::Kind::kAligned, 0, 16));
  EXPECT_THAT(plan.notes, SizeIs(0));
  executable::Executable complete = plan.skeleton;
  EXPECT_THAT(executable::Validate(complete), IsOk());
}

TEST(PlanTest, TextIncludesNothingAndBodiesHoldNoIntrinsics) {
  ASSERT_OK_AND_ASSIGN(const PlanResult plan, Plan(Request(kAdd, "h100")));
  const std::string& text = plan.sources[0].text;
  EXPECT_THAT(text, Not(HasSubstr("#include")));
  const std::string body = text.substr(text.find("extern \"C\" __global__"));
  for (const char* forbidden : {"asm", "__shared__", "__sync", "__shfl", "threadIdx", "#define"})
    EXPECT_THAT(body, Not(HasSubstr(forbidden)));
}

TEST(PlanTest, EqualRequestsGiveEqualBytes) {
  ASSERT_OK_AND_ASSIGN(const PlanResult a, Plan(Request(kAdd, "h200")));
  ASSERT_OK_AND_ASSIGN(const PlanResult b, Plan(Request(kAdd, "h200")));
  EXPECT_EQ(a.sources[0].text, b.sources[0].text);
  EXPECT_EQ(executable::Serialise(a.skeleton), executable::Serialise(b.skeleton));
}

TEST(PlanTest, RowsAreArgumentsSoThatTextsMeet) {
  std::string taller(kAdd);
  taller.replace(taller.find("[64,"), 4, "[96,");
  ASSERT_OK_AND_ASSIGN(const PlanResult a, Plan(Request(kAdd, "h100")));
  ASSERT_OK_AND_ASSIGN(const PlanResult b, Plan(Request(taller, "h100")));
  EXPECT_EQ(a.sources[0].text, b.sources[0].text);
}

TEST(PlanTest, WeakAlignmentNarrowsOneTensorOnly) {
  PlanRequest request = Request(kAdd, "h100");
  request.inputs[0].alignment = 4;
  ASSERT_OK_AND_ASSIGN(const PlanResult plan, Plan(request));
  EXPECT_TRUE(HasGuard(plan, Guard::Kind::kAligned, 0, 4));
  EXPECT_TRUE(HasGuard(plan, Guard::Kind::kAligned, 1, 16));
  EXPECT_THAT(plan.sources[0].text, HasSubstr("fd_load_nc_stream_pieces<bf16, 8, 2>(p0"));
}

TEST(PlanTest, UpdateInPlaceWritesTheInput) {
  ASSERT_OK_AND_ASSIGN(const PlanResult plan, Plan(Request(R"(fir 1
%p = input : f32[1000]
%g = input : f32[1000]
%n = add %p, %g
output %n alias %p
)",
                                                           "h100")));
  ASSERT_THAT(plan.skeleton.steps, SizeIs(1));
  EXPECT_THAT(plan.sources[0].text, HasSubstr("(f32* p0, const f32* __restrict__ p1, u32 n)"));
  EXPECT_THAT(plan.sources[0].text, HasSubstr("fd_load<f32, 4>(p0"));
  EXPECT_EQ(*plan.skeleton.outputs[0].alias_input, 0u);
}

TEST(PlanTest, UpdateInPlaceThatOthersWouldSeeIsCopiedAtTheEnd) {
  // The second kernel reads %p, which the first would have overwritten.
  ASSERT_OK_AND_ASSIGN(const PlanResult plan, Plan(Request(R"(fir 1
%p = input : f32[4096]
%q = input : f32[4096]
%n = add %p, %q
%e = exp %q
%b = segment_set %e
%m = mul %b, %p
output %m
output %n alias %p
)",
                                                           "h100")));
  ASSERT_THAT(plan.skeleton.steps, SizeIs(3));
  const KernelStep& copy = Kernel(plan, 2);
  EXPECT_EQ(copy.arguments[0].kind, KernelArgument::Kind::kWorkspace);
  EXPECT_EQ(copy.arguments[1].kind, KernelArgument::Kind::kInput);
}

TEST(PlanTest, EmptyOutputsTakeNoKernel) {
  ASSERT_OK_AND_ASSIGN(const PlanResult plan, Plan(Request(R"(fir 1
%a = input : f32[0,8]
%b = neg %a
output %b
)",
                                                           "h100")));
  EXPECT_THAT(plan.skeleton.steps, SizeIs(0));
}

TEST(PlanTest, CpuHoldsTheGraphAsSent) {
  PlanRequest request = Request(kAdd, "cpu");
  request.options.precision = Precision::kDouble;
  ASSERT_OK_AND_ASSIGN(const PlanResult plan, Plan(request));
  ASSERT_THAT(plan.skeleton.steps, SizeIs(1));
  const auto& step = std::get<executable::HostEvaluateStep>(plan.skeleton.steps[0]);
  EXPECT_TRUE(step.double_precision);
  EXPECT_FALSE(step.graph.empty());
  EXPECT_EQ(plan.skeleton.outputs[0].dtype, executable::DType::kDouble);
  EXPECT_THAT(plan.sources, SizeIs(0));
}

TEST(PlanTest, LayoutsThatContradictTheDefinitionAreRefused) {
  PlanRequest request = Request(kAdd, "h100");
  request.inputs[0].strides[1] = 2;
  EXPECT_THAT(Plan(request),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("input 0: stride of dim 1 is 2, the definition says 1")));
  request = Request(kAdd, "h100");
  request.inputs[0].alignment = 12;
  EXPECT_THAT(Plan(request), StatusIs(absl::StatusCode::kInvalidArgument,
                                      HasSubstr("alignment 12 is no power of two")));
  request = Request(kAdd, "h100");
  request.inputs.pop_back();
  EXPECT_THAT(Plan(request),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("layouts of 2 inputs")));
}

TEST(AssembleTest, CountsMustMeet) {
  ASSERT_OK_AND_ASSIGN(const PlanResult plan, Plan(Request(kAdd, "h100")));
  EXPECT_THAT(Assemble(plan.skeleton, {}), StatusIs(absl::StatusCode::kInvalidArgument,
                                                    HasSubstr("0 images for a plan with 1")));
  executable::Image image;
  image.cubin = "cubin";
  ASSERT_OK_AND_ASSIGN(const executable::Executable whole, Assemble(plan.skeleton, {image}));
  EXPECT_EQ(whole.images[0].cubin, "cubin");
}

class PlanCompilesTest : public ::testing::TestWithParam<const char*> {};

TEST_P(PlanCompilesTest, WithoutSpills) {
  absl::StatusOr<std::unique_ptr<nvrtc::Nvrtc>> nvrtc =
      nvrtc::Nvrtc::Open(testing::NvrtcLocationForTests());
  if (!nvrtc.ok()) GTEST_SKIP() << nvrtc.status();
  ASSERT_OK_AND_ASSIGN(const PlanResult plan, Plan(Request(kAdd, GetParam())));
  for (const KernelSource& source : plan.sources) {
    ASSERT_OK_AND_ASSIGN(
        const nvrtc::CompileOutput output,
        (*nvrtc)->Compile({source.text, source.name, plan.skeleton.arch, source.nvrtc_options}));
    ASSERT_THAT(output.entries, SizeIs(1));
    EXPECT_EQ(output.entries[0].spill_store_bytes, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Archs, PlanCompilesTest,
                         ::testing::Values("sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a",
                                           "sm_120a"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace fusiond::compiler
