// Every device helper on a real GPU: the same kernels and the same answers as under emulation.
#include <gtest/gtest.h>

#include "tests/emulation/cases.h"
#include "tests/emulation/on_gpu.h"
#include "tests/emulation/op_cases.h"
#include "tests/support/status_matchers.h"

namespace fusiond::emulation {
namespace {

using ::fusiond::testing::IsOk;

class DeviceGpuTest : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    absl::StatusOr<std::unique_ptr<Gpu>> gpu = Gpu::Open();
    if (!gpu.ok()) GTEST_SKIP() << gpu.status();
    gpu_ = *std::move(gpu);
  }
  absl::Status Run(const Case& the_case) {
    return RunCase(the_case, the_case.body, [&](const auto& chain, const auto& tensors) {
      return gpu_->Run(chain, tensors);
    });
  }

  std::unique_ptr<Gpu> gpu_;
};

TEST_P(DeviceGpuTest, GivesTheAnswer) {
  if (GetParam().needs_sm90 && gpu_->arch() < "sm_90" && gpu_->arch().size() == 5)
    GTEST_SKIP() << gpu_->arch() << " has no bulk copies and clusters";
  EXPECT_THAT(Run(GetParam()), IsOk());
}

auto Name = [](const auto& info) { return info.param.name; };
INSTANTIATE_TEST_SUITE_P(Kernels, DeviceGpuTest, ::testing::ValuesIn(AllCases()), Name);
INSTANTIATE_TEST_SUITE_P(Ops, DeviceGpuTest, ::testing::ValuesIn(OpCases()), Name);
INSTANTIATE_TEST_SUITE_P(Conversions, DeviceGpuTest, ::testing::ValuesIn(ConversionCases()), Name);

}  // namespace
}  // namespace fusiond::emulation
