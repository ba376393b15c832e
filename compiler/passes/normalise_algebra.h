// normalise_algebra (R2, R3, R9, R10, and the product side of R5): float arithmetic in one form.
//
//   div %x, %r  (%r : f32[8,1])              →   %1 = reciprocal %r;  mul %x, %1             R3
//   reciprocal (sqrt %a), pow forms          →   rsqrt %a                                    R2
//   sum (mul %x, %r) over the columns        →   mul (sum %x), %r                            R9
//   add (mul %x, %c), (mul %x, %c)           →   mul %x, (mul %c, 2.0)                       R10
//   sub (mul %x, %r), (mul %m, %r)           →   mul (sub %x, %m), %r                        R10
//
// The graph's values become expressions (algebra/expression.h has the form and what is never done),
// sums are balanced (algebra/balance.h), and nodes are made again with little work an element
// (algebra/planner.h, share.h). Equal nodes are one.
//
// Covers add, sub, mul, div, truediv, neg, reciprocal, sqrt, rsqrt, addcmul, lerp and sum on f32
// and f64 tensors; everything else is kept and looked through to its operands. Not in strict: the
// pass then changes nothing. README.md says what changes for infinities, nans, -0 and near the ends
// of the range. Needs: IR-50 … IR-53; powers folded (fold_powers). Cost: O(1) a node, with a bound
// on the size of terms and sums; visits count nodes, factors, terms and pairs of items.
#ifndef FUSIOND_COMPILER_PASSES_NORMALISE_ALGEBRA_H_
#define FUSIOND_COMPILER_PASSES_NORMALISE_ALGEBRA_H_

#include "absl/status/statusor.h"
#include "compiler/ir/graph.h"
#include "compiler/passes/pass.h"

namespace fusiond::passes {

absl::StatusOr<bool> NormaliseAlgebra(ir::Graph& graph, const PassContext& context);

}  // namespace fusiond::passes

#endif  // FUSIOND_COMPILER_PASSES_NORMALISE_ALGEBRA_H_
