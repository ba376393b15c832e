#include "runtime/cpu/node_evaluator.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "compiler/ir/op_table.h"
#include "runtime/base/status_macros.h"
#include "runtime/cpu/index.h"
#include "runtime/cpu/op_error.h"
#include "runtime/cpu/pointwise.h"

namespace fusiond::cpu {
namespace {

using ir::AttributeKey;
using ir::Dims;
using ir::DType;
using ir::Op;

constexpr size_t kMaxOperands = 4;  // of a pointwise op
constexpr double kUndecided = std::numeric_limits<double>::infinity();
// The bound of a zero that may have either sign, and is exact but for that.
constexpr double kEitherZero = std::numeric_limits<double>::denorm_min();

bool IsFloat(const HostTensor& tensor) { return ir::IsFloatingPoint(tensor.type.dtype); }

// Zeros, step by step: touching memory takes time too.
template <typename T>
absl::Status Resize(std::vector<T>& elements, size_t count, const Cancelled& cancelled) {
  elements.reserve(count);
  while (elements.size() < count) {
    if (cancelled && cancelled()) return absl::CancelledError("cancelled between elements");
    elements.resize(std::min<size_t>(count, elements.size() + kElementsBetweenLooks));
  }
  return absl::OkStatus();
}

absl::Status Allocate(HostTensor& tensor, const EvaluateOptions& options) {
  const auto count = static_cast<size_t>(ir::ElementCount(tensor.type).value_or(0));
  FUSIOND_RETURN_IF_ERROR(IsFloat(tensor) ? Resize(tensor.floats, count, options.cancelled)
                                          : Resize(tensor.integers, count, options.cancelled));
  if (options.track_error) return Resize(tensor.error, count, options.cancelled);
  return absl::OkStatus();
}

// Element `at` as a float of type `to`, rounded as the device does: integers once, but f64 and
// integers reach the 16-bit types by way of f32.
double ConvertToFloat(const HostTensor& tensor, int64_t at, DType to) {
  if (!IsFloat(tensor)) {
    const int64_t value = tensor.integers[at];
    return to == DType::kDouble ? static_cast<double>(value)
                                : RoundTo(to, static_cast<float>(value));
  }
  const double value = tensor.floats[at];
  const bool narrow = to == DType::kHalf || to == DType::kBFloat16;
  return RoundTo(to,
                 narrow && tensor.type.dtype == DType::kDouble ? static_cast<float>(value) : value);
}

// Whether every value of a floating-point type `from` is one of `to`.
bool HoldsAll(DType to, DType from) {
  const bool out_of_range = to == DType::kHalf && from == DType::kBFloat16;
  return ir::IsFloatingPoint(from) && UnitRoundoff(to) <= UnitRoundoff(from) && !out_of_range;
}

// One operand of a pointwise node, read element by element in the op's compute type.
struct Operand {
  const HostTensor* tensor;
  DType compute;
  bool exact;  // double precision: no rounding on conversion

  double Float(int64_t at) const {
    if (!exact) return ConvertToFloat(*tensor, at, compute);
    return IsFloat(*tensor) ? tensor->floats[at] : static_cast<double>(tensor->integers[at]);
  }
  int64_t Integer(int64_t at) const {
    if (IsFloat(*tensor)) return FloatToInteger(tensor->floats[at], tensor->type.dtype, compute);
    return WrapInteger(tensor->integers[at], compute);
  }
  // The operand's bound, and the rounding of its conversion to a narrower compute type.
  double Error(int64_t at) const {
    if (tensor->error.empty()) return 0;
    if (HoldsAll(compute, tensor->type.dtype)) {
      return tensor->error[at];
    }
    const double value = Float(at);
    if (std::isfinite(value) && std::isinf(RoundTo(compute, std::fabs(value) + tensor->error[at])))
      return kUndecided;
    if (tensor->error[at] != 0) return tensor->error[at] + RoundingError(compute, value);
    // Known exactly, so is its conversion: that of 3.0 to float must not make pow(-2, 3.0)
    // undecided.
    const double converted = ConvertToFloat(*tensor, at, compute);
    return converted == value || std::isnan(value) ? 0 : std::fabs(converted - value);
  }
  // Of Integer(): 0 or undecided.
  double IntegerError(int64_t at) const {
    return IntegerMayDiffer(*tensor, at, compute) ? kUndecided : 0;
  }
};

bool IsPredicate(Op op) {
  switch (ir::Info(op).promotion) {
    case ir::Promotion::kComparison:
    case ir::Promotion::kLogical:
    case ir::Promotion::kPredicate:
      return true;
    default:
      return false;
  }
}

// The end of an operand's interval.
double Corner(double value, double error, bool above) {
  if (value == 0 && error == kEitherZero) return above ? 0.0 : -0.0;
  return above ? value + error : value - error;
}

// The largest change of f when operand i moves within ±errors[i]: f at every corner of the box, so
// that jumps show.
template <typename F>
double Spread(F f, const double* values, const double* errors, size_t count, double center) {
  double spread = 0;
  double corner[kMaxOperands];
  for (size_t mask = 1; mask < (size_t{1} << (2 * count)); ++mask) {
    bool skip = false;
    for (size_t i = 0; i < count; ++i) {
      const size_t side = (mask >> (2 * i)) & 3;
      skip = skip || side == 3 || (side != 0 && errors[i] == 0);
      corner[i] = side == 0 ? values[i] : Corner(values[i], errors[i], side == 1);
    }
    if (skip) continue;
    const double there = f(corner);
    if (there == center || (std::isnan(there) && std::isnan(center))) {
      if (there == 0 && std::signbit(there) != std::signbit(center))
        spread = std::max(spread, kEitherZero);
      continue;
    }
    const double distance = std::fabs(there - center);
    if (std::isnan(distance)) return kUndecided;
    spread = std::max(spread, distance);
  }
  return spread;
}

// Whether the whole quotient of a modulo may be another within the operands' intervals.
bool QuotientChanges(Op op, const double* values, const double* errors) {
  const auto whole = [op](double a, double b) {
    return op == Op::kRemainder ? std::floor(a / b) : std::trunc(a / b);
  };
  if (errors[0] == 0 && errors[1] == 0) return false;
  const double center = whole(values[0], values[1]);
  for (const double a : {values[0] - errors[0], values[0] + errors[0]}) {
    for (const double b : {values[1] - errors[1], values[1] + errors[1]}) {
      if (whole(a, b) != center) return true;
    }
  }
  return false;
}

// Whether the op has a pole, a jump or turns between the corners that they do not show.
bool LeavesCorners(Op op, const double* values, const double* errors, size_t count) {
  const auto may_be_zero = [&](size_t i) {
    return errors[i] > 0 && std::fabs(values[i]) <= errors[i];
  };
  if (op == Op::kWhere) return false;  // what it does not select does not matter
  for (size_t i = 0; i < count; ++i) {
    if (errors[i] == kUndecided) return true;
  }
  switch (op) {
    case Op::kDiv:
    case Op::kTruediv:
      return may_be_zero(1);
    case Op::kFmod:
    case Op::kMod:
    case Op::kRemainder:
      return may_be_zero(1) || QuotientChanges(op, values, errors);
    case Op::kReciprocal:
      return may_be_zero(0);
    case Op::kSignbit:
      return std::isnan(values[0]);  // the sign of a nan is nobody's
    case Op::kFrac:
      return std::trunc(values[0] - errors[0]) != std::trunc(values[0] + errors[0]);
    case Op::kEq:
    case Op::kNe:
      return std::max(errors[0], errors[1]) > kEitherZero &&
             std::fabs(values[0] - values[1]) <= errors[0] + errors[1];
    case Op::kPow:  // of a negative base it exists at whole exponents only; pow(1, nan) is pow(nan,
                    // 0) is 1
      return may_be_zero(0) || (errors[1] > 0 && values[0] < 0) ||
             (std::isnan(values[1]) && errors[0] > 0 && std::fabs(values[0] - 1) <= errors[0]) ||
             (std::isnan(values[0]) && may_be_zero(1));
    case Op::kCos:
    case Op::kSin:
      return errors[0] > 1;
    case Op::kTan:
      return std::floor((values[0] - errors[0]) / M_PI - 0.5) !=
             std::floor((values[0] + errors[0]) / M_PI - 0.5);
    case Op::kLgamma:
      return values[0] < 1 && errors[0] > 0 &&
             std::floor(values[0] - errors[0]) != std::floor(values[0] + errors[0]);
    default:
      return false;
  }
}

// The ops whose constants default math merges.
bool IsArithmetic(Op op) {
  switch (op) {
    case Op::kAdd:
    case Op::kAddcmul:
    case Op::kDiv:
    case Op::kLerp:
    case Op::kMul:
    case Op::kSub:
    case Op::kTruediv:
      return true;
    default:
      return false;
  }
}

// Whether the op tells 0 from -0 at these operands, by another finite value or a bool.
bool TellsZeros(Op op, const double* values) {
  if (op == Op::kAtan2) return (values[0] == 0 && !(values[1] > 0)) || values[1] == 0;
  return op == Op::kSignbit && values[0] == 0;
}

// Turns the spread of an op's corners into a bound: where the op may have jumped between them, the
// element is undecided.
double BoundFromSpread(Op op, const double* values, const double* errors, double spread) {
  switch (op) {
    case Op::kCeil:
    case Op::kFloor:
    case Op::kRound:
    case Op::kSign:
    case Op::kTrunc:
      return spread > kEitherZero ? kUndecided : spread;
    case Op::kThreshold:
      return spread > errors[0] + errors[2] ? kUndecided : spread;
    case Op::kAtan2:
      return spread > 3 ? kUndecided : spread;  // crosses the cut along the negative axis
    case Op::kWhere:
      if (!std::isinf(errors[0])) return values[0] != 0 ? errors[1] : errors[2];
      return values[1] == values[2] ? std::max(errors[1], errors[2]) : kUndecided;
    default:
      return spread;
  }
}

}  // namespace

bool IntegerMayDiffer(const HostTensor& tensor, int64_t at, DType to) {
  const double error = tensor.error[at];
  if (error <= kEitherZero || error == kUndecided || !IsFloat(tensor)) return error > kEitherZero;
  const double value = tensor.floats[at];
  const DType from = tensor.type.dtype;
  if (to == DType::kBool) return std::fabs(value) <= error;
  return FloatToInteger(value - error, from, to) != FloatToInteger(value + error, from, to);
}

absl::Status NodeEvaluator::Run(absl::Span<HostTensor> results) {
  for (HostTensor& result : results) FUSIOND_RETURN_IF_ERROR(Allocate(result, options_));
  FUSIOND_RETURN_IF_ERROR(Compute(results));
  for (HostTensor& result : results) {
    for (double& error : result.error) {
      if (std::isnan(error)) error = kUndecided;  // inf · 0 or inf - inf: no bound
    }
  }
  return absl::OkStatus();
}

absl::Status NodeEvaluator::Compute(absl::Span<HostTensor> results) const {
  switch (ir::Info(node_.op).op_class) {
    case ir::OpClass::kLeaf:
      Constant(results[0]);
      return absl::OkStatus();
    case ir::OpClass::kFactory:
      if (node_.op == Op::kIota) {
        return Iota(results[0]);
      }
      return Fill(*operands_[0], results[0]);
    case ir::OpClass::kPointwise:
      return node_.op == Op::kCast ? Cast(results[0]) : Pointwise(results[0]);
    case ir::OpClass::kReduction:
      if (node_.op == Op::kVar || node_.op == Op::kVarMean || node_.op == Op::kWelford) {
        return Moments(results);
      }
      return Reduce(results);
    case ir::OpClass::kShape:
      return Move(results[0]);
    case ir::OpClass::kMap:
      return Map(results[0]);
    case ir::OpClass::kMetadata:
      break;  // folded by Specialise
  }
  return absl::InternalError(
      absl::StrCat("op ", ir::Info(node_.op).name, " reached the evaluator"));
}

void NodeEvaluator::Constant(HostTensor& result) const {
  const ir::Attribute& attribute = *node_.attributes.Find(AttributeKey::kValue);
  const DType dtype = result.type.dtype;
  std::visit(
      [&](const auto& value) {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_arithmetic_v<T>) {
          if (IsFloat(result)) {
            const auto exact = static_cast<double>(value);
            result.floats[0] = Rounded(dtype, exact);
            if (options_.track_error && std::isfinite(exact))
              result.error[0] = std::fabs(RoundTo(dtype, exact) - exact);
          } else if constexpr (std::is_same_v<T, double>) {
            result.integers[0] = FloatToInteger(value, DType::kDouble, dtype);
          } else {
            result.integers[0] = WrapInteger(static_cast<int64_t>(value), dtype);
          }
        }
      },
      attribute);
}

absl::Status NodeEvaluator::Fill(const HostTensor& scalar, HostTensor& result) const {
  const Operand value{&scalar, result.type.dtype, options_.double_precision};
  const bool is_float = IsFloat(result);
  const double number = is_float ? value.Float(0) : 0;
  const int64_t integer = is_float ? 0 : value.Integer(0);
  double error = options_.track_error ? value.Error(0) : 0;
  if (options_.rearranged && is_float) error += RoundingError(result.type.dtype, number);
  return ForEachIndex(result.size(), options_.cancelled, [&](size_t i) {
    is_float ? (void)(result.floats[i] = number) : (void)(result.integers[i] = integer);
    if (options_.track_error) result.error[i] = error;
  });
}

// Integers wrap. A float is rounded as by a multiplication and an addition in its compute type.
absl::Status NodeEvaluator::Iota(HostTensor& result) const {
  const DType dtype = result.type.dtype;
  const Operand start{operands_[0], dtype, options_.double_precision};
  const Operand step{operands_[1], dtype, options_.double_precision};
  return ForEachIndex(result.size(), options_.cancelled, [&](size_t i) {
    if (!IsFloat(result)) {
      const uint64_t value = static_cast<uint64_t>(start.Integer(0)) +
                             static_cast<uint64_t>(step.Integer(0)) * static_cast<uint64_t>(i);
      result.integers[i] = WrapInteger(static_cast<int64_t>(value), dtype);
      if (options_.track_error)
        result.error[i] = std::max(start.IntegerError(0), step.IntegerError(0));
      return;
    }
    const double far = step.Float(0) * static_cast<double>(i);
    result.floats[i] = Rounded(dtype, start.Float(0) + far);
    if (!options_.track_error) return;
    const double scale = std::fabs(start.Float(0)) + std::fabs(far);
    result.error[i] = start.Error(0) + step.Error(0) * static_cast<double>(i) +
                      3 * RoundingError(ir::ComputeType(dtype), scale) +
                      RoundingError(dtype, result.floats[i]);
  });
}

// The only pointwise op whose result type is not derived from its compute type.
absl::Status NodeEvaluator::Cast(HostTensor& result) const {
  const HostTensor& operand = *operands_[0];
  const DType from = operand.type.dtype, out = result.type.dtype;
  const Operand source{&operand, IsFloat(result) ? out : from, options_.double_precision};
  return ForEachIndex(result.size(), options_.cancelled, [&](size_t linear) {
    const auto i = static_cast<int64_t>(linear);
    if (IsFloat(result)) {
      result.floats[i] = source.Float(i);
      if (options_.track_error) result.error[i] = source.Error(i);
      return;
    }
    result.integers[i] = Operand{&operand, out, false}.Integer(i);
    if (options_.track_error) result.error[i] = Operand{&operand, out, false}.IntegerError(i);
  });
}

absl::Status NodeEvaluator::Pointwise(HostTensor& result) const {
  absl::InlinedVector<const ir::Type*, 4> types;
  for (const HostTensor* operand : operands_) types.push_back(&operand->type);
  FUSIOND_ASSIGN_OR_RETURN(const DType compute,
                           ir::PointwiseComputeType(node_.op, types, node_.attributes));
  const size_t count = operands_.size();
  std::array<Operand, kMaxOperands> operands;
  std::array<Dims, kMaxOperands> strides;
  for (size_t i = 0; i < kMaxOperands; ++i) {
    const HostTensor* tensor = operands_[std::min(i, count - 1)];
    const bool condition = node_.op == Op::kWhere && i == 0;
    operands[i] = {tensor, condition ? DType::kBool : compute, options_.double_precision};
    strides[i] = BroadcastStrides(tensor->type.shape, result.type.shape);
  }
  const DType out = result.type.dtype;
  const bool track = options_.track_error;
  double values[kMaxOperands], errors[kMaxOperands];

  const bool in_float = ir::IsFloatingPoint(compute);
  if (!in_float) {
    int64_t integers[kMaxOperands];
    return ForEachPoint(result.type.shape, strides, options_.cancelled,
                        [&](size_t i, const auto& at) {
                          double error = 0;
                          for (size_t n = 0; n < count; ++n) {
                            integers[n] = operands[n].Integer(at[n]);
                            if (track) error = std::max(error, operands[n].IntegerError(at[n]));
                          }
                          const int64_t value = PointwiseInteger(node_.op, compute, integers);
                          if (IsFloat(result)) {
                            result.floats[i] = static_cast<double>(value);
                          } else {
                            result.integers[i] = out == DType::kBool ? value != 0 : value;
                          }
                          if (track) result.error[i] = error;  // 0, or undecided
                        });
  }

  const bool predicate = IsPredicate(node_.op);
  const bool merges = options_.rearranged && IsArithmetic(node_.op) && !result.type.scalar;
  double ulps = UlpBound(node_.op, options_.math);
  if (out == DType::kDouble && ulps > 0) ulps += 0.5;  // this evaluation rounds as well
  auto apply = [&](const double* v) -> double {
    if (predicate) return PointwisePredicate(node_.op, v) ? 1 : 0;
    return PointwiseFloat(node_.op, compute, v);
  };
  return ForEachPoint(
      result.type.shape, strides, options_.cancelled, [&](size_t i, const auto& at) {
        for (size_t n = 0; n < count; ++n) {
          values[n] = n == 0 && node_.op == Op::kWhere
                          ? static_cast<double>(operands[0].Integer(at[0]))
                          : operands[n].Float(at[n]);
        }
        const double value = apply(values);
        if (predicate) {
          result.integers[i] = value != 0;
        } else {
          result.floats[i] = Rounded(out, Rounded(compute, value));
        }
        if (!track) return;
        for (size_t n = 0; n < count; ++n) {
          errors[n] = operands[n].Error(at[n]);
          if (merges && operands[n].tensor->type.scalar)
            errors[n] += RoundingError(compute, values[n]);
        }
        const bool undecided = LeavesCorners(node_.op, values, errors, count) ||
                               (options_.rearranged && TellsZeros(node_.op, values));
        const double spread = undecided ? kUndecided : Spread(apply, values, errors, count, value);
        if (predicate) {
          result.error[i] = spread != 0 ? kUndecided : 0;
        } else {
          const double moved = BoundFromSpread(node_.op, values, errors, spread);
          result.error[i] = moved;
          // What is rounded may lie as far out as the operands' bounds move it.
          if (std::isfinite(value))
            result.error[i] +=
                ulps * 2 *
                RoundingError(out, ErrorScale(node_.op, options_.math, values, value) + moved);
        }
      });
}

}  // namespace fusiond::cpu
