#include "runtime/cpu/host_tensor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "tests/support/status_matchers.h"

namespace fusiond::cpu {
namespace {

using ::fusiond::testing::StatusIs;
using ir::DType;

// Every 16-bit pattern survives reading and writing; rounding has the IEEE cases.
class SixteenBitTest : public ::testing::TestWithParam<DType> {};

TEST_P(SixteenBitTest, EveryPatternSurvivesReadAndWrite) {
  std::vector<uint16_t> bits(65536), back(65536);
  for (int i = 0; i < 65536; ++i) bits[i] = static_cast<uint16_t>(i);
  HostTensor tensor = ReadBuffer(ir::TensorType(GetParam(), {65536}), bits.data(), {1});
  WriteBuffer(tensor, back.data(), {1});
  for (int i = 0; i < 65536; ++i) {
    if (std::isnan(tensor.floats[i])) continue;
    ASSERT_EQ(back[i], bits[i]) << i;
    ASSERT_EQ(RoundTo(GetParam(), tensor.floats[i]), tensor.floats[i]) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Types, SixteenBitTest, ::testing::Values(DType::kHalf, DType::kBFloat16));

TEST(HostTensorTest, RoundingTiesToEvenAndOverflowsToInfinity) {
  EXPECT_EQ(RoundTo(DType::kBFloat16, 1 + 0x1p-8), 1);
  EXPECT_EQ(RoundTo(DType::kBFloat16, 1 + 3 * 0x1p-8), 1 + 0x1p-6);
  EXPECT_EQ(RoundTo(DType::kHalf, 65519.99), 65504);
  EXPECT_EQ(RoundTo(DType::kHalf, 65520), INFINITY);
  EXPECT_EQ(RoundTo(DType::kHalf, -0x1p-26), 0);
  EXPECT_TRUE(std::signbit(RoundTo(DType::kHalf, -0x1p-26)));
  EXPECT_EQ(RoundTo(DType::kHalf, 3 * 0x1p-25), 0x1p-23);
  EXPECT_TRUE(std::isnan(RoundTo(DType::kBFloat16, NAN)));
}

// However small the buffer that so many elements are read from or written to.
TEST(HostTensorTest, ExpandedBuffersAreLeftWhenNobodyWaits) {
  const ir::Type type = ir::TensorType(DType::kFloat, {1 << 12, 1 << 12});
  float one = 1;
  int looks = 0;
  const Cancelled at_the_third = [&looks] { return ++looks == 3; };
  EXPECT_THAT(ReadBuffer(type, &one, {0, 0}, at_the_third), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_EQ(looks, 3);
  looks = 0;
  ASSERT_OK_AND_ASSIGN(const HostTensor all,
                       ReadBuffer(type, &one, {0, 0}, [&looks] { return ++looks == 0; }));
  EXPECT_EQ(all.floats.size(), size_t{1} << 24);
  EXPECT_EQ(looks, (1 << 24) / kElementsBetweenLooks);
  looks = 0;
  EXPECT_THAT(WriteBuffer(all, &one, {0, 0}, at_the_third), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_EQ(looks, 3);
}

TEST(HostTensorTest, StridesAreFollowed) {
  const float data[] = {0, 1, 2, 3, 4, 5};
  HostTensor transposed = ReadBuffer(ir::TensorType(DType::kFloat, {3, 2}), data, {1, 3});
  EXPECT_EQ(transposed.floats, (std::vector<double>{0, 3, 1, 4, 2, 5}));
  HostTensor expanded = ReadBuffer(ir::TensorType(DType::kFloat, {2, 2}), data + 4, {0, 1});
  EXPECT_EQ(expanded.floats, (std::vector<double>{4, 5, 4, 5}));
  float out[6] = {};
  WriteBuffer(transposed, out, {1, 3});
  EXPECT_EQ(std::memcmp(out, data, sizeof(data)), 0);
}

}  // namespace
}  // namespace fusiond::cpu
