// Coefficient: the constant factor of a product, exact where constants are simple fractions.
//
// value = ± inexact · numerator / denominator · √radical · 2^exponent, with odd numerator and
// denominator below 2^31, a radical below 2^31 and inexact in [1, 2). A constant that is the
// rounding of a simple fraction (1/8191, 0.3, 1e-5) is held as that fraction, so that x·(1/3)·3,
// mean as sum·(1/n) or sum/n, and 0.3·x and x/(1/0.3) meet; other constants go into `inexact`,
// which is compared to 44 bits so that different orders of multiplication agree. The radical keeps
// roots exact: (s/n)^-½ is √n · s^-½, and its square n/s again.
//
// Thread-safety: a value type. Never zero, infinite or nan.
#ifndef FUSIOND_COMPILER_PASSES_ALGEBRA_COEFFICIENT_H_
#define FUSIOND_COMPILER_PASSES_ALGEBRA_COEFFICIENT_H_

#include <cstdint>
#include <optional>

#include "compiler/ir/types.h"

namespace fusiond::passes {

class Coefficient {
 public:
  Coefficient() = default;  // 1
  // A constant of a dtype (f32 or f64). nullopt: zero, infinite, nan or out of range.
  static std::optional<Coefficient> Of(double value, ir::DType dtype);

  double ToDouble() const;
  bool IsOne() const { return *this == Coefficient(); }
  bool IsMinusOne() const { return Negated().IsOne(); }
  bool negative() const { return negative_; }

  Coefficient Negated() const;
  Coefficient Inverse() const;
  Coefficient operator*(const Coefficient& other) const;
  Coefficient Power(int n) const;
  // Requires: positive.
  Coefficient SquareRoot() const;
  // nullopt: the sum is 0.
  std::optional<Coefficient> Plus(const Coefficient& other) const;

  // Far enough from the ends of the dtype's range for products of two of them to stay inside.
  bool InRange(ir::DType dtype) const;

  uint64_t Hash() const;
  bool operator==(const Coefficient& other) const;

 private:
  static Coefficient Inexact(double value);  // nonzero, finite
  // Takes over a quotient and √(a·b), in lowest terms.
  void Normalise(uint64_t numerator, uint64_t denominator);
  void SetRadical(uint64_t a, uint64_t b);

  bool negative_ = false;
  int32_t exponent_ = 0;
  int64_t numerator_ = 1;
  int64_t denominator_ = 1;
  int64_t radical_ = 1;
  double inexact_ = 1;
};

}  // namespace fusiond::passes

#endif  // FUSIOND_COMPILER_PASSES_ALGEBRA_COEFFICIENT_H_
