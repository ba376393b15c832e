// The reductions of NodeEvaluator.
#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/base/status_macros.h"
#include "runtime/cpu/index.h"
#include "runtime/cpu/node_evaluator.h"
#include "runtime/cpu/pointwise.h"

namespace fusiond::cpu {
namespace {

using ir::AttributeKey;
using ir::Dims;
using ir::DType;
using ir::Op;

bool IsFloat(const HostTensor& tensor) { return ir::IsFloatingPoint(tensor.type.dtype); }

// Strides that map a point of the operand's space to the element of the result it is reduced into.
Dims ReducedStrides(const Dims& shape, const std::vector<int64_t>& dims) {
  Dims kept = shape;
  for (int64_t d : dims) kept[d] = 1;
  Dims strides = ir::ContiguousStrides(kept);
  for (int64_t d : dims) strides[d] = 0;
  return strides;
}

// Terms that meet in one element of the result.
int64_t TermCount(const Dims& shape, const std::vector<int64_t>& dims) {
  int64_t count = 1;
  for (int64_t d : dims) count *= shape[d];
  return count;
}

// Of a reduction of n terms with fp32 (double for double) accumulators: 4·u·(2 + log2 n)·Σ|terms|.
double SumError(DType accumulate, int64_t terms, double sum_of_magnitudes) {
  const double u = UnitRoundoff(accumulate == DType::kDouble ? DType::kDouble : DType::kFloat);
  return 4 * u * (2 + std::log2(std::max<double>(1, static_cast<double>(terms)))) *
         sum_of_magnitudes;
}

// A sum that carries what its additions rounded off (Knuth's TwoSum), so that it is exact to an ulp
// or so however long it is.
class Sum {
 public:
  void Add(double term) {
    const double sum = sum_ + term, added = sum - sum_;
    rest_ += (sum_ - (sum - added)) + (term - added);
    sum_ = sum;
  }
  double Total() const { return std::isfinite(sum_) ? sum_ + rest_ : sum_; }

 private:
  double sum_ = 0, rest_ = 0;
};

double FloatIdentity(Op op) {
  switch (op) {
    case Op::kProd:
      return 1;
    case Op::kMax:
      return -INFINITY;
    case Op::kMin:
      return INFINITY;
    default:
      return 0;
  }
}

int64_t IntegerIdentity(Op op, DType dtype) {
  const bool narrow = dtype == DType::kInt32;
  switch (op) {
    case Op::kProd:
      return 1;
    case Op::kMax:
      if (dtype == DType::kBool) return 0;
      return narrow ? std::numeric_limits<int32_t>::min() : std::numeric_limits<int64_t>::min();
    case Op::kMin:
      if (dtype == DType::kBool) return 1;
      return narrow ? std::numeric_limits<int32_t>::max() : std::numeric_limits<int64_t>::max();
    default:
      return 0;
  }
}

Op Combiner(Op op) {
  switch (op) {
    case Op::kProd:
      return Op::kMul;
    case Op::kMax:
      return Op::kMaximum;
    case Op::kMin:
      return Op::kMinimum;
    default:
      return Op::kAdd;
  }
}

double ElementAsDouble(const HostTensor& tensor, int64_t at) {
  return IsFloat(tensor) ? tensor.floats[at] : static_cast<double>(tensor.integers[at]);
}

// The bound of `so_far` combined with `value`, each anywhere within its own bound.
double CombinedError(Op op, double so_far, double so_far_error, double value, double error) {
  if (op == Op::kSum) return so_far_error + error;
  if (op != Op::kProd) return std::max(so_far_error, error);
  // No bound times an infinite value is none: 0 · inf would be nan.
  return (so_far_error != 0 ? so_far_error * (std::fabs(value) + error) : 0) +
         (error != 0 ? std::fabs(so_far) * error : 0);
}

}  // namespace

absl::Status NodeEvaluator::Reduce(absl::Span<HostTensor> results) const {
  const HostTensor& operand = *operands_[0];
  HostTensor& result = results[0];
  const std::vector<int64_t>& dims = node_.attributes.Ints(AttributeKey::kDims);
  const Dims& shape = operand.type.shape;
  const std::array<Dims, 2> strides = {ir::ContiguousStrides(shape), ReducedStrides(shape, dims)};
  const DType out = result.type.dtype;
  const Op combine = Combiner(node_.op);

  if (!IsFloat(result)) {
    const int64_t identity = IntegerIdentity(node_.op, out);
    FUSIOND_RETURN_IF_ERROR(ForEachIndex(result.size(), options_.cancelled,
                                         [&](size_t i) { result.integers[i] = identity; }));
    return ForEachPoint(shape, strides, options_.cancelled, [&](size_t i, const auto& at) {
      const int64_t term = IsFloat(operand)
                               ? FloatToInteger(operand.floats[i], operand.type.dtype, out)
                               : WrapInteger(operand.integers[i], out);
      const int64_t pair[] = {result.integers[at[1]], term};
      result.integers[at[1]] = PointwiseInteger(combine, out, pair);
      if (options_.track_error && IntegerMayDiffer(operand, static_cast<int64_t>(i), out))
        result.error[at[1]] = std::numeric_limits<double>::infinity();
    });
  }

  // Summed in double whatever the dtype, and rounded once.
  std::vector<double> magnitudes(options_.track_error ? result.floats.size() : 0);
  std::vector<Sum> sums(node_.op == Op::kSum ? result.floats.size() : 0);
  const double identity = FloatIdentity(node_.op);
  FUSIOND_RETURN_IF_ERROR(ForEachIndex(result.size(), options_.cancelled,
                                       [&](size_t i) { result.floats[i] = identity; }));
  FUSIOND_RETURN_IF_ERROR(
      ForEachPoint(shape, strides, options_.cancelled, [&](size_t i, const auto& at) {
        const double pair[] = {result.floats[at[1]],
                               ElementAsDouble(operand, static_cast<int64_t>(i))};
        if (sums.empty()) {
          result.floats[at[1]] = PointwiseFloat(combine, DType::kDouble, pair);
        } else {
          sums[at[1]].Add(pair[1]);
        }
        if (!options_.track_error) return;
        magnitudes[at[1]] += std::fabs(pair[1]);
        double& error = result.error[at[1]];
        error = CombinedError(node_.op, pair[0], error, pair[1], operand.error[i]);
      }));
  FUSIOND_RETURN_IF_ERROR(ForEachIndex(sums.size(), options_.cancelled,
                                       [&](size_t i) { result.floats[i] = sums[i].Total(); }));
  if (options_.track_error) {
    const int64_t terms = TermCount(shape, dims);
    for (size_t i = 0; i < result.error.size(); ++i) {
      if (node_.op == Op::kSum) result.error[i] += SumError(out, terms, magnitudes[i]);
      if (node_.op == Op::kProd)
        result.error[i] +=
            SumError(out, terms, std::fabs(result.floats[i])) * static_cast<double>(terms);
      result.error[i] += RoundingError(out, std::fabs(result.floats[i]) + result.error[i]);
    }
  }
  return ForEachIndex(result.size(), options_.cancelled,
                      [&](size_t i) { result.floats[i] = Rounded(out, result.floats[i]); });
}

// var, var_mean, welford: mean first, then the centred sum of squares.
absl::Status NodeEvaluator::Moments(absl::Span<HostTensor> results) const {
  const HostTensor& operand = *operands_[0];
  const std::vector<int64_t>& dims = node_.attributes.Ints(AttributeKey::kDims);
  const Dims& shape = operand.type.shape;
  const std::array<Dims, 2> strides = {ir::ContiguousStrides(shape), ReducedStrides(shape, dims)};
  const int64_t terms = TermCount(shape, dims);
  const size_t count = results[0].floats.size();
  const auto n = static_cast<double>(terms);
  const DType out = results[0].type.dtype;
  // Integers are rounded to the result's type first.
  auto term = [&](size_t i) {
    return IsFloat(operand) || options_.double_precision
               ? ElementAsDouble(operand, static_cast<int64_t>(i))
               : static_cast<float>(operand.integers[i]);
  };
  auto term_error = [&](size_t i, double x) {
    return operand.error[i] + (IsFloat(operand) ? 0 : RoundingError(out, x));
  };
  std::vector<double> mean(count), squares(count), magnitude(count, 0.0), error(count, 0.0);
  std::vector<Sum> sums(count), square_sums(count);

  FUSIOND_RETURN_IF_ERROR(
      ForEachPoint(shape, strides, options_.cancelled, [&](size_t i, const auto& at) {
        const double x = term(i);
        sums[at[1]].Add(x);
        magnitude[at[1]] += std::fabs(x);
        if (options_.track_error) error[at[1]] += term_error(i, x);
      }));
  // nan for no terms, as torch
  FUSIOND_RETURN_IF_ERROR(
      ForEachIndex(count, options_.cancelled, [&](size_t i) { mean[i] = sums[i].Total() / n; }));
  std::vector<double> square_error(count, 0.0);
  std::vector<double> mean_error(count, 0.0);
  for (size_t i = 0; i < count && options_.track_error; ++i) {
    mean_error[i] =
        (error[i] + SumError(out, terms, magnitude[i])) / n + RoundingError(out, mean[i]);
  }
  FUSIOND_RETURN_IF_ERROR(
      ForEachPoint(shape, strides, options_.cancelled, [&](size_t i, const auto& at) {
        const double x = term(i), d = x - mean[at[1]];
        square_sums[at[1]].Add(d * d);
        if (!options_.track_error) return;
        const double e = term_error(i, x) + mean_error[at[1]] + 2 * RoundingError(out, d);
        square_error[at[1]] += (2 * std::fabs(d) + e) * e;
      }));
  FUSIOND_RETURN_IF_ERROR(ForEachIndex(count, options_.cancelled, [&](size_t i) {
    squares[i] = square_sums[i].Total();
    if (options_.track_error) square_error[i] += SumError(out, terms, squares[i]);
  }));

  auto store = [&](HostTensor& result, const std::vector<double>& values,
                   const std::vector<double>& errors) {
    return ForEachIndex(count, options_.cancelled, [&](size_t i) {
      result.floats[i] = Rounded(result.type.dtype, values[i]);
      if (options_.track_error)
        result.error[i] = errors[i] + 2 * RoundingError(out, std::fabs(values[i]) + errors[i]);
    });
  };
  if (node_.op == Op::kWelford) {
    FUSIOND_RETURN_IF_ERROR(store(results[0], mean, mean_error));
    FUSIOND_RETURN_IF_ERROR(store(results[1], squares, square_error));
    std::fill(results[2].integers.begin(), results[2].integers.end(), terms);
    return absl::OkStatus();
  }
  // torch: a divisor below 0 counts as 0, so too few terms give nan or inf.
  const double divisor = std::max<double>(
      0, n - static_cast<double>(node_.attributes.Int(AttributeKey::kCorrection, 1)));
  std::vector<double> variance(count);
  FUSIOND_RETURN_IF_ERROR(ForEachIndex(count, options_.cancelled, [&](size_t i) {
    variance[i] = squares[i] / divisor;
    square_error[i] /= divisor;
  }));
  FUSIOND_RETURN_IF_ERROR(store(results[0], variance, square_error));
  if (node_.op == Op::kVarMean) return store(results[1], mean, mean_error);
  return absl::OkStatus();
}

}  // namespace fusiond::cpu
