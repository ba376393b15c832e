#include "compiler/schedule/variants.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "compiler/ir/text.h"
#include "tests/codegen/plan_runner.h"
#include "tests/codegen/variant_cases.h"
#include "tests/support/status_matchers.h"

namespace fusiond::codegen {
namespace {

using ::fusiond::testing::IsOk;
using ::fusiond::testing::PlanRunOptions;
using ::fusiond::testing::RequestFor;
using ::fusiond::testing::RunPlan;
using ::fusiond::testing::VariantCase;
using ::fusiond::testing::VariantCases;
using ::testing::HasSubstr;

TEST(VariantsTest, EachRowHasACase) {
  const std::vector<VariantCase> cases = VariantCases();
  for (const schedule::Variant& variant : schedule::Variants()) {
    EXPECT_TRUE(std::any_of(cases.begin(), cases.end(),
                            [&](const VariantCase& c) {
                              return c.scheduler == variant.scheduler && c.variant == variant.name;
                            }))
        << schedule::Name(variant.scheduler) << "/" << variant.name;
  }
}

class VariantTest : public ::testing::TestWithParam<VariantCase> {};

TEST_P(VariantTest, IsWhatTheCaseGetsOnEveryArch) {
  const VariantCase& the_case = GetParam();
  ASSERT_OK_AND_ASSIGN(const ir::Graph graph, ir::Parse(the_case.graph));
  for (const std::string& arch : the_case.archs) {
    PlanRunOptions options;
    options.device = arch;
    ASSERT_OK_AND_ASSIGN(const compiler::PlanRequest request, RequestFor(graph, options));
    ASSERT_OK_AND_ASSIGN(const compiler::PlanResult plan, compiler::Plan(request));
    EXPECT_THAT(
        plan.skeleton.provenance.schedule,
        HasSubstr(absl::StrCat(schedule::Name(the_case.scheduler), "/", the_case.variant, "{")))
        << arch;
  }
}

TEST_P(VariantTest, AgreesWithTheEvaluator) {
  PlanRunOptions options;
  options.device = GetParam().archs.back();
  EXPECT_THAT(RunPlan(GetParam().graph, options), IsOk());
}

TEST_P(VariantTest, EveryCandidateAgreesWithTheEvaluator) {
  // What a spill report would lead to.
  for (int attempt = 1; attempt < 4; ++attempt) {
    PlanRunOptions options;
    options.device = GetParam().archs.back();
    options.attempt = attempt;
    options.emulation.interleavings = {emulation::SixInterleavings()[2]};
    EXPECT_THAT(RunPlan(GetParam().graph, options), IsOk()) << attempt;
  }
}

INSTANTIATE_TEST_SUITE_P(All, VariantTest, ::testing::ValuesIn(VariantCases()),
                         [](const auto& info) {
                           return absl::StrCat(schedule::Name(info.param.scheduler), "_",
                                               info.param.variant);
                         });

}  // namespace
}  // namespace fusiond::codegen
