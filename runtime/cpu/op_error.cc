#include "runtime/cpu/op_error.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace fusiond::cpu {

using ir::Math;
using ir::Op;

namespace {

// As compiler/device/math_fast.cuh says; 0: as in the default tier.
double FastUlpBound(Op op) {
  switch (op) {
    case Op::kSqrt:
      return 2;
    case Op::kSigmoid:
    case Op::kSilu:
      return 6;
    case Op::kSin:
    case Op::kCos:
      return 8;
    case Op::kTan:
      return 20;
    case Op::kTanh:
      return 4096;
    default:
      return 0;
  }
}

double FastErrorScale(Op op, const double* v, double size) {
  constexpr double kFar = 1e5;  // beyond it angles are not reduced
  switch (op) {
    case Op::kExp:
    case Op::kSigmoid:
    case Op::kSilu:
      return size * std::max(1.0, std::fabs(v[0]));
    case Op::kLog:
    case Op::kLog2:
    case Op::kLog10:
      return std::max(size, 1.0);
    case Op::kSin:
    case Op::kCos:
      return std::fabs(v[0]) < kFar ? 1 : std::ldexp(1.0, 21);
    case Op::kTan:
      return std::fabs(v[0]) < kFar ? 1 + size * size : HUGE_VAL;
    default:
      return size;
  }
}

}  // namespace

double UlpBound(Op op, Math math) {
  const double fast = math == Math::kFast ? FastUlpBound(op) : 0;
  if (fast != 0) return fast;
  switch (op) {
    case Op::kAbs:
    case Op::kCeil:
    case Op::kClamp:
    case Op::kFloor:
    case Op::kFrac:
    case Op::kMaximum:
    case Op::kMinimum:
    case Op::kNeg:
    case Op::kReal:
    case Op::kRelu:
    case Op::kRound:
    case Op::kSegmentSet:
    case Op::kSet:
    case Op::kSign:
    case Op::kThreshold:
    case Op::kTrunc:
    case Op::kWhere:
      return 0;
    // Correctly rounded.
    case Op::kAdd:
    case Op::kSub:
    case Op::kMul:
    case Op::kSqrt:
      return 0.5;
    case Op::kDiv:
    case Op::kTruediv:
    case Op::kReciprocal:
      return math == Math::kStrict ? 0.5 : 2;
    case Op::kRsqrt:
      return 2;
    case Op::kLgamma:
    case Op::kErfinv:
    case Op::kErfcinv:
      return 8;
    case Op::kFmod:
    case Op::kMod:
    case Op::kRemainder:
      return 1;
    case Op::kNextafter:
      return 2;
    default:
      return 4;
  }
}

double ErrorScale(Op op, Math math, const double* v, double value) {
  const double size =
      math == Math::kFast ? FastErrorScale(op, v, std::fabs(value)) : std::fabs(value);
  switch (op) {
    case Op::kAddcmul:
      return std::max({size, std::fabs(v[0]), std::fabs(v[1] * v[2] * v[3])});
    case Op::kLerp:
      return std::max({size, std::fabs(v[0]), std::fabs(v[1]), std::fabs(v[2] * (v[1] - v[0]))});
    case Op::kLgamma:
      // Between its zeros there, libdevice's error is absolute (CUDA C++ Programming Guide, table
      // of errors; seen on sm_90).
      return v[0] < -2 && v[0] > -24 ? std::max(size, 1.0) : size;
    case Op::kSilu:
      // e^-|a| is subnormal far out, and its spacing is multiplied by a.
      return std::max(size, std::fabs(v[0]) * std::numeric_limits<float>::min());
    default:
      return size;
  }
}

}  // namespace fusiond::cpu
