// Variants under the sanitizers, in emulation: a sample in CI, all of them in the nightly run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/codegen/plan_runner.h"
#include "tests/codegen/variant_cases.h"
#include "tests/support/sample.h"
#include "tests/support/status_matchers.h"

namespace fusiond::codegen {
namespace {

using ::fusiond::testing::InSample;
using ::fusiond::testing::IsOk;
using ::fusiond::testing::PlanRunOptions;
using ::fusiond::testing::RunPlan;
using ::fusiond::testing::VariantCase;
using ::fusiond::testing::VariantCases;

constexpr size_t kEvery = 4;

class CheckedVariantTest : public ::testing::TestWithParam<size_t> {
 protected:
  absl::Status Run(emulation::Checker checker) {
    PlanRunOptions options;
    options.device = VariantCases()[GetParam()].archs.back();
    options.emulation.checker = checker;
    // Late copies, shuffled threads.
    options.emulation.interleavings = {emulation::SixInterleavings()[2]};
    return RunPlan(VariantCases()[GetParam()].graph, options);
  }
};

TEST_P(CheckedVariantTest, StaysInBoundsAndAligned) {
  if (!InSample(GetParam(), kEvery)) GTEST_SKIP() << "not in this commit's sample";
  EXPECT_THAT(Run(emulation::Checker::kAddress), IsOk());
}

TEST_P(CheckedVariantTest, HasNoRaces) {
  if (!InSample(GetParam() + 1, kEvery)) GTEST_SKIP() << "not in this commit's sample";
  EXPECT_THAT(Run(emulation::Checker::kThread), IsOk());
}

INSTANTIATE_TEST_SUITE_P(All, CheckedVariantTest,
                         ::testing::Range<size_t>(0, VariantCases().size()), [](const auto& info) {
                           const VariantCase c = VariantCases()[info.param];
                           return absl::StrCat(schedule::Name(c.scheduler), "_", c.variant);
                         });

}  // namespace
}  // namespace fusiond::codegen
