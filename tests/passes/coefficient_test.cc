#include "compiler/passes/algebra/coefficient.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "tests/support/test_seed.h"

namespace fusiond::passes {
namespace {

using ir::DType;

Coefficient Of(double value, DType dtype = DType::kFloat) {
  const std::optional<Coefficient> c = Coefficient::Of(value, dtype);
  EXPECT_TRUE(c) << value;
  return c.value_or(Coefficient());
}

TEST(CoefficientTest, SimpleFractionsAreExact) {
  for (const int n : {3, 7, 10, 1000, 8191, 12345, 100000}) {
    EXPECT_TRUE((Of(1.0 / n) * Of(n)).IsOne()) << n;
    EXPECT_EQ(Of(n).Inverse(), Of(1.0 / n)) << n;
  }
  EXPECT_EQ(Of(0.1) * Of(3), Of(0.3));
  EXPECT_EQ(Of(1 / 0.3).Inverse(), Of(0.3));
  EXPECT_EQ(Of(1e-5) * Of(8192) * Of(1.0 / 8192), Of(1e-5));
  EXPECT_EQ(Of(1.0f / 3.0f), Of(1.0 / 3.0));  // an f32 constant is its rounding
}

TEST(CoefficientTest, OtherConstantsMeetInAnyOrder) {
  const std::vector<double> values = {0.7978845608, 0.044715, 3.14159265, 2.718281828, 1.0 / 7};
  Coefficient forward, backward;
  for (size_t i = 0; i < values.size(); ++i) {
    forward = forward * Of(values[i]);
    backward = backward * Of(values[values.size() - 1 - i]);
  }
  EXPECT_EQ(forward, backward);
  EXPECT_EQ(forward.Hash(), backward.Hash());
  EXPECT_TRUE((Of(0.044715) * Of(0.044715).Inverse()).IsOne());
}

TEST(CoefficientTest, RootsAreUndoneBySquares) {
  for (const double value : {2.0, 1000.0, 1.0 / 8191, 0.1, 9.0 / 4, 0.7978845608}) {
    const Coefficient root = Of(value).SquareRoot();
    EXPECT_EQ(root * root, Of(value)) << value;
    EXPECT_EQ(root.Inverse() * root.Inverse(), Of(value).Inverse()) << value;
    EXPECT_EQ(root.Inverse() * Of(value), root) << value;
    EXPECT_NEAR(root.ToDouble() / std::sqrt(value), 1, 1e-7) << value;
  }
  EXPECT_EQ(Of(9.0 / 4).SquareRoot(), Of(1.5));
}

TEST(CoefficientTest, SumsOfFractionsAreExact) {
  EXPECT_EQ(Of(1.0 / 3).Plus(Of(1.0 / 6)), Of(0.5));
  EXPECT_EQ(Of(0.044715).Plus(Of(0.044715)), Of(0.044715) * Of(2));
  EXPECT_EQ(Of(3).Plus(Of(-1)), Of(2));
  EXPECT_EQ(Of(0.1).Plus(Of(-0.1)), std::nullopt);
}

TEST(CoefficientTest, ZeroNonFiniteAndExtremeValuesAreNone) {
  const double inf = std::numeric_limits<double>::infinity();
  for (const double value : {0.0, -0.0, inf, -inf, std::nan(""), 1e30, 1e-30, -3.4e38}) {
    EXPECT_FALSE(Coefficient::Of(value, DType::kFloat)) << value;
  }
  EXPECT_TRUE(Coefficient::Of(1e30, DType::kDouble));
  EXPECT_FALSE((Of(1e15) * Of(1e15)).InRange(DType::kFloat));
}

TEST(CoefficientTest, AgreesWithDoubleArithmetic) {
  std::mt19937_64 random(::fusiond::testing::TestSeed());
  std::uniform_real_distribution<double> exponent(-20, 20);
  for (int i = 0; i < 10000; ++i) {
    const double a = std::exp2(exponent(random)) * (i % 2 == 0 ? 1 : -1);
    const double b = i % 3 == 0 ? 1.0 / (1 + i % 977) : std::exp2(exponent(random));
    const Coefficient x = Of(a, DType::kDouble), y = Of(b, DType::kDouble);
    EXPECT_DOUBLE_EQ(x.ToDouble(), a);
    EXPECT_NEAR((x * y).ToDouble() / (a * b), 1, 1e-12);
    EXPECT_NEAR(x.Inverse().ToDouble() * a, 1, 1e-12);
    EXPECT_NEAR(x.Power(3).ToDouble() / (a * a * a), 1, 1e-12);
    const auto sum = x.Plus(y);
    EXPECT_NEAR(sum ? sum->ToDouble() : 0, a + b, 1e-9 * (std::fabs(a) + b));
  }
}

}  // namespace
}  // namespace fusiond::passes
