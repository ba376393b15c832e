#include "runtime/worker/launch_binding.h"

#include <gtest/gtest.h>

#include <bit>
#include <functional>
#include <utility>

#include "runtime/base/status_numbers.h"
#include "runtime/cuda/driver.h"
#include "tests/executable/sample_executable.h"

namespace fusiond::worker {
namespace {

using channel::CompletionReason;
using executable::SampleExecutable;

// The sample: one tensor input with two symbolic extents, one scalar, one fresh output (f32), one
// in-place output.
std::vector<TensorMemory> Memory() {
  return {{0x10000, 4096, 0, nullptr}, {0x80000, 8192, 256, nullptr}};
}
std::vector<int64_t> Extents() { return {4, 16, std::bit_cast<int64_t>(2.5)}; }

TEST(LaunchBindingTest, CountsFollowTheExecutable) {
  const LaunchShape shape = ShapeOfLaunch(SampleExecutable());
  EXPECT_EQ(shape.tensors, 2u);
  EXPECT_EQ(shape.extents, 3u);
}

TEST(LaunchBindingTest, FillsAddressesShapesAndScalars) {
  BoundLaunch bound;
  ASSERT_TRUE(BindLaunch(SampleExecutable(), 132, Memory(), Extents(), bound).ok());
  EXPECT_EQ(bound.inputs[0].address, 0x10000u);
  EXPECT_EQ(bound.inputs[0].strides[0], 16);
  EXPECT_EQ(bound.inputs[1].bits, std::bit_cast<uint64_t>(2.5));
  EXPECT_EQ(bound.outputs[0].address, 0x80100u);
  EXPECT_EQ(bound.outputs[1].address, 0x10000u);
}

struct BadLaunch {
  const char* name;
  std::function<void(std::vector<TensorMemory>&, std::vector<int64_t>&)> change;
  CompletionReason reason;
  uint32_t index;
  uint64_t limit;
  uint64_t actual;
};

TEST(LaunchBindingTest, F32_EveryReachOutsideABufferIsRefused) {
  using M = std::vector<TensorMemory>;
  using E = std::vector<int64_t>;
  const BadLaunch cases[] = {
      {"input too long", [](M&, E& e) { e[0] = 1000; }, CompletionReason::kBufferRange, 0, 4096,
       32000},
      {"offset at the end", [](M& m, E&) { m[0].offset = 4096; }, CompletionReason::kBufferRange, 0,
       4096, 4224},
      {"output too long", [](M& m, E&) { m[1].bytes = 300; }, CompletionReason::kBufferRange, 1,
       300, 512},
      {"odd offset", [](M& m, E&) { m[0].offset = 1; }, CompletionReason::kBufferAlignment, 0, 2,
       1},
      {"negative extent", [](M&, E& e) { e[1] = -1; }, CompletionReason::kExtentValue, 1,
       uint64_t{1} << 40, ~uint64_t{0}},
      {"guard", [](M&, E& e) { e[1] = 12; }, CompletionReason::kGuard, 0, 0, 0},
  };
  for (const BadLaunch& bad : cases) {
    SCOPED_TRACE(bad.name);
    M memory = Memory();
    E extents = Extents();
    bad.change(memory, extents);
    BoundLaunch bound;
    const channel::Outcome outcome = BindLaunch(SampleExecutable(), 132, memory, extents, bound);
    EXPECT_EQ(outcome.reason, bad.reason);
    EXPECT_EQ(outcome.index, bad.index);
    EXPECT_EQ(outcome.limit, bad.limit);
    EXPECT_EQ(outcome.actual, bad.actual);
  }
}

TEST(LaunchBindingTest, AnOutputInPlaceIsHeldAgainstItsInputsBuffer) {
  executable::Executable e = SampleExecutable();
  e.guards.clear();
  for (const auto& [rows, ok] : {std::pair(int64_t{128}, true), {int64_t{129}, false}}) {
    e.outputs[1].shape[0] = executable::Formula::Constant(rows);
    BoundLaunch bound;
    const channel::Outcome outcome = BindLaunch(e, 132, Memory(), Extents(), bound);
    EXPECT_EQ(outcome.ok(), ok) << rows;
    if (ok) continue;
    EXPECT_EQ(outcome.reason, CompletionReason::kBufferRange);
    EXPECT_EQ(outcome.index, 0u);
    EXPECT_EQ(outcome.actual, 129u * 16 * 2);
  }
}

TEST(LaunchBindingTest, F32_HugeExtentsDoNotWrapAround) {
  BoundLaunch bound;
  const channel::Outcome outcome =
      BindLaunch(SampleExecutable(), 132, Memory(),
                 std::vector<int64_t>{int64_t{1} << 40, int64_t{1} << 40, 0}, bound);
  EXPECT_FALSE(outcome.ok());
}

TEST(LaunchBindingTest, OutcomesCarryTheNumbersOfTheirStatus) {
  const channel::Outcome memory = OutcomeFromStatus(base::WithMemoryNeed(
      absl::ResourceExhaustedError("workspace"), {3000, uint64_t{64} << 30, uint64_t{5} << 20}));
  EXPECT_EQ(memory.code, channel::CompletionCode::kResourceExhausted);
  EXPECT_EQ(memory.reason, CompletionReason::kMemory);
  EXPECT_EQ(memory.actual, 3000u);
  EXPECT_EQ(memory.limit, uint64_t{64} << 30);
  EXPECT_EQ(memory.index, 5u);
  const channel::Outcome device =
      OutcomeFromStatus(base::WithNumber(absl::InternalError("launch"), cuda::kResultNumber, 701));
  EXPECT_EQ(device.code, channel::CompletionCode::kInternal);
  EXPECT_EQ(device.reason, CompletionReason::kDevice);
  EXPECT_EQ(device.actual, 701u);
}

}  // namespace
}  // namespace fusiond::worker
