#include "compiler/ir/verify.h"

#include <set>

#include "compiler/ir/rules.h"
#include "compiler/ir/text.h"
#include "runtime/base/file.h"
#include "tests/support/status_matchers.h"

namespace fusiond::ir {
namespace {

using ::fusiond::testing::IsOk;
using ::fusiond::testing::StatusIs;
using ::testing::HasSubstr;

TEST(VerifyTest, EachStageAsksForMore) {
  ASSERT_OK_AND_ASSIGN(const Graph symbolic,
                       Parse("fir 1\n%a=input:bf16[-1]\n%n=size %a {dims=[0]}\n"
                             "%b=mul %a, %n\noutput %b"));
  EXPECT_THAT(Verify(symbolic, Stage::kImported), IsOk());
  EXPECT_THAT(Verify(symbolic, Stage::kSpecialised),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("node %0: IR-40: input: symbolic extent in bf16[-1]{1}")));
  ASSERT_OK_AND_ASSIGN(const Graph size,
                       Parse("fir 1\n%a=input:bf16[4]\n%n=size %a {dims=[0]}\noutput %a"));
  EXPECT_THAT(Verify(size, Stage::kSpecialised),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("node %1: IR-41: size: a size op is left")));
  ASSERT_OK_AND_ASSIGN(const Graph mixed, Parse("fir 1\n%a=input:bf16[4]\n%b=neg %a\noutput %b"));
  EXPECT_THAT(Verify(mixed, Stage::kSpecialised), IsOk());
  EXPECT_THAT(
      Verify(mixed, Stage::kCanonical),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("node %1: IR-50: neg: operand 0 is bf16, the op computes in f32")));
  ASSERT_OK_AND_ASSIGN(const Graph canonical,
                       Parse("fir 1\n%a=input:bf16[4]\n%c=cast %a {dtype=f32}\n%p=gt %c, %c\n"
                             "%k=constant {value=2.0, dtype=f32}\n%w=where %p, %c, %k\noutput %w"));
  EXPECT_THAT(Verify(canonical, Stage::kCanonical), IsOk());
}

// One node of a canonical graph breaks each rule.
TEST(VerifyTest, CanonicalRulesNameNodeAndReason) {
  struct Case {
    const char* text;
    const char* message;
  };
  const Case cases[] = {
      {"%a=input:f32[4]\n%k=constant {value=2.0}\n%b=mul %a, %k\noutput %b",
       "node %2: IR-50: mul: operand 1 is f64, the op computes in f32"},
      {"%a=input:bf16[4]\n%b=max %a {dims=[0], keepdim=true}\noutput %b",
       "node %1: IR-51: max: reads bf16"},
      {"%a=input:f32[4]\n%b=sum %a {dims=[0]}\noutput %b", "node %1: IR-52: sum: keepdim is false"},
      {"%a=input:f32[4]\n%b=var %a {dims=[0], keepdim=true}\noutput %b",
       "node %1: IR-52: var: is left"},
      {"%a=input:f32[4,1]\n%b=sum %a {dims=[1], keepdim=true}\noutput %b",
       "node %1: IR-52: sum: dim 1 has extent 1"},
      {"%a=input:f32[4]\n%b=broadcast_in_dim %a {shape=[2,4], broadcast_dims=[1]}\noutput %b",
       "node %1: IR-53: broadcast_in_dim: is left"},
      {"%a=input:f32[4,1]\n%b=expand %a {shape=[4,2]}\n%c=neg %b\noutput %c",
       "node %1: IR-53: expand: is read by neg"},
      {"%a=input:f32[4]\n%b=set %a\n%c=neg %b\noutput %c", "node %1: IR-53: set: is read by neg"},
  };
  for (const Case& c : cases) {
    ASSERT_OK_AND_ASSIGN(const Graph graph, Parse(std::string("fir 1\n") + c.text));
    EXPECT_THAT(Verify(graph, Stage::kSpecialised), IsOk());
    EXPECT_THAT(Verify(graph, Stage::kCanonical),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(c.message)));
  }
}

TEST(VerifyTest, CycleIsReportedNotFollowed) {
  Graph graph;
  ASSERT_OK_AND_ASSIGN(const ValueId a, graph.AddInput(TensorType(DType::kFloat, {4})));
  ASSERT_OK_AND_ASSIGN(const ValueId b, graph.Add(Op::kNeg, {a}));
  ASSERT_OK_AND_ASSIGN(const ValueId c, graph.Add(Op::kNeg, {b}));
  graph.AddOutput(c);
  graph.ReplaceUses(a, c);  // what a broken pass may do
  EXPECT_THAT(Verify(graph, Stage::kImported),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("node %1: IR-06: neg: stands on a cycle or behind one, as do 2 of "
                                 "the graph's 3 nodes")));
}

TEST(VerifyTest, LimitsAreChecked) {
  ASSERT_OK_AND_ASSIGN(const Graph graph,
                       Parse("fir 1\n%a=input:f32[4,4]\n%b=neg %a\noutput %b\noutput %a"));
  constexpr auto kLimit = absl::StatusCode::kResourceExhausted;
  EXPECT_THAT(Verify(graph, Stage::kImported, {.max_nodes = 1}),
              StatusIs(kLimit, HasSubstr("IR-01: 2 nodes, limit 1")));
  EXPECT_THAT(Verify(graph, Stage::kImported, {.max_inputs_and_outputs = 2}),
              StatusIs(kLimit, HasSubstr("IR-02: 3 inputs and outputs, limit 2")));
  EXPECT_THAT(
      Verify(graph, Stage::kImported, {.max_elements = 15}),
      StatusIs(kLimit,
               HasSubstr("node %0: IR-04: input: f32[4,4]{4,1} has 16 elements, limit 15")));
}

TEST(VerifyTest, OutputsAreChecked) {
  Graph graph;
  ASSERT_OK_AND_ASSIGN(const ValueId a, graph.AddInput(TensorType(DType::kFloat, {4})));
  EXPECT_THAT(Verify(graph, Stage::kImported),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("IR-07")));
  graph.AddOutput(a);
  graph.AddOutput(graph.AddConstant(1.0, DType::kDouble));
  EXPECT_THAT(Verify(graph, Stage::kImported),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("output 1: IR-27")));
  graph.SetOutput(1, a);
  graph.AddOutput(a, 7);
  EXPECT_THAT(Verify(graph, Stage::kImported),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("output 2: IR-28: alias of input 7, the graph has 1 input")));
}

TEST(RulesTest, NumbersAscendAndStandInTheReadme) {
  ASSERT_OK_AND_ASSIGN(const std::string readme, base::ReadFile("compiler/ir/README.md"));
  int last = 0;
  for (const RuleInfo& info : RuleTable()) {
    EXPECT_GT(static_cast<int>(info.rule), last);
    last = static_cast<int>(info.rule);
    EXPECT_THAT(readme,
                HasSubstr("| " + RuleName(info.rule) + " | " + std::string(info.text) + " |"));
  }
}

}  // namespace
}  // namespace fusiond::ir
