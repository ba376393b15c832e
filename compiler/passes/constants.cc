#include "compiler/passes/constants.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>

namespace fusiond::passes {
namespace {

using ir::DType;
using ir::Number;
using ir::Op;

// Rounds to `bits` significant bits, with `min_exponent` that of the smallest normal value and
// everything from 2^limit up infinite.
double RoundBits(double value, int bits, int min_exponent, int limit) {
  if (value == 0 || !std::isfinite(value)) return value;
  int exponent;
  std::frexp(value, &exponent);  // |value| in [2^(exponent-1), 2^exponent)
  const int last = std::max(exponent - 1, min_exponent) - (bits - 1);
  const double rounded = std::ldexp(std::nearbyint(std::ldexp(value, -last)), last);
  if (std::fabs(rounded) < std::ldexp(1.0, limit)) return rounded;
  return std::copysign(HUGE_VAL, value);
}

std::optional<double> FoldUnary(Op op, double a) {
  switch (op) {
    case Op::kAbs:
      return std::fabs(a);
    case Op::kNeg:
      return -a;
    case Op::kReciprocal:
      return 1 / a;
    case Op::kSqrt:
      return std::sqrt(a);
    case Op::kRsqrt:
      return 1 / std::sqrt(a);
    case Op::kExp:
      return std::exp(a);
    case Op::kExp2:
      return std::exp2(a);
    case Op::kLog:
      return std::log(a);
    case Op::kLog2:
      return std::log2(a);
    case Op::kSet:
      return a;
    default:
      return std::nullopt;
  }
}

std::optional<double> FoldBinary(Op op, double a, double b) {
  switch (op) {
    case Op::kAdd:
      return a + b;
    case Op::kSub:
      return a - b;
    case Op::kMul:
      return a * b;
    case Op::kDiv:
    case Op::kTruediv:
      return a / b;
    case Op::kPow:
      return std::pow(a, b);
    case Op::kMaximum:
      return std::isnan(a) || std::isnan(b) ? NAN : std::fmax(a, b);
    case Op::kMinimum:
      return std::isnan(a) || std::isnan(b) ? NAN : std::fmin(a, b);
    default:
      return std::nullopt;
  }
}

int64_t Wrap(DType dtype, int64_t value) {
  return dtype == DType::kInt32 ? static_cast<int32_t>(value) : value;
}

std::optional<int64_t> FoldInteger(Op op, absl::Span<const int64_t> args) {
  const auto a = static_cast<uint64_t>(args[0]);
  const auto b = static_cast<uint64_t>(args.back());
  switch (op) {
    case Op::kNeg:
      return static_cast<int64_t>(0 - a);
    case Op::kSet:
      return args[0];
    case Op::kAdd:
      return static_cast<int64_t>(a + b);
    case Op::kSub:
      return static_cast<int64_t>(a - b);
    case Op::kMul:
      return static_cast<int64_t>(a * b);
    default:
      return std::nullopt;
  }
}

double ShortestFloat(float value) {
  if (!std::isfinite(value)) return value;
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  double shortest = value;
  std::from_chars(text, end, shortest);
  return shortest;
}

double AsDouble(const Number& number) {
  return std::visit([](auto value) { return static_cast<double>(value); }, number);
}

}  // namespace

double ConstantOf(DType dtype, double value) {
  switch (dtype) {
    case DType::kHalf:
      return RoundBits(value, 11, -14, 16);
    case DType::kBFloat16:
      return RoundBits(value, 8, -126, 128);
    case DType::kFloat:
      return ShortestFloat(static_cast<float>(value));
    default:
      return value;
  }
}

std::optional<Number> ConvertConstant(Number number, DType from, DType to) {
  if (to == DType::kBool) {
    return std::visit([](auto value) { return Number(value != 0); }, number);
  }
  double value = AsDouble(number);
  if (ir::IsFloatingPoint(from)) value = ConstantOf(from, value);
  if (from == DType::kFloat) value = static_cast<float>(value);
  if (ir::IsFloatingPoint(to)) {
    // f64 and integers reach the 16-bit types by way of f32.
    const bool narrow = ir::ComputeType(to) != to;
    const bool wide = from == DType::kDouble || !ir::IsFloatingPoint(from);
    return Number(ConstantOf(to, narrow && wide ? static_cast<float>(value) : value));
  }
  if (!ir::IsFloatingPoint(from)) {
    const int64_t exact = std::visit([](auto v) { return static_cast<int64_t>(v); }, number);
    return Number(Wrap(to, exact));
  }
  const double limit = to == DType::kInt32 ? 2147483647.0 : 9007199254740992.0;
  if (!(std::fabs(value) <= limit)) return std::nullopt;
  return Number(static_cast<int64_t>(value));
}

std::optional<Number> FoldPointwise(Op op, DType compute, absl::Span<const Number> operands) {
  if (ir::IsFloatingPoint(compute)) {
    std::optional<double> value;
    if (operands.size() == 1) value = FoldUnary(op, AsDouble(operands[0]));
    if (operands.size() == 2) value = FoldBinary(op, AsDouble(operands[0]), AsDouble(operands[1]));
    if (!value) return std::nullopt;
    return Number(ConstantOf(compute, *value));
  }
  if (!ir::IsInteger(compute)) return std::nullopt;
  absl::InlinedVector<int64_t, 2> args;
  for (const Number& operand : operands) {
    args.push_back(std::visit([](auto v) { return static_cast<int64_t>(v); }, operand));
  }
  const std::optional<int64_t> value = FoldInteger(op, args);
  if (!value) return std::nullopt;
  return Number(Wrap(compute, *value));
}

std::optional<double> FloatConstant(const ir::Graph& graph, ir::ValueId id) {
  const std::optional<Number> number = graph.ConstantValue(id);
  const double* value = number ? std::get_if<double>(&*number) : nullptr;
  return value == nullptr ? std::nullopt : std::make_optional(*value);
}

}  // namespace fusiond::passes
