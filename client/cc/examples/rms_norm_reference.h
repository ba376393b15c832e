// RMSNorm and its backward as plain double-precision loops: what the example program compares the
// daemon's kernels with. Knows nothing of graphs or kernels, on purpose.
//
// Shapes: x, g, y, dx are [rows, columns], w and dw [columns], r [rows]; row-major.
// Thread-safety: pure functions.
#ifndef FUSIOND_CLIENT_CC_EXAMPLES_RMS_NORM_REFERENCE_H_
#define FUSIOND_CLIENT_CC_EXAMPLES_RMS_NORM_REFERENCE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fusiond::examples {

// bfloat16 is the upper half of a float.
float FromBFloat16(uint16_t bits);
uint16_t ToBFloat16(float value);  // to the nearest, ties to even; `value` finite

struct RmsNormInputs {
  size_t rows = 0, columns = 0;
  std::vector<uint16_t> x, w, g;  // bf16
  std::vector<float> rms;         // of x, by a loop in double
  std::vector<float> rstd;        // 1 / rms
};

inline constexpr double kEpsilon = 1e-5;  // of the forward graph

// Normally distributed x, w and g.
RmsNormInputs RandomRmsNorm(size_t rows, size_t columns, uint64_t seed);

// How far a result is from the loops: the largest |got - reference| as a fraction of what rounding
// allows. NaN, and with it an element that nobody wrote, is infinitely far.
struct Distance {
  double worst = 0;
  void Add(double got, double reference, double allowed);
};

// A rounding to bf16 errs by at most 2⁻⁸ of the value.

// y = x · rstd · w, with rstd = 1 / sqrt(mean(x²) + ε). Allowed: one rounding of y to bf16, and
// some of rstd to float (2⁻²⁰ in all).
struct ForwardDistance {
  Distance y, rstd;
};
ForwardDistance CompareForward(const RmsNormInputs& inputs, const std::vector<uint16_t>& y,
                               const std::vector<float>& rstd);

// dx = r·w·g − x·r³/columns · Σ x·w·g over the row; dw = Σ g·x·r over the rows. `r` is the row's
// 1/rms. Allowed: the definitions may round r, the row's sum and the result to bf16; in dw the
// rounding of r differs from row to row and so adds up as random errors do (7 standard deviations).
struct BackwardDistance {
  Distance dx, dw;
};
BackwardDistance CompareBackward(const RmsNormInputs& inputs, const std::vector<double>& r,
                                 const std::vector<uint16_t>& dx, const std::vector<uint16_t>& dw);

}  // namespace fusiond::examples

#endif  // FUSIOND_CLIENT_CC_EXAMPLES_RMS_NORM_REFERENCE_H_
