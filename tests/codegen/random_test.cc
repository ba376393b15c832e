#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "compiler/ir/text.h"
#include "tests/codegen/plan_runner.h"
#include "tests/support/random_graph.h"
#include "tests/support/status_matchers.h"

namespace fusiond::codegen {
namespace {

using ::fusiond::testing::IsOk;
using ::fusiond::testing::MakeRandomGraph;
using ::fusiond::testing::PlanRunOptions;
using ::fusiond::testing::RandomGraph;
using ::fusiond::testing::RandomGraphOptions;
using ::fusiond::testing::RunPlan;
using ::fusiond::testing::TestSeed;

// FUSIOND_RANDOM_GRAPHS: how many graphs a test takes, for long runs.
int Graphs(int otherwise) {
  const char* count = std::getenv("FUSIOND_RANDOM_GRAPHS");
  return count != nullptr ? std::atoi(count) : otherwise;
}

TEST(RandomGraphTest, KernelsAgreeWithTheEvaluator) {
  const uint64_t seed = TestSeed();
  for (int i = 0; i < Graphs(8); ++i) {
    const RandomGraph random = MakeRandomGraph(seed + i);
    PlanRunOptions options;
    options.seed = seed + i;
    const absl::Status status = RunPlan(random.graph, options);
    EXPECT_TRUE(status.ok()) << "seed " << seed + i << ": " << status << "\n"
                             << ir::Print(random.graph);
  }
}

}  // namespace
}  // namespace fusiond::codegen
