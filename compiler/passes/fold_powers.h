// fold_powers (R1): a power with a small constant exponent as products and roots.
//
//   pow %x, 0 → full 1      pow %x, 1 → %x      pow %x, 2 → mul %x, %x      pow %x, -1 → reciprocal
//   %x pow %x, 4 → square of a square              pow %x, -2 → square of reciprocal %x pow %x, 0.5
//   → sqrt %x   pow %x, 1.5 → mul %x, sqrt %x    pow %x, -0.5 → rsqrt %x, -1.5 its cube
//
// Needs: IR-50. Integer exponents up to 16, up to 3 in strict; halves up to 4.5, not in strict.
// Products are by square and multiply, of one reciprocal for negative exponents, so that no
// intermediate exceeds the result.
// What changes: rounding, by at most an ulp a multiplication (strict: 1.5 ulp, as good as pow).
// Roots: pow(-0, ½) is +0 and sqrt(-0) is -0; pow(-inf, ½) is inf and sqrt(-inf) is nan. A base of
// sums of squares is neither. Leaves alone: powers of integers, exponents that are not constants.
// Cost: at most eight nodes a node.
#ifndef FUSIOND_COMPILER_PASSES_FOLD_POWERS_H_
#define FUSIOND_COMPILER_PASSES_FOLD_POWERS_H_

#include "absl/status/statusor.h"
#include "compiler/ir/graph.h"
#include "compiler/passes/pass.h"

namespace fusiond::passes {

absl::StatusOr<bool> FoldPowers(ir::Graph& graph, const PassContext& context);

}  // namespace fusiond::passes

#endif  // FUSIOND_COMPILER_PASSES_FOLD_POWERS_H_
