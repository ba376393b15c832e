// Every variant on a GPU, against the evaluator.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/codegen/plan_runner.h"
#include "tests/codegen/variant_cases.h"
#include "tests/emulation/on_gpu.h"
#include "tests/support/status_matchers.h"

namespace fusiond::codegen {
namespace {

using ::fusiond::testing::IsOk;
using ::fusiond::testing::PlanRunOptions;
using ::fusiond::testing::RunPlan;
using ::fusiond::testing::VariantCase;
using ::fusiond::testing::VariantCases;

class VariantGpuTest : public ::testing::TestWithParam<VariantCase> {};

TEST_P(VariantGpuTest, AgreesWithTheEvaluator) {
  absl::StatusOr<std::unique_ptr<emulation::Gpu>> gpu = emulation::Gpu::Open();
  if (!gpu.ok()) GTEST_SKIP() << gpu.status();
  PlanRunOptions options;
  options.device = (*gpu)->arch();
  options.runner = [&](const std::vector<emulation::KernelCall>& chain,
                       const std::vector<emulation::Tensor>& tensors) {
    return (*gpu)->Run(chain, tensors);
  };
  EXPECT_THAT(RunPlan(GetParam().graph, options), IsOk());
}

INSTANTIATE_TEST_SUITE_P(All, VariantGpuTest, ::testing::ValuesIn(VariantCases()),
                         [](const auto& info) {
                           return absl::StrCat(schedule::Name(info.param.scheduler), "_",
                                               info.param.variant);
                         });

}  // namespace
}  // namespace fusiond::codegen
