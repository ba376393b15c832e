// Every pass, and the whole pipeline, on random graphs: outputs stay, a second run changes nothing.
#include <gtest/gtest.h>

#include "compiler/ir/specialise.h"
#include "compiler/ir/text.h"
#include "compiler/ir/verify.h"
#include "compiler/passes/pipeline.h"
#include "tests/passes/same_outputs.h"
#include "tests/support/random_graph.h"
#include "tests/support/status_matchers.h"

namespace fusiond::passes {
namespace {

using ::fusiond::testing::MakeRandomGraph;
using ::fusiond::testing::RandomGraph;
using ::fusiond::testing::SameOutputs;
using ::fusiond::testing::SameOutputsOptions;
using ::fusiond::testing::TestSeed;

constexpr int kGraphs = 300;

PassContext Strict() {
  PassContext context;
  context.options = {.math = Math::kStrict, .excess_precision = false, .disabled = {}};
  return context;
}

template <typename Check>
void ForManyGraphs(Check check) {
  const uint64_t seed = TestSeed();
  for (uint64_t i = 0; i < kGraphs; ++i) {
    const RandomGraph random = MakeRandomGraph(seed + i);
    ASSERT_OK_AND_ASSIGN(ir::Graph graph, ir::Specialise(random.graph, random.extents));
    graph.Compact();
    check(graph, seed + i);
    if (::testing::Test::HasFailure()) FAIL() << "FUSIOND_TEST_SEED=" << seed + i;
  }
}

// Passes that promise to change no value at all. lower_variance before them: the evaluator rounds a
// variance once, its sums more often.
TEST(ExactPassesTest, KeepEveryBitOfRandomGraphs) {
  ForManyGraphs([](ir::Graph& graph, uint64_t seed) {
    ASSERT_OK_AND_ASSIGN(bool changed,
                         RunPasses(graph, {"explicit_types", "lower_variance"}, Strict()));
    for (const absl::string_view pass :
         {"explicit_types", "fold_constants", "implicit_broadcasts", "fold_casts", "deduplicate"}) {
      const ir::Graph before = graph;
      ASSERT_OK_AND_ASSIGN(changed, RunPasses(graph, {pass}, Strict()));
      EXPECT_EQ(changed, ir::Print(before) != ir::Print(graph)) << pass;
      EXPECT_TRUE(SameOutputs(before, graph, seed)) << pass;
    }
  });
}

TEST(PassesTest, AreIdempotentOnRandomGraphs) {
  ForManyGraphs([](ir::Graph& graph, uint64_t) {
    ASSERT_OK_AND_ASSIGN(bool changed, RunPasses(graph, {"explicit_types", "lower_variance"}, {}));
    for (const PassInfo& pass : Pipeline()) {
      ASSERT_OK_AND_ASSIGN(changed, RunPasses(graph, {pass.name}, {}));
      const std::string once = ir::Print(graph);
      ASSERT_OK_AND_ASSIGN(changed, RunPasses(graph, {pass.name}, {}));
      EXPECT_FALSE(changed) << pass.name;
      EXPECT_EQ(once, ir::Print(graph)) << pass.name;
    }
  });
}

TEST(PipelineTest, StrictKeepsValuesOfRandomGraphs) {
  ForManyGraphs([](const ir::Graph& graph, uint64_t seed) {
    ASSERT_OK_AND_ASSIGN(const ir::Graph canonical, Canonicalise(graph, Strict()));
    EXPECT_TRUE(SameOutputs(graph, canonical, seed, {.native = false, .finite_only = true}));
    ASSERT_OK_AND_ASSIGN(const ir::Graph again, Canonicalise(canonical, Strict()));
    EXPECT_EQ(ir::Print(canonical), ir::Print(again));
  });
}

}  // namespace
}  // namespace fusiond::passes
