// The error bounds of the double evaluator hold for a computation that rounds every op, on random
// graphs: what the tests of generated kernels rely on.
#include <gtest/gtest.h>

#include <cstdio>
#include <random>

#include "absl/strings/str_cat.h"
#include "compiler/ir/specialise.h"
#include "compiler/ir/text.h"
#include "runtime/cpu/evaluate.h"
#include "tests/support/random_graph.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_seed.h"
#include "tests/support/within_bounds.h"

namespace fusiond::cpu {
namespace {

using ::fusiond::testing::BoundsReport;
using ::fusiond::testing::CompareWithinBounds;
using ::fusiond::testing::IsOk;
using ::fusiond::testing::MakeRandomGraph;
using ::fusiond::testing::RandomGraph;
using ::fusiond::testing::TestSeed;

constexpr int kGraphs = 2000;

std::vector<HostTensor> Inputs(const ir::Graph& graph, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::vector<HostTensor> inputs;
  for (ir::ValueId id : graph.inputs()) {
    HostTensor tensor;
    tensor.type = graph.type(id);
    const int64_t count = ir::ElementCount(tensor.type).value_or(0);
    for (int64_t i = 0; i < count; ++i) {
      if (ir::IsFloatingPoint(tensor.type.dtype)) {
        tensor.floats.push_back(RoundTo(tensor.type.dtype, normal(random)));
      } else if (tensor.type.dtype == ir::DType::kBool) {
        tensor.integers.push_back(static_cast<int64_t>(random() & 1));
      } else {
        tensor.integers.push_back(static_cast<int64_t>(random() % 41) - 20);
      }
    }
    inputs.push_back(std::move(tensor));
  }
  return inputs;
}

TEST(ErrorBoundTest, NativeResultsOfRandomGraphsAreWithin) {
  const uint64_t first = TestSeed();
  int outputs = 0, undecided = 0;
  for (uint64_t seed = first; seed < first + kGraphs; ++seed) {
    SCOPED_TRACE(absl::StrCat("FUSIOND_TEST_SEED=", seed));
    const RandomGraph random = MakeRandomGraph(seed);
    ASSERT_OK_AND_ASSIGN(const ir::Graph graph, ir::Specialise(random.graph, random.extents));
    const std::vector<HostTensor> inputs = Inputs(graph, seed);
    ASSERT_OK_AND_ASSIGN(const auto native, Evaluate(graph, inputs));
    ASSERT_OK_AND_ASSIGN(const auto exact,
                         Evaluate(graph, inputs, {.double_precision = true, .track_error = true}));
    for (size_t o = 0; o < native.size(); ++o) {
      BoundsReport report;
      ASSERT_THAT(CompareWithinBounds(native[o], exact[o], {}, report), IsOk())
          << "output " << o << "\n"
          << ir::Print(graph);
      ++outputs;
      if (report.undecided * 2 > report.elements) ++undecided;
    }
  }
  std::printf("%d graphs, %d outputs, %d of them mostly undecided\n", kGraphs, outputs, undecided);
  EXPECT_LT(undecided, outputs / 4);
}

}  // namespace
}  // namespace fusiond::cpu
