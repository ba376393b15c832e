#include "compiler/passes/pipeline.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "compiler/ir/text.h"
#include "compiler/ir/verify.h"
#include "tests/passes/graph_edit.h"
#include "tests/support/status_matchers.h"

namespace fusiond::passes {
namespace {

using ::fusiond::testing::DataGraph;
using ::fusiond::testing::IsOk;
using ::fusiond::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

ir::Graph Parsed(const std::string& body) {
  const auto graph = ir::Parse("fir 1\n" + body);
  EXPECT_THAT(graph, IsOk());
  return *graph;
}

TEST(PipelineTest, EveryDataGraphIsCanonicalAndSettlesInFewRounds) {
  for (const char* name :
       {"add", "column_sum", "gelu_bias", "layer_norm_backward", "layer_norm_forward",
        "rms_norm_backward_thunder", "rms_norm_forward", "softmax", "swiglu"}) {
    SCOPED_TRACE(name);
    for (const Math math : {Math::kStrict, Math::kDefault, Math::kFast}) {
      PassContext context;
      context.options.math = math;
      int rounds = 0;
      context.after_pass = [&](absl::string_view, int round, bool, const ir::Graph&) {
        rounds = round + 1;
      };
      ASSERT_OK_AND_ASSIGN(const ir::Graph canonical, Canonicalise(DataGraph(name), context));
      EXPECT_THAT(ir::Verify(canonical, ir::Stage::kCanonical), IsOk());
      EXPECT_LE(rounds, 3);
    }
  }
}

TEST(PipelineTest, InterfaceIsKept) {
  const ir::Graph graph = Parsed(
      "%a = input {contiguity=[t,f], stride_order=[0,1]} : f32[4,8]\n%b = input : f32[4,8]\n"
      "%s = input : f64\n%c = set %a\n%d = mul %b, %s\n%e = expand %b {shape=[4,8]}\n"
      "output %c alias %b\noutput %d\noutput %a\noutput %e");
  ASSERT_OK_AND_ASSIGN(const ir::Graph canonical, Canonicalise(graph));
  ASSERT_EQ(canonical.inputs().size(), graph.inputs().size());
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    EXPECT_EQ(canonical.type(canonical.inputs()[i]), graph.type(graph.inputs()[i]));
  }
  ASSERT_EQ(canonical.outputs().size(), graph.outputs().size());
  for (size_t i = 0; i < graph.outputs().size(); ++i) {
    EXPECT_EQ(canonical.outputs()[i].alias_input, graph.outputs()[i].alias_input);
    EXPECT_EQ(canonical.type(canonical.outputs()[i].value), graph.type(graph.outputs()[i].value));
  }
  // A copy of an input stays one; an input that was returned is returned.
  EXPECT_EQ(canonical.producer(canonical.outputs()[0].value).op, ir::Op::kSet);
  EXPECT_EQ(canonical.outputs()[2].value, canonical.inputs()[0]);
}

TEST(PipelineTest, DisabledPassesDoNotRun) {
  PassContext context;
  context.options.disabled = {"normalise_algebra"};
  std::set<std::string> ran;
  context.after_pass = [&](absl::string_view name, int, bool, const ir::Graph&) {
    ran.emplace(name);
  };
  ASSERT_OK_AND_ASSIGN(const ir::Graph canonical, Canonicalise(DataGraph("softmax"), context));
  EXPECT_EQ(ran.count("normalise_algebra"), 0);
  EXPECT_EQ(ran.size(), Pipeline().size() - 1);
  EXPECT_THAT(ir::Print(canonical), HasSubstr("div"));
}

TEST(PipelineTest, UnknownNamesAreRefusedWithTheKnownOnes) {
  ir::Graph graph = DataGraph("add");
  PassContext context;
  context.options.disabled = {"fold_cats"};
  EXPECT_THAT(RunPipeline(graph, context),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("no pass is named 'fold_cats'; there are: explicit_types, ")));
  EXPECT_THAT(RunPasses(graph, {"nothing"}, {}), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(PipelineTest, SymbolicGraphIsRefused) {
  ir::Graph graph = Parsed("%a = input : f32[-1]\n%b = neg %a\noutput %b");
  EXPECT_THAT(RunPipeline(graph, {}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("IR-40")));
}

TEST(PipelineTest, NodeLimitNamesPassLimitAndActual) {
  ir::Graph graph =
      Parsed("%a = input : f32[4,8]\n%v, %m = var_mean %a {dims=[1]}\noutput %v\noutput %m");
  PassContext context;
  context.limits.max_nodes = 5;
  EXPECT_THAT(RunPipeline(graph, context),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("after lower_variance: IR-01: 11 nodes, limit 5")));
}

TEST(PipelineTest, CheckpointEndsTheWork) {
  ir::Graph graph = DataGraph("softmax");
  PassContext context;
  int asked = 0;
  context.checkpoint = [&] {
    return ++asked < 3 ? absl::OkStatus() : absl::CancelledError("client gone");
  };
  EXPECT_THAT(RunPipeline(graph, context),
              StatusIs(absl::StatusCode::kCancelled, HasSubstr("client gone")));
  EXPECT_EQ(asked, 3);
}

TEST(PipelineTest, RunPassesRunsThemInTheGivenOrderOnce) {
  ir::Graph graph = DataGraph("rms_norm_forward");
  std::vector<std::string> ran;
  PassContext context;
  context.after_pass = [&](absl::string_view name, int, bool, const ir::Graph&) {
    ran.emplace_back(name);
  };
  ASSERT_OK_AND_ASSIGN(const bool changed,
                       RunPasses(graph, {"implicit_broadcasts", "explicit_types"}, context));
  EXPECT_TRUE(changed);
  EXPECT_THAT(ran, ElementsAre("implicit_broadcasts", "explicit_types"));
}

}  // namespace
}  // namespace fusiond::passes
