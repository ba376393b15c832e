#include "runtime/cuda/loaded_executable.h"

#include <bit>

#include "tests/cuda/fake_driver.h"
#include "tests/executable/sample_executable.h"
#include "tests/support/status_matchers.h"

namespace fusiond::cuda {
namespace {

using executable::Executable;
using executable::Formula;
using executable::KernelStep;
using executable::TensorArg;
using ::fusiond::testing::IsOk;
using ::fusiond::testing::StatusIs;

// The sample without its host step: a memset, then a kernel of five arguments.
Executable GpuSample() {
  Executable sample = executable::SampleExecutable();
  sample.steps.pop_back();
  return sample;
}

std::vector<TensorArg> Inputs(int64_t rows = 4) {
  TensorArg x, scale;
  x.address = 0x10000;
  x.shape = {rows, 16};
  x.strides = {16, 1};
  scale.bits = std::bit_cast<uint64_t>(2.5);
  return {x, scale};
}

std::vector<TensorArg> Outputs() {
  TensorArg fresh, in_place;
  fresh.address = 0x200000;
  fresh.shape = in_place.shape = {4, 16};
  fresh.strides = in_place.strides = {16, 1};
  in_place.address = 0x10000;
  return {fresh, in_place};
}

class LoadedExecutableTest : public ::testing::Test {
 protected:
  LoadedExecutableTest() { fake_.parameter_count = 5; }
  std::unique_ptr<LoadedExecutable> Load(Executable e) {
    auto loaded = LoadedExecutable::Load(fake_.driver(), std::move(e), 132);
    EXPECT_THAT(loaded.status(), IsOk());
    return loaded.ok() ? *std::move(loaded) : nullptr;
  }
  FakeDriver fake_;
};

TEST_F(LoadedExecutableTest, LaunchPassesAddressesScalarsAndFormulas) {
  auto loaded = Load(GpuSample());
  ASSERT_THAT(loaded->Launch(nullptr, Inputs(), Outputs(), 0x900000), IsOk());
  ASSERT_EQ(fake_.launches.size(), 1u);
  const RecordedLaunch& launch = fake_.launches[0];
  EXPECT_EQ(launch.config.grid_x, 4u);
  EXPECT_EQ(launch.config.block_x, 256u);
  EXPECT_EQ(launch.attributes, std::vector<int>{kLaunchAttributePdl});
  EXPECT_EQ(launch.values[0], 0x10000u);
  EXPECT_EQ(launch.values[1], 0x200000u);
  EXPECT_EQ(launch.values[2], 0x900100u);
  EXPECT_EQ(launch.values[3], std::bit_cast<uint32_t>(2.5f));
  EXPECT_EQ(launch.values[4], 4u);
  ASSERT_EQ(fake_.memsets.size(), 1u);
  EXPECT_EQ(fake_.memsets[0].to, 0x900000u);
}

TEST_F(LoadedExecutableTest, EachExtentGetsItsOwnPlan) {
  auto loaded = Load(GpuSample());
  for (int64_t rows : {4, 500, 4}) {
    ASSERT_THAT(loaded->Launch(nullptr, Inputs(rows), Outputs(), 0x900000), IsOk());
  }
  EXPECT_EQ(fake_.launches[0].config.grid_x, 4u);
  EXPECT_EQ(fake_.launches[1].config.grid_x, 132u);
  EXPECT_EQ(fake_.launches[2].config.grid_x, 4u);
}

TEST_F(LoadedExecutableTest, LargeSharedMemoryAndClustersAreAsked) {
  Executable e = GpuSample();
  auto& kernel = std::get<KernelStep>(e.steps[1]);
  kernel.dynamic_smem = Formula::Constant(200 << 10);
  kernel.cluster[0] = Formula::Constant(16);
  auto loaded = Load(e);
  ASSERT_THAT(loaded->Launch(nullptr, Inputs(), Outputs(), 0x900000), IsOk());
  EXPECT_EQ(fake_.function_attributes,
            (std::vector<std::pair<int, int>>{{kFunctionNonPortableCluster, 1},
                                              {kFunctionMaxDynamicSmem, 200 << 10}}));
  EXPECT_EQ(fake_.launches[0].attributes,
            (std::vector<int>{kLaunchAttributeClusterDimension, kLaunchAttributePdl}));
}

TEST_F(LoadedExecutableTest, EmptyGridLaunchesNothing) {
  auto loaded = Load(GpuSample());
  ASSERT_THAT(loaded->Launch(nullptr, Inputs(0), Outputs(), 0x900000), IsOk());
  EXPECT_TRUE(fake_.launches.empty());
}

TEST_F(LoadedExecutableTest, GuardsAndCountsAreCheckedBeforeAnything) {
  auto loaded = Load(GpuSample());
  std::vector<TensorArg> misaligned = Inputs();
  misaligned[0].address += 2;
  EXPECT_THAT(loaded->Launch(nullptr, misaligned, Outputs(), 0),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(loaded->Launch(nullptr, Inputs(), {}, 0),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_TRUE(fake_.launches.empty());
}

TEST_F(LoadedExecutableTest, F42_LostContextIsAborted) {
  auto loaded = Load(GpuSample());
  fake_.launch_result = kIllegalAddress;
  EXPECT_THAT(loaded->Launch(nullptr, Inputs(), Outputs(), 0x900000),
              StatusIs(absl::StatusCode::kAborted));
}

TEST_F(LoadedExecutableTest, F04_RefusedImageIsFailedPreconditionAndNothingLeaks) {
  fake_.load_result = kNoBinaryForGpu;
  EXPECT_THAT(LoadedExecutable::Load(fake_.driver(), GpuSample(), 132),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  fake_.load_result = kSuccess;
  Load(GpuSample()).reset();
  EXPECT_EQ(fake_.unloaded, 1);
}

TEST_F(LoadedExecutableTest, CpuExecutableIsRefused) {
  EXPECT_THAT(LoadedExecutable::Load(fake_.driver(), executable::SampleExecutable(), 132),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace fusiond::cuda
