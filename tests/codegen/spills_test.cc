// No kernel of the variant cases or of tests/data/kernel_counts spills on any arch: a sample of
// them in CI, all in the nightly run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <set>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "compiler/ir/specialise.h"
#include "compiler/ir/text.h"
#include "compiler/nvrtc/nvrtc.h"
#include "runtime/base/file.h"
#include "tests/codegen/plan_runner.h"
#include "tests/codegen/variant_cases.h"
#include "tests/support/nvrtc_for_tests.h"
#include "tests/support/sample.h"
#include "tests/support/status_matchers.h"

namespace fusiond::codegen {
namespace {

class SpillsTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    absl::StatusOr<std::unique_ptr<nvrtc::Nvrtc>> nvrtc =
        nvrtc::Nvrtc::Open(testing::NvrtcLocationForTests());
    if (!nvrtc.ok()) GTEST_SKIP() << nvrtc.status();
    nvrtc_ = *std::move(nvrtc);
  }

  void Check(const ir::Graph& graph, const std::string& name) {
    compiler::PlanRequest request;
    request.graph = graph;
    ASSERT_OK_AND_ASSIGN(request.device, executable::ProfileByName(GetParam()));
    for (ir::ValueId input : graph.inputs())
      request.inputs.push_back({graph.type(input).shape, graph.type(input).strides});
    ASSERT_OK_AND_ASSIGN(const compiler::PlanResult plan, compiler::Plan(request));
    for (const compiler::KernelSource& source : plan.sources) {
      if (!seen_.insert(source.text).second) continue;
      ASSERT_OK_AND_ASSIGN(
          const nvrtc::CompileOutput output,
          nvrtc_->Compile({source.text, source.name, plan.skeleton.arch, source.nvrtc_options}));
      for (const nvrtc::EntryResources& entry : output.entries) {
        EXPECT_EQ(entry.spill_store_bytes, 0) << name << " " << entry.registers << " registers\n"
                                              << plan.skeleton.provenance.schedule;
        EXPECT_EQ(entry.spill_load_bytes, 0) << name;
      }
    }
  }

  std::unique_ptr<nvrtc::Nvrtc> nvrtc_;
  std::set<std::string> seen_;
};

TEST_P(SpillsTest, NoVariant) {
  size_t index = std::strlen(GetParam()) + static_cast<size_t>(GetParam()[3] + GetParam()[4]);
  for (const testing::VariantCase& the_case : testing::VariantCases()) {
    if (!testing::InSample(index++, 6)) continue;
    ASSERT_OK_AND_ASSIGN(const ir::Graph graph, ir::Parse(the_case.graph));
    Check(graph, absl::StrCat(schedule::Name(the_case.scheduler), "/", the_case.variant));
  }
}

TEST_P(SpillsTest, NoGraphOfTheKernelCounts) {
  ASSERT_OK_AND_ASSIGN(const std::string table,
                       base::ReadFile("tests/data/kernel_counts/table.txt"));
  std::istringstream lines(table);
  size_t index = std::strlen(GetParam()) + static_cast<size_t>(GetParam()[3] + GetParam()[4]);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    std::string name, most, extents;
    words >> name >> most;
    ASSERT_OK_AND_ASSIGN(const std::string text,
                         base::ReadFile(absl::StrCat("tests/data/kernel_counts/", name, ".fir")));
    ASSERT_OK_AND_ASSIGN(const ir::Graph graph, ir::Parse(text));
    while (words >> extents) {
      if (!testing::InSample(index++, 60)) continue;
      ASSERT_OK_AND_ASSIGN(const std::vector<ir::Dims> dims, ir::ParseExtents(extents, graph));
      ASSERT_OK_AND_ASSIGN(const ir::Graph bound, ir::Specialise(graph, dims));
      Check(bound, absl::StrCat(name, " ", extents));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Archs, SpillsTest,
                         ::testing::Values("sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a",
                                           "sm_120a"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace fusiond::codegen
