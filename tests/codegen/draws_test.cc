// Random ops: every schedule of a graph draws what the evaluator draws.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "compiler/ir/specialise.h"
#include "compiler/ir/text.h"
#include "runtime/base/file.h"
#include "tests/codegen/plan_runner.h"
#include "tests/support/status_matchers.h"

namespace fusiond::codegen {
namespace {

using ::fusiond::testing::PlanRunOptions;
using ::fusiond::testing::RequestFor;
using ::fusiond::testing::RunPlan;

struct Drawn {
  const char* graph;
  const char* extents;
  const char* device;
};

void PrintTo(const Drawn& drawn, std::ostream* out) { *out << drawn.graph; }

class DrawsTest : public ::testing::TestWithParam<Drawn> {};

TEST_P(DrawsTest, AreThoseOfTheEvaluatorUnderEverySchedule) {
  const Drawn drawn = GetParam();
  ASSERT_OK_AND_ASSIGN(
      const std::string text,
      base::ReadFile(absl::StrCat("tests/data/kernel_counts/", drawn.graph, ".fir")));
  ASSERT_OK_AND_ASSIGN(const ir::Graph symbolic, ir::Parse(text));
  ASSERT_OK_AND_ASSIGN(const std::vector<ir::Dims> extents,
                       ir::ParseExtents(drawn.extents, symbolic));
  ASSERT_OK_AND_ASSIGN(const ir::Graph graph, ir::Specialise(symbolic, extents));
  std::set<std::string> schedules;
  for (int attempt = 0; attempt < 12; ++attempt) {
    PlanRunOptions options;
    options.device = drawn.device;
    options.attempt = attempt;
    options.seed = static_cast<uint64_t>(attempt);
    options.emulation.interleavings = {emulation::SixInterleavings()[attempt % 6]};
    ASSERT_OK_AND_ASSIGN(const compiler::PlanRequest request, RequestFor(graph, options));
    ASSERT_OK_AND_ASSIGN(const compiler::PlanResult plan, compiler::Plan(request));
    if (!schedules.insert(plan.skeleton.provenance.schedule).second) continue;
    const absl::Status status = RunPlan(graph, options);
    EXPECT_TRUE(status.ok()) << plan.skeleton.provenance.schedule << ": " << status;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Graphs, DrawsTest,
    ::testing::Values(
        Drawn{"dropout_rms_norm_drawn", "6x1024,6x1024,1024,,", "h200"},
        Drawn{"dropout_rms_norm_drawn", "5x1023,5x1023,1023,,", "a100"},
        Drawn{"dropout_rms_norm_drawn", "3x12288,3x12288,12288,,", "h200"},
        Drawn{"dropout_layer_norm_backward_drawn", "20x1024,20x1024,1024,20x1,20x1,,", "h200"},
        Drawn{"dropout_layer_norm_backward_drawn", "20x1023,20x1023,1023,20x1,20x1,,", "l40s"},
        Drawn{"dropout_layer_norm_backward_drawn", "9x16384,9x16384,16384,9x1,9x1,,", "h200"},
        Drawn{"dropout_layer_norm_backward_drawn", "20x1024,20x1024,1024,20x1,20x1,,", "a100"},
        Drawn{"noise_advancing_its_offset", "7x1023,1,1", "h200"},
        Drawn{"noise_advancing_its_offset", "64x1024,1,1", "a100"}),
    [](const auto& info) { return absl::StrCat(info.param.graph, "_", info.index); });

}  // namespace
}  // namespace fusiond::codegen
