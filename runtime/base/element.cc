#include "runtime/base/element.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace fusiond::base {
namespace {

// Rounds to a binary format with `mantissa` explicit bits and smallest normal exponent
// `min_exponent`; magnitudes of at least 2^(max_exponent + 1) after rounding become infinite.
double RoundToFormat(double value, int mantissa, int min_exponent, int max_exponent) {
  if (value == 0 || !std::isfinite(value)) return value;
  int exponent = std::max(std::ilogb(value), min_exponent);
  const double quantum = std::ldexp(1.0, exponent - mantissa);
  const double rounded =
      std::nearbyint(value / quantum) * quantum;  // ties to even; both steps exact
  if (std::fabs(rounded) >= std::ldexp(1.0, max_exponent + 1))
    return std::copysign(INFINITY, value);
  return rounded;
}

uint16_t BFloat16Bits(double value) {
  const uint32_t bits =
      std::bit_cast<uint32_t>(static_cast<float>(RoundTo(DType::kBFloat16, value)));
  return static_cast<uint16_t>(std::isnan(value) ? 0x7fc0u : bits >> 16);
}

uint16_t HalfBits(double value) {
  if (std::isnan(value)) return 0x7e00;
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const double magnitude = std::fabs(RoundTo(DType::kHalf, value));
  if (std::isinf(magnitude)) return sign | 0x7c00;
  if (magnitude < 0x1p-14)
    return sign | static_cast<uint16_t>(magnitude * 0x1p24);  // subnormal or 0
  const int exponent = std::ilogb(magnitude);
  const auto fraction = static_cast<uint16_t>((std::ldexp(magnitude, -exponent) - 1) * 1024);
  return static_cast<uint16_t>(sign | ((exponent + 15) << 10) | fraction);
}

double HalfValue(uint16_t bits) {
  const int exponent = (bits >> 10) & 31, fraction = bits & 1023;
  double magnitude;
  if (exponent == 31) {
    magnitude = fraction != 0 ? NAN : INFINITY;
  } else if (exponent == 0) {
    magnitude = std::ldexp(fraction, -24);
  } else {
    magnitude = std::ldexp(1024 + fraction, exponent - 25);
  }
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

template <typename T>
T Load(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

template <typename T>
void Store(T value, char* at) {
  std::memcpy(at, &value, sizeof(value));
}

}  // namespace

double RoundTo(DType dtype, double value) {
  switch (dtype) {
    case DType::kHalf:
      return RoundToFormat(value, 10, -14, 15);
    case DType::kBFloat16:
      return RoundToFormat(value, 7, -126, 127);
    case DType::kFloat:
      return static_cast<float>(value);
    default:
      return value;
  }
}

double LoadFloat(DType dtype, const char* at) {
  switch (dtype) {
    case DType::kHalf:
      return HalfValue(Load<uint16_t>(at));
    case DType::kBFloat16:
      return std::bit_cast<float>(uint32_t{Load<uint16_t>(at)} << 16);
    case DType::kFloat:
      return Load<float>(at);
    default:
      return Load<double>(at);
  }
}

int64_t LoadInteger(DType dtype, const char* at) {
  switch (dtype) {
    case DType::kBool:
      return *at != 0;
    case DType::kInt32:
      return Load<int32_t>(at);
    default:
      return Load<int64_t>(at);
  }
}

void StoreFloat(DType dtype, double value, char* at) {
  switch (dtype) {
    case DType::kHalf:
      return Store(HalfBits(value), at);
    case DType::kBFloat16:
      return Store(BFloat16Bits(value), at);
    case DType::kFloat:
      return Store(static_cast<float>(value), at);
    default:
      return Store(value, at);
  }
}

void StoreInteger(DType dtype, int64_t value, char* at) {
  switch (dtype) {
    case DType::kBool:
      *at = value != 0 ? 1 : 0;
      return;
    case DType::kInt32:
      return Store(static_cast<int32_t>(value), at);
    default:
      return Store(value, at);
  }
}

}  // namespace fusiond::base
