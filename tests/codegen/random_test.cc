#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "compiler/ir/text.h"
#include "compiler/ir/verify.h"
#include "tests/codegen/plan_runner.h"
#include "tests/support/random_graph.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_seed.h"

namespace fusiond::codegen {
namespace {

using ::fusiond::testing::MakeRandomGraph;
using ::fusiond::testing::PlanRunOptions;
using ::fusiond::testing::RandomGraph;
using ::fusiond::testing::RandomGraphOptions;
using ::fusiond::testing::RequestFor;
using ::fusiond::testing::RunPlan;
using ::fusiond::testing::TestSeed;

// FUSIOND_RANDOM_GRAPHS: how many graphs a test takes, for long runs.
int Graphs(int otherwise) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody sets it
  const char* count = std::getenv("FUSIOND_RANDOM_GRAPHS");
  return count != nullptr ? std::atoi(count) : otherwise;
}

TEST(RandomGraphTest, KernelsAgreeWithTheEvaluator) {
  const uint64_t seed = TestSeed();
  for (int i = 0; i < Graphs(8); ++i) {
    const RandomGraph random = MakeRandomGraph(seed + i);
    PlanRunOptions options;
    options.seed = seed + i;
    options.options.math = static_cast<ir::Math>(options.seed % 3);
    const absl::Status status = RunPlan(random.graph, options);
    EXPECT_TRUE(status.ok()) << "seed " << seed + i << ": " << status << "\n"
                             << ir::Print(random.graph);
  }
}

// Maps of maps, of what is computed and what is reduced.
TEST(RandomGraphTest, KernelsOfMapsAgreeWithTheEvaluator) {
  RandomGraphOptions maps;
  maps.dtypes = {ir::DType::kFloat, ir::DType::kBFloat16, ir::DType::kInt};
  maps.max_nodes = 20;
  maps.ops = {ir::Op::kPermute,     ir::Op::kSlice, ir::Op::kReshape,       ir::Op::kPad,
              ir::Op::kCat,         ir::Op::kTriu,  ir::Op::kTakeAlongAxis, ir::Op::kGather,
              ir::Op::kIndexSelect, ir::Op::kIota,  ir::Op::kAdd,           ir::Op::kMul,
              ir::Op::kNeg,         ir::Op::kCast,  ir::Op::kSum,           ir::Op::kMax,
              ir::Op::kExpand,      ir::Op::kWhere, ir::Op::kSqueeze};
  const uint64_t seed = TestSeed();
  for (int i = 0; i < Graphs(8); ++i) {
    const RandomGraph random = MakeRandomGraph(seed + i, maps);
    PlanRunOptions options;
    options.seed = seed + i;
    options.options.math = static_cast<ir::Math>(options.seed % 3);
    options.emulation.interleavings = {emulation::SixInterleavings()[i % 6]};
    const absl::Status status = RunPlan(random.graph, options);
    EXPECT_TRUE(status.ok()) << "seed " << seed + i << ": " << status << "\n"
                             << ir::Print(random.graph);
  }
}

int64_t LargestTensor(const ir::Graph& graph) {
  int64_t largest = 0;
  for (ir::ValueId id = 0; id < graph.value_count(); ++id)
    largest = std::max(largest, ir::ElementCount(graph.type(id)).value_or(0));
  return largest;
}

TEST(RandomGraphTest, KernelsOfLongRowsAgreeWithTheEvaluator) {
  RandomGraphOptions long_rows;
  long_rows.max_extent = 120000;
  long_rows.max_rank = 1;
  long_rows.max_nodes = 12;
  const uint64_t seed = TestSeed();
  for (int i = 0, done = 0; done < Graphs(4); ++i) {
    const RandomGraph random = MakeRandomGraph(seed + i, long_rows);
    const int64_t largest = LargestTensor(random.graph);
    if (largest < 20000 || largest > 500000) continue;
    ++done;
    PlanRunOptions options;
    options.seed = seed + i;
    options.emulation.interleavings = {emulation::SixInterleavings()[i % 6]};
    const absl::Status status = RunPlan(random.graph, options);
    EXPECT_TRUE(status.ok()) << "seed " << seed + i << ": " << status << "\n"
                             << ir::Print(random.graph);
  }
}

// Short rows and long ones, few and many, small graphs and large ones: what one kernel cannot hold
// is cut, down to a kernel an op.
TEST(RandomGraphTest, NoneIsRefused) {
  std::vector<RandomGraphOptions> kinds(5);
  kinds[1].max_nodes = 120;
  kinds[2].max_extent = 600, kinds[2].max_rank = 3;
  kinds[3].max_extent = 200000, kinds[3].max_rank = 2;
  kinds[4].max_extent = 100000, kinds[4].max_rank = 2, kinds[4].max_nodes = 80;
  const uint64_t seed = TestSeed();
  for (int i = 0; i < Graphs(500); ++i) {
    const RandomGraph random = MakeRandomGraph(seed + i, kinds[i % kinds.size()]);
    // Broadcasts of long dims may exceed the limit on elements.
    if (!ir::Verify(random.graph, ir::Stage::kImported).ok()) continue;
    ASSERT_OK_AND_ASSIGN(compiler::PlanRequest request, RequestFor(random.graph, {}));
    ASSERT_OK_AND_ASSIGN(request.device,
                         executable::ProfileByName(i % 2 == 0 ? "sm_80" : "sm_90a"));
    const absl::StatusOr<compiler::PlanResult> plan = compiler::Plan(request);
    EXPECT_TRUE(plan.ok()) << "seed " << seed + i << ": " << plan.status() << "\n"
                           << ir::Print(random.graph);
  }
}

}  // namespace
}  // namespace fusiond::codegen
