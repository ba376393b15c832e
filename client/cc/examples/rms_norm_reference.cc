#include "client/cc/examples/rms_norm_reference.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

namespace fusiond::examples {
namespace {

constexpr double kBFloat16Rounding = 0x1p-8;
constexpr double kFloatRoundings = 0x1p-20;

}  // namespace

float FromBFloat16(uint16_t bits) {
  const uint32_t wide = uint32_t{bits} << 16;
  float value;
  std::memcpy(&value, &wide, sizeof(value));
  return value;
}

uint16_t ToBFloat16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  bits += 0x7fff + ((bits >> 16) & 1);
  return static_cast<uint16_t>(bits >> 16);
}

RmsNormInputs RandomRmsNorm(size_t rows, size_t columns, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  auto fill = [&](std::vector<uint16_t>& values, size_t count) {
    values.resize(count);
    for (uint16_t& value : values) value = ToBFloat16(normal(random));
  };
  RmsNormInputs inputs;
  inputs.rows = rows;
  inputs.columns = columns;
  fill(inputs.x, rows * columns);
  fill(inputs.w, columns);
  fill(inputs.g, rows * columns);
  for (size_t row = 0; row < rows; ++row) {
    double squares = 0;
    for (size_t column = 0; column < columns; ++column) {
      const double x = FromBFloat16(inputs.x[row * columns + column]);
      squares += x * x;
    }
    const double rms = std::sqrt(squares / static_cast<double>(columns) + kEpsilon);
    inputs.rms.push_back(static_cast<float>(rms));
    inputs.rstd.push_back(static_cast<float>(1 / rms));
  }
  return inputs;
}

void Distance::Add(double got, double reference, double allowed) {
  const double fraction = std::fabs(got - reference) / std::max(allowed, 1e-30);
  worst =
      std::isnan(fraction) ? std::numeric_limits<double>::infinity() : std::max(worst, fraction);
}

ForwardDistance CompareForward(const RmsNormInputs& inputs, const std::vector<uint16_t>& y,
                               const std::vector<float>& rstd) {
  ForwardDistance distance;
  for (size_t row = 0; row < inputs.rows; ++row) {
    const size_t start = row * inputs.columns;
    double squares = 0;
    for (size_t column = 0; column < inputs.columns; ++column) {
      const double x = FromBFloat16(inputs.x[start + column]);
      squares += x * x;
    }
    const double r = 1 / std::sqrt(squares / static_cast<double>(inputs.columns) + kEpsilon);
    distance.rstd.Add(rstd[row], r, kFloatRoundings * r);
    for (size_t column = 0; column < inputs.columns; ++column) {
      const double reference =
          FromBFloat16(inputs.x[start + column]) * r * FromBFloat16(inputs.w[column]);
      distance.y.Add(FromBFloat16(y[start + column]), reference,
                     (kBFloat16Rounding + kFloatRoundings) * std::fabs(reference));
    }
  }
  return distance;
}

BackwardDistance CompareBackward(const RmsNormInputs& inputs, const std::vector<double>& r,
                                 const std::vector<uint16_t>& dx, const std::vector<uint16_t>& dw) {
  BackwardDistance distance;
  const auto columns = static_cast<double>(inputs.columns);
  std::vector<double> sums(inputs.columns), squares(inputs.columns);
  for (size_t row = 0; row < inputs.rows; ++row) {
    const size_t start = row * inputs.columns;
    double dot = 0;
    for (size_t column = 0; column < inputs.columns; ++column) {
      dot += double{FromBFloat16(inputs.x[start + column])} * FromBFloat16(inputs.w[column]) *
             FromBFloat16(inputs.g[start + column]);
    }
    for (size_t column = 0; column < inputs.columns; ++column) {
      const double x = FromBFloat16(inputs.x[start + column]);
      const double g = FromBFloat16(inputs.g[start + column]);
      const double direct = r[row] * FromBFloat16(inputs.w[column]) * g;
      const double through_rms = x * r[row] * r[row] * r[row] / columns * dot;
      distance.dx.Add(
          FromBFloat16(dx[start + column]), direct - through_rms,
          (2 * kBFloat16Rounding + kFloatRoundings) * (std::fabs(direct) + std::fabs(through_rms)));
      const double term = g * x * r[row];
      sums[column] += term;
      squares[column] += term * term;
    }
  }
  for (size_t column = 0; column < inputs.columns; ++column) {
    distance.dw.Add(FromBFloat16(dw[column]), sums[column],
                    kBFloat16Rounding * (std::fabs(sums[column]) + 4 * std::sqrt(squares[column])));
  }
  return distance;
}

}  // namespace fusiond::examples
