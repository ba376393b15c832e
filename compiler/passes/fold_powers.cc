#include "compiler/passes/fold_powers.h"

#include <cmath>

#include "compiler/passes/constants.h"
#include "compiler/passes/rebuild.h"
#include "runtime/base/status_macros.h"

namespace fusiond::passes {
namespace {

using ir::Op;
using ir::ValueId;

constexpr int kMaxExponent = 16;
constexpr int kMaxStrictExponent = 3;
constexpr double kMaxHalfExponent = 4.5;

// x^n for n ≥ 1 by square and multiply.
absl::StatusOr<ValueId> IntegerPower(Rebuild& rebuild, ValueId x, int n) {
  std::optional<ValueId> product;
  for (ValueId square = x;; n /= 2) {
    if (n % 2 == 1) {
      if (product) {
        FUSIOND_ASSIGN_OR_RETURN(product, rebuild.Add(Op::kMul, {*product, square}));
      } else {
        product = square;
      }
    }
    if (n < 2) return *product;
    FUSIOND_ASSIGN_OR_RETURN(square, rebuild.Add(Op::kMul, {square, square}));
  }
}

Replacement One(Rebuild& rebuild, const ir::Type& type) {
  const ValueId one = rebuild.builder().Constant(1.0, type.dtype);
  if (type.scalar) return one;
  return rebuild.Add(
      Op::kFull, {one},
      {{ir::AttributeKey::kShape, std::vector<int64_t>(type.shape.begin(), type.shape.end())},
       {ir::AttributeKey::kDtype, type.dtype}});
}

Replacement Visit(const ir::Node& node, Rebuild& rebuild) {
  if (node.op != Op::kPow) return std::nullopt;
  const std::optional<double> exponent = FloatConstant(rebuild.to(), rebuild[node.operands[1]]);
  if (!exponent) return std::nullopt;
  if (*exponent == 0) return One(rebuild, rebuild.from().type(node.results[0]));

  const ValueId x = rebuild[node.operands[0]];
  const double size = std::fabs(*exponent);
  const bool strict = !rebuild.context().Reassociates();
  if (size == std::floor(size) && size <= (strict ? kMaxStrictExponent : kMaxExponent)) {
    if (*exponent > 0) return IntegerPower(rebuild, x, static_cast<int>(size));
    FUSIOND_ASSIGN_OR_RETURN(const ValueId inverse, rebuild.Add(Op::kReciprocal, {x}));
    return IntegerPower(rebuild, inverse, static_cast<int>(size));
  }
  if (strict || 2 * size != std::floor(2 * size) || size > kMaxHalfExponent) return std::nullopt;
  if (*exponent < 0) {
    FUSIOND_ASSIGN_OR_RETURN(const ValueId root, rebuild.Add(Op::kRsqrt, {x}));
    return IntegerPower(rebuild, root, static_cast<int>(2 * size));
  }
  FUSIOND_ASSIGN_OR_RETURN(const ValueId root, rebuild.Add(Op::kSqrt, {x}));
  if (size < 1) return root;
  FUSIOND_ASSIGN_OR_RETURN(const ValueId whole, IntegerPower(rebuild, x, static_cast<int>(size)));
  return rebuild.Add(Op::kMul, {whole, root});
}

}  // namespace

absl::StatusOr<bool> FoldPowers(ir::Graph& graph, const PassContext& context) {
  return Rebuild(graph, context).Run(graph, Visit);
}

}  // namespace fusiond::passes
