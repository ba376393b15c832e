#include "runtime/cpu/pointwise.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "runtime/base/check.h"
#include "runtime/cpu/philox.h"

namespace fusiond::cpu {
namespace {

using ir::DType;
using ir::Op;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kTwoOverSqrtPi = 1.12837916709551257390;

// Newton's method on erf from a rational start (Winitzki 2008); three steps reach double precision
// in the middle. Near ±1 erf is flat, so there the step is taken on erfc.
double Erfinv(double y) {
  if (std::isnan(y) || std::fabs(y) > 1) return kNan;
  if (std::fabs(y) == 1) return std::copysign(INFINITY, y);
  if (y == 0) return y;
  const double a = 0.147, l = std::log1p(-y * y), t = 2 / (M_PI * a) + l / 2;
  double x = std::copysign(std::sqrt(std::sqrt(t * t - l / a) - t), y);
  for (int i = 0; i < 4; ++i) {
    const double residual = std::fabs(y) < 0.5 ? std::erf(x) - y
                            : y < 0            ? std::erfc(-x) - (1 + y)
                                               : (1 - y) - std::erfc(x);
    x -= residual / (kTwoOverSqrtPi * std::exp(-x * x) + residual * x);  // Halley's correction
  }
  return x;
}

double Erfcinv(double y) {
  if (std::isnan(y) || y < 0 || y > 2) return kNan;
  if (y == 0) return INFINITY;
  if (y == 2) return -INFINITY;
  if (y >= 0.0625) return Erfinv(1 - y);
  // Tail: erfc(x) ≈ exp(-x²)/(x·√π); Newton on log erfc.
  double x = std::sqrt(-std::log(y * std::sqrt(M_PI) * std::sqrt(-std::log(y))));
  for (int i = 0; i < 8; ++i) {
    const double f = std::erfc(x);
    x += (std::log(f) - std::log(y)) * f / (kTwoOverSqrtPi * std::exp(-x * x));
  }
  return x;
}

// e^-|a| never overflows, so that small results keep their relative accuracy.
double Sigmoid(double a) {
  const double e = std::exp(-std::fabs(a));
  return (a < 0 ? e : 1) / (1 + e);
}

double Lgamma(double a) {
  int sign;
  return lgamma_r(a, &sign);
}

double Lerp(double start, double end, double weight) {
  // torch's two-sided form: exact at both ends.
  return std::fabs(weight) < 0.5 ? start + weight * (end - start)
                                 : end - (end - start) * (1 - weight);
}

double PythonRemainder(double a, double b) {
  double r = std::fmod(a, b);
  if (r != 0 && (r < 0) != (b < 0)) r += b;
  return r;
}

double PropagateNan(double a, double b, bool take_a) {
  if (std::isnan(a)) return a;
  if (std::isnan(b)) return b;
  return take_a ? a : b;
}

uint64_t U(int64_t value) { return static_cast<uint64_t>(value); }

int Width(DType dtype) { return dtype == DType::kInt32 ? 32 : 64; }

int64_t Divide(int64_t a, int64_t b) {
  if (b == 0) return -1;
  if (b == -1) return static_cast<int64_t>(-U(a));
  return a / b;
}

int64_t Modulo(int64_t a, int64_t b) {
  if (b == 0) return a;
  if (b == -1) return 0;
  return a % b;
}

int64_t PythonModulo(int64_t a, int64_t b) {
  int64_t r = Modulo(a, b);
  return b != 0 && r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

int64_t IntegerPow(int64_t base, int64_t exponent) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 != 0 ? -1 : 1) : 0;
  uint64_t result = 1, square = U(base);
  for (; exponent != 0; exponent >>= 1) {
    if ((exponent & 1) != 0) result *= square;
    square *= square;
  }
  return static_cast<int64_t>(result);
}

int64_t Gcd(int64_t a, int64_t b) {
  uint64_t x = a < 0 ? -U(a) : U(a), y = b < 0 ? -U(b) : U(b);
  return static_cast<int64_t>(std::gcd(x, y));
}

int64_t ShiftLeft(int64_t a, int64_t count, int width) {
  return count < 0 || count >= width ? 0 : static_cast<int64_t>(U(a) << count);
}

int64_t ShiftRight(int64_t a, int64_t count, int width) {
  return count < 0 || count >= width ? (a < 0 ? -1 : 0) : a >> count;
}

int64_t LogicalShiftRight(int64_t a, int64_t count, int width) {
  if (count < 0 || count >= width) return 0;
  const uint64_t bits = width == 32 ? static_cast<uint32_t>(a) : U(a);
  return static_cast<int64_t>(bits >> count);
}

}  // namespace

double PointwiseFloat(Op op, DType compute, const double* v) {
  const double a = v[0];
  switch (op) {
    case Op::kAbs:
      return std::fabs(a);
    case Op::kAcos:
      return std::acos(a);
    case Op::kAcosh:
      return std::acosh(a);
    case Op::kAsin:
      return std::asin(a);
    case Op::kAsinh:
      return std::asinh(a);
    case Op::kAtan:
      return std::atan(a);
    case Op::kAtanh:
      return std::atanh(a);
    case Op::kCeil:
      return std::ceil(a);
    case Op::kCos:
      return std::cos(a);
    case Op::kCosh:
      return std::cosh(a);
    case Op::kErf:
      return std::erf(a);
    case Op::kErfc:
      return std::erfc(a);
    case Op::kErfcinv:
      return Erfcinv(a);
    case Op::kErfinv:
      return Erfinv(a);
    case Op::kExp:
      return std::exp(a);
    case Op::kExp2:
      return std::exp2(a);
    case Op::kExpm1:
      return std::expm1(a);
    case Op::kFloor:
      return std::floor(a);
    case Op::kFrac:
      return a - std::trunc(a);
    case Op::kLgamma:
      return Lgamma(a);
    case Op::kLog:
      return std::log(a);
    case Op::kLog10:
      return std::log10(a);
    case Op::kLog1p:
      return std::log1p(a);
    case Op::kLog2:
      return std::log2(a);
    case Op::kNeg:
      return -a;
    case Op::kReal:
    case Op::kSet:
    case Op::kSegmentSet:
    case Op::kCast:
      return a;
    case Op::kReciprocal:
      return 1 / a;
    case Op::kRelu:
      return a < 0 ? 0 : a;
    case Op::kRound:
      return std::nearbyint(a);
    case Op::kRsqrt:
      return 1 / std::sqrt(a);
    case Op::kSigmoid:
      return Sigmoid(a);
    case Op::kSign:
      return (a > 0) - (a < 0);
    case Op::kSilu:
      return a * Sigmoid(a);
    case Op::kSin:
      return std::sin(a);
    case Op::kSinh:
      return std::sinh(a);
    case Op::kSqrt:
      return std::sqrt(a);
    case Op::kTan:
      return std::tan(a);
    case Op::kTanh:
      return std::tanh(a);
    case Op::kTrunc:
      return std::trunc(a);
    case Op::kAdd:
      return a + v[1];
    case Op::kAtan2:
      return std::atan2(a, v[1]);
    case Op::kDiv:
    case Op::kTruediv:
      return a / v[1];
    case Op::kFmod:
    case Op::kMod:
      return std::fmod(a, v[1]);
    case Op::kMaximum:
      return PropagateNan(a, v[1], a >= v[1]);
    case Op::kMinimum:
      return PropagateNan(a, v[1], a <= v[1]);
    case Op::kMul:
      return a * v[1];
    case Op::kNextafter:
      return compute == DType::kDouble
                 ? std::nextafter(a, v[1])
                 : std::nextafterf(static_cast<float>(a), static_cast<float>(v[1]));
    case Op::kPow:
      return std::pow(a, v[1]);
    case Op::kRemainder:
      return PythonRemainder(a, v[1]);
    case Op::kSub:
      return a - v[1];
    case Op::kAddcmul:
      return a + v[3] * v[1] * v[2];
    case Op::kClamp:
      return std::isnan(a) ? a : std::fmin(std::fmax(a, v[1]), v[2]);
    case Op::kLerp:
      return Lerp(a, v[1], v[2]);
    case Op::kThreshold:
      return a <= v[1] ? v[2] : a;
    case Op::kWhere:
      return a != 0 ? v[1] : v[2];
    default:
      FUSIOND_CHECK(false && "not a float op");
      return kNan;
  }
}

bool PointwisePredicate(Op op, const double* v) {
  const double a = v[0];
  switch (op) {
    case Op::kIsfinite:
      return std::isfinite(a);
    case Op::kIsinf:
      return std::isinf(a);
    case Op::kIsnan:
      return std::isnan(a);
    case Op::kIsneginf:
      return a == -INFINITY;
    case Op::kIsposinf:
      return a == INFINITY;
    case Op::kIsreal:
      return true;
    case Op::kSignbit:
      return std::signbit(a);
    case Op::kLogicalNot:
      return a == 0;
    case Op::kLogicalAnd:
      return a != 0 && v[1] != 0;
    case Op::kLogicalOr:
      return a != 0 || v[1] != 0;
    case Op::kEq:
      return a == v[1];
    case Op::kNe:
      return a != v[1];
    case Op::kGe:
      return a >= v[1];
    case Op::kGt:
      return a > v[1];
    case Op::kLe:
      return a <= v[1];
    case Op::kLt:
      return a < v[1];
    default:
      FUSIOND_CHECK(false && "not a predicate");
      return false;
  }
}

int64_t PointwiseInteger(Op op, DType compute, const int64_t* v) {
  const int64_t a = v[0];
  const int width = Width(compute);
  const bool is_bool = compute == DType::kBool;
  switch (op) {
    case Op::kAbs:
      return WrapInteger(a < 0 ? static_cast<int64_t>(-U(a)) : a, compute);
    case Op::kBitwiseNot:
      return is_bool ? a == 0 : WrapInteger(~a, compute);
    case Op::kCeil:
    case Op::kFloor:
    case Op::kRound:
    case Op::kTrunc:
    case Op::kReal:
    case Op::kSet:
    case Op::kSegmentSet:
      return a;
    case Op::kFrac:
      return 0;
    case Op::kNeg:
      return WrapInteger(static_cast<int64_t>(-U(a)), compute);
    case Op::kRelu:
      return a < 0 ? 0 : a;
    case Op::kSign:
      return (a > 0) - (a < 0);
    case Op::kIsfinite:
    case Op::kIsreal:
      return 1;
    case Op::kIsinf:
    case Op::kIsnan:
    case Op::kIsneginf:
    case Op::kIsposinf:
      return 0;
    case Op::kSignbit:
      return a < 0;
    case Op::kLogicalNot:
      return a == 0;
    case Op::kLogicalAnd:
      return a != 0 && v[1] != 0;
    case Op::kLogicalOr:
      return a != 0 || v[1] != 0;
    case Op::kEq:
      return a == v[1];
    case Op::kNe:
      return a != v[1];
    case Op::kGe:
      return a >= v[1];
    case Op::kGt:
      return a > v[1];
    case Op::kLe:
      return a <= v[1];
    case Op::kLt:
      return a < v[1];
    case Op::kAdd:
      return WrapInteger(static_cast<int64_t>(U(a) + U(v[1])), compute);
    case Op::kSub:
      return WrapInteger(static_cast<int64_t>(U(a) - U(v[1])), compute);
    case Op::kMul:
      return WrapInteger(static_cast<int64_t>(U(a) * U(v[1])), compute);
    case Op::kDiv:
      return WrapInteger(Divide(a, v[1]), compute);
    case Op::kFmod:
    case Op::kMod:
      return WrapInteger(Modulo(a, v[1]), compute);
    case Op::kRemainder:
      return WrapInteger(PythonModulo(a, v[1]), compute);
    case Op::kPow:
      return WrapInteger(IntegerPow(a, v[1]), compute);
    case Op::kGcd:
      return WrapInteger(Gcd(a, v[1]), compute);
    case Op::kMaximum:
      return a >= v[1] ? a : v[1];
    case Op::kMinimum:
      return a <= v[1] ? a : v[1];
    case Op::kBitwiseAnd:
      return a & v[1];
    case Op::kBitwiseOr:
      return a | v[1];
    case Op::kBitwiseXor:
      return a ^ v[1];
    case Op::kBitwiseLeftShift:
      return WrapInteger(ShiftLeft(a, v[1], width), compute);
    case Op::kBitwiseRightShift:
      return ShiftRight(a, v[1], width);
    case Op::kLogicalRightShift:
      return WrapInteger(LogicalShiftRight(a, v[1], width), compute);
    case Op::kRandomBits:
      return WrapInteger(RandomBits(U(a), U(v[1]), U(v[2])), compute);
    case Op::kAddcmul:
      return WrapInteger(static_cast<int64_t>(U(a) + U(v[3]) * U(v[1]) * U(v[2])), compute);
    case Op::kClamp:
      return std::min(std::max(a, v[1]), v[2]);
    case Op::kLerp:
      return WrapInteger(static_cast<int64_t>(U(a) + U(v[2]) * (U(v[1]) - U(a))), compute);
    case Op::kThreshold:
      return a <= v[1] ? v[2] : a;
    case Op::kWhere:
      return a != 0 ? v[1] : v[2];
    default:
      FUSIOND_CHECK(false && "not an integer op");
      return 0;
  }
}

int64_t FloatToInteger(double value, DType from, DType to) {
  if (to == DType::kBool) return value != 0;
  const bool narrow = to == DType::kInt32;
  if (std::isnan(value)) {
    if (narrow && from != DType::kDouble) return 0;
    return narrow ? std::numeric_limits<int32_t>::min() : std::numeric_limits<int64_t>::min();
  }
  const double limit = narrow ? 0x1p31 : 0x1p63;
  if (value >= limit) {
    return narrow ? std::numeric_limits<int32_t>::max() : std::numeric_limits<int64_t>::max();
  }
  if (value < -limit) {
    return narrow ? std::numeric_limits<int32_t>::min() : std::numeric_limits<int64_t>::min();
  }
  return static_cast<int64_t>(value);
}

int64_t WrapInteger(int64_t value, DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return value != 0;
    case DType::kInt32:
      return static_cast<int32_t>(static_cast<uint32_t>(U(value)));
    default:
      return value;
  }
}

}  // namespace fusiond::cpu
