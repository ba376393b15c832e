#include "tests/emulation/run_executable.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/device/device_text.h"
#include "tests/emulation/emulation.h"
#include "tests/support/status_matchers.h"

namespace fusiond::emulation {
namespace {

using executable::DType;
using executable::Executable;
using executable::Formula;
using executable::FormulaTerm;
using executable::Guard;
using executable::KernelArgument;
using executable::KernelStep;
using executable::MemsetStep;
using ::fusiond::testing::StatusIs;
using ::testing::HasSubstr;

KernelArgument Make(KernelArgument::Kind kind, uint32_t index = 0, const Formula& formula = {}) {
  return {kind, index, DType::kFloat, formula};
}

// out = in · scale + 1, through a workspace that a memset has filled with 1 bytes, in two launches.
Executable TwoSteps() {
  Executable executable;
  executable.arch = "sm_90a";
  executable.inputs = {{DType::kFloat, false, executable::MemorySpace::kDevice, {-1}, {1}},
                       {DType::kDouble, true, executable::MemorySpace::kDevice, {}, {}}};
  executable.outputs = {{DType::kFloat, {Formula::Extent(0, 0)}, {Formula::Constant(1)}, {}}};
  Guard guard;
  guard.kind = Guard::Kind::kAligned;
  guard.value = 8;
  executable.guards = {guard};
  const Formula n = Formula::Extent(0, 0);
  executable.workspace_bytes =
      Formula::Combine(FormulaTerm::Kind::kMultiply, n, Formula::Constant(4));
  MemsetStep memset;
  memset.bytes = executable.workspace_bytes;
  memset.value = 1;
  executable.steps.push_back(memset);
  for (const char* entry : {"scale", "finish"}) {
    KernelStep step;
    step.image = executable.steps.size() == 1 ? 0 : 1;
    step.entry = entry;
    step.grid[0] = Formula::SmCount();
    step.grid[1] = step.grid[2] = Formula::Constant(1);
    step.block[0] = Formula::Constant(32);
    step.block[1] = step.block[2] = Formula::Constant(1);
    step.cluster[0] = step.cluster[1] = step.cluster[2] = Formula::Constant(1);
    step.pdl = step.image == 1;
    step.arguments = {Make(KernelArgument::Kind::kInput), Make(KernelArgument::Kind::kWorkspace),
                      Make(KernelArgument::Kind::kOutput), Make(KernelArgument::Kind::kScalar, 1),
                      Make(KernelArgument::Kind::kInt32, 0, n)};
    executable.steps.push_back(step);
  }
  return executable;
}

std::vector<std::string> Texts() {
  const std::string prelude = device::Prelude({"math.cuh", "pdl.cuh"});
  return {prelude + R"(
extern "C" __global__ void scale(const f32* in, i32* w, f32* out, f32 factor, i32 n) {
  for (i32 i = fd_cta() * 32 + fd_thread(); i < n; i += fd_ctas() * 32) {
    w[i] = w[i] == 0x01010101 ? (i32)fd_mul(in[i], factor) : -1000;
  }
  fd_launch_dependents();
}
)",
          prelude + R"(
extern "C" __global__ void finish(const f32* in, const i32* w, f32* out, f32 factor, i32 n) {
  fd_wait_primary();
  for (i32 i = fd_cta() * 32 + fd_thread(); i < n; i += fd_ctas() * 32) out[i] = fd_add((f32)w[i], 1.0f);
}
)"};
}

std::vector<ExecutableInput> Inputs(uint64_t alignment) {
  const std::vector<float> values(130, 4.0f);
  ExecutableInput tensor, scalar;
  tensor.arg.shape = {130};
  tensor.arg.strides = {1};
  tensor.bytes = Of(values).bytes;
  tensor.alignment = alignment;
  const double factor = 2.5;
  std::memcpy(&scalar.arg.bits, &factor, 8);
  return {tensor, scalar};
}

TEST(RunExecutableTest, StepsRunInOrder) {
  ASSERT_OK_AND_ASSIGN(auto outputs, RunExecutable(TwoSteps(), Texts(), Inputs(8), Emulator()));
  ASSERT_EQ(outputs.size(), 1u);
  EXPECT_EQ(As<float>(outputs[0]), std::vector<float>(130, 11.0f));
}

TEST(RunExecutableTest, AliasedOutputIsItsInput) {
  Executable executable = TwoSteps();
  executable.outputs[0].alias_input = 0;
  ASSERT_OK_AND_ASSIGN(auto outputs, RunExecutable(executable, Texts(), Inputs(8), Emulator()));
  EXPECT_EQ(As<float>(outputs[0])[129], 11.0f);
}

TEST(RunExecutableTest, GuardsAreChecked) {
  EXPECT_THAT(RunExecutable(TwoSteps(), Texts(), Inputs(4), Emulator()),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("guard")));
}

TEST(RunExecutableTest, EmulatedDeviceHasThreeSms) {
  ASSERT_OK_AND_ASSIGN(auto device, EmulatedDevice("sm_90a"));
  EXPECT_EQ(device.sm_count, 3);
  EXPECT_TRUE(device.has_clusters);
}

}  // namespace
}  // namespace fusiond::emulation
