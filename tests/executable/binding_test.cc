#include "runtime/executable/binding.h"

#include <bit>
#include <limits>

#include "tests/executable/sample_executable.h"
#include "tests/support/status_matchers.h"

namespace fusiond::executable {
namespace {

using ::fusiond::testing::IsOk;
using ::fusiond::testing::StatusIs;
using ::testing::HasSubstr;

std::vector<TensorArg> Inputs() {
  TensorArg x;
  x.address = 0x10000;
  x.shape = {4, 16};
  x.strides = {16, 1};
  return {x, TensorArg()};
}

std::vector<TensorArg> Outputs() {
  TensorArg fresh;
  fresh.address = 0x20000;
  fresh.shape = {4, 16};
  fresh.strides = {16, 1};
  TensorArg in_place = fresh;
  in_place.address = 0x10000;
  return {fresh, in_place};
}

TEST(BindingTest, MatchingTensorsPass) {
  EXPECT_THAT(CheckInputs(SampleExecutable(), Inputs()), IsOk());
  EXPECT_THAT(CheckGuards(SampleExecutable(), Inputs(), Outputs()), IsOk());
  EXPECT_THAT(CheckGuards(SampleExecutable(), Inputs(), {}), IsOk());
}

TEST(BindingTest, WrongCountAndRankAreInvalid) {
  std::vector<TensorArg> inputs = Inputs();
  inputs.pop_back();
  EXPECT_THAT(CheckInputs(SampleExecutable(), inputs),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("expected 2, given 1")));
  inputs = Inputs();
  inputs[0].shape.push_back(1);
  EXPECT_THAT(CheckInputs(SampleExecutable(), inputs),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("expected rank 2, given 3")));
  inputs = Inputs();
  inputs[0].shape[0] = int64_t{1} << 62;
  EXPECT_THAT(CheckInputs(SampleExecutable(), inputs),
              StatusIs(absl::StatusCode::kInvalidArgument));
  inputs[0].shape[0] = -4;
  EXPECT_THAT(CheckInputs(SampleExecutable(), inputs),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("-4")));
}

TEST(BindingTest, EachGuardNamesItsValues) {
  auto fails = [](auto change, const std::string& what) {
    std::vector<TensorArg> inputs = Inputs(), outputs = Outputs();
    change(inputs, outputs);
    EXPECT_THAT(CheckGuards(SampleExecutable(), inputs, outputs),
                StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr(what)));
  };
  using Args = std::vector<TensorArg>;
  fails([](Args& in, Args&) { in[0].shape[1] = 12; }, "needs 8, given 12");
  fails([](Args& in, Args&) { in[0].strides[1] = 2; }, "needs 1, given 2");
  fails([](Args& in, Args&) { in[0].address = 0x10008; }, "needs 16, given 8");
  fails([](Args&, Args& out) { out[0].address = 0x20004; }, "needs 16, given 4");
  fails([](Args&, Args& out) { out[0].address = 0x10070; }, "output 0 overlaps input 0");
}

TEST(BindingTest, GuardsHoldToTheirValueAndNoFurther) {
  using Kind = Guard::Kind;
  Executable e = SampleExecutable();
  // Of the first input: extent 4 and stride 16, extent 16 and stride 1.
  const auto holds = [&](Kind kind, uint32_t dim, int64_t value) {
    e.guards = {{.kind = kind, .input = 0, .dim = dim, .output = {}, .value = value}};
    return CheckGuards(e, Inputs(), {}).ok();
  };
  for (int64_t other : {15, 17}) EXPECT_FALSE(holds(Kind::kExtentEquals, 1, other));
  EXPECT_TRUE(holds(Kind::kExtentEquals, 1, 16));
  EXPECT_FALSE(holds(Kind::kExtentAtMost, 1, 15));
  for (int64_t most : {16, 17}) EXPECT_TRUE(holds(Kind::kExtentAtMost, 1, most));
  for (int64_t no_divisor : {0, 5, 32}) EXPECT_FALSE(holds(Kind::kExtentDivisible, 1, no_divisor));
  for (int64_t divisor : {1, 8, 16}) EXPECT_TRUE(holds(Kind::kExtentDivisible, 1, divisor));
  for (int64_t other : {15, 17}) EXPECT_FALSE(holds(Kind::kStrideEquals, 0, other));
  EXPECT_TRUE(holds(Kind::kStrideEquals, 0, 16));
  for (int64_t no_divisor : {0, 5, 32}) EXPECT_FALSE(holds(Kind::kStrideDivisible, 0, no_divisor));
  for (int64_t divisor : {1, 8, 16}) EXPECT_TRUE(holds(Kind::kStrideDivisible, 0, divisor));
}

TEST(BindingTest, OverlapIsByTheByte) {
  Executable e = SampleExecutable();
  e.guards = {{.kind = Guard::Kind::kNoOverlap, .input = 0, .dim = 0, .output = 0, .value = 0}};
  // The input has the 128 bytes from 0x10000 on, the output is 256 long.
  const auto apart = [&](uint64_t address) {
    std::vector<TensorArg> outputs = Outputs();
    outputs[0].address = address;
    return CheckGuards(e, Inputs(), outputs).ok();
  };
  for (uint64_t address : {0xff00, 0x10080}) EXPECT_TRUE(apart(address)) << address;
  for (uint64_t address : {0xff01, 0x10000, 0x1007f}) EXPECT_FALSE(apart(address)) << address;
}

TEST(BindingTest, StrideOfExtentOneDoesNotMatter) {
  std::vector<TensorArg> inputs = Inputs();
  Executable e = SampleExecutable();
  e.guards = {
      {.kind = Guard::Kind::kStrideEquals, .input = 0, .dim = 0, .output = {}, .value = 16}};
  inputs[0].shape[0] = 1;
  inputs[0].strides[0] = 999;
  EXPECT_THAT(CheckGuards(e, inputs, {}), IsOk());
}

TEST(BindingTest, OutputShapesFollowTheInputs) {
  ASSERT_OK_AND_ASSIGN(std::vector<OutputShape> shapes,
                       OutputShapes(SampleExecutable(), Inputs(), 132));
  ASSERT_EQ(shapes.size(), 2u);
  EXPECT_EQ(shapes[0].shape[0], 4);
  EXPECT_EQ(shapes[0].strides[0], 16);
  EXPECT_EQ(shapes[0].bytes, 4 * 16 * 4);
  EXPECT_EQ(shapes[1].bytes, 4 * 16 * 2);
  std::vector<TensorArg> empty = Inputs();
  empty[0].shape[0] = 0;
  ASSERT_OK_AND_ASSIGN(shapes, OutputShapes(SampleExecutable(), empty, 132));
  EXPECT_EQ(shapes[0].bytes, 0);
}

TEST(BindingTest, OutputsBeyondAnyMemoryAreRefused) {
  const int64_t most = int64_t{1} << 58;
  for (int64_t stride : {most, most + 1, std::numeric_limits<int64_t>::max()}) {
    Executable e = SampleExecutable();
    e.outputs[1].shape = {Formula::Constant(2)};
    e.outputs[1].strides = {Formula::Constant(stride)};
    const absl::StatusOr<std::vector<OutputShape>> shapes = OutputShapes(e, Inputs(), 132);
    if (stride == most) {
      ASSERT_THAT(shapes.status(), IsOk());
      EXPECT_EQ((*shapes)[1].bytes, (most + 1) * 2);
    } else {
      EXPECT_THAT(shapes.status(), StatusIs(absl::StatusCode::kInvalidArgument,
                                            HasSubstr("output 1: dim 0 has extent 2 and stride")));
    }
  }
}

TEST(BindingTest, ScalarsAreConvertedWithinTheirClass) {
  const auto bits = [](double value) { return std::bit_cast<uint64_t>(value); };
  EXPECT_EQ(ConvertScalar(bits(2.5), DType::kDouble), bits(2.5));
  EXPECT_EQ(ConvertScalar(bits(2.5), DType::kFloat), std::bit_cast<uint32_t>(2.5f));
  EXPECT_EQ(ConvertScalar(bits(1e300), DType::kFloat),
            std::bit_cast<uint32_t>(std::numeric_limits<float>::infinity()));
  EXPECT_EQ(ConvertScalar(~uint64_t{4}, DType::kInt), ~uint64_t{4});
  EXPECT_EQ(ConvertScalar(~uint64_t{4}, DType::kInt32), uint64_t{~uint32_t{4}});
  EXPECT_EQ(ConvertScalar(uint64_t{1} << 40, DType::kBool), 1u);
  EXPECT_EQ(ConvertScalar(0, DType::kBool), 0u);
}

}  // namespace
}  // namespace fusiond::executable
