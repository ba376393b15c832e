#include "compiler/codegen/names.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>

namespace fusiond::codegen {
namespace {

using ir::DType;

TEST(LiteralTest, FloatsAreExact) {
  EXPECT_EQ(Literal(3.0, DType::kFloat), "0x1.8p+1f");
  EXPECT_EQ(Literal(-0.0, DType::kFloat), "(-0x0p+0f)");
  EXPECT_EQ(Literal(0.1, DType::kFloat), "0x1.99999ap-4f");
  EXPECT_EQ(Literal(0.1, DType::kDouble), "0x1.999999999999ap-4");
  EXPECT_EQ(Literal(int64_t{2}, DType::kFloat), "0x1p+1f");
}

TEST(LiteralTest, WhatCppCannotSayIsBits) {
  EXPECT_EQ(Literal(INFINITY, DType::kFloat), "fd_bit_cast<f32>(0x7f800000u)");
  EXPECT_EQ(Literal(-INFINITY, DType::kDouble), "fd_bit_cast<f64>(0xfff0000000000000ull)");
  EXPECT_EQ(Literal(NAN, DType::kFloat), "fd_bit_cast<f32>(0x7fffffffu)");
  EXPECT_EQ(Literal(1e300, DType::kFloat), "fd_bit_cast<f32>(0x7f800000u)");
}

TEST(LiteralTest, IntegersReachTheirEnds) {
  EXPECT_EQ(Literal(int64_t{-5}, DType::kInt32), "(-5)");
  EXPECT_EQ(Literal(int64_t{std::numeric_limits<int32_t>::min()}, DType::kInt32),
            "(-2147483647 - 1)");
  EXPECT_EQ(Literal(std::numeric_limits<int64_t>::min(), DType::kInt),
            "(-9223372036854775807ll - 1)");
  EXPECT_EQ(Literal(true, DType::kBool), "true");
}

}  // namespace
}  // namespace fusiond::codegen
