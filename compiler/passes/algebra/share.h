// ShareItems: computes what several products, or several sums, have in common once.
//
//   x·r·w·g, x·r·g, w·g   →   h = x·r, t = w·g;  h·t, h·g, t
//
// The pair of items that most chains of an op contain becomes a chain of its own, again and again,
// until no pair stands in two. Among equals the pair that a value and a smaller one make goes first
// (the normalised row), the higher value first; then the order of plans decides: nothing depends on
// ids. Cost: near-linear in the pairs of items; a chain has at most Expressions::kMaxTerms of them.
#ifndef FUSIOND_COMPILER_PASSES_ALGEBRA_SHARE_H_
#define FUSIOND_COMPILER_PASSES_ALGEBRA_SHARE_H_

#include "absl/types/span.h"
#include "compiler/ir/op_table.h"
#include "compiler/passes/algebra/plan.h"

namespace fusiond::passes {

// Of the chains of `op` (kMul or kAdd) that the roots are computed from. Returns how many pairs
// were looked at.
int64_t ShareItems(Plans& plans, absl::Span<const PlanId> roots, ir::Op op);

}  // namespace fusiond::passes

#endif  // FUSIOND_COMPILER_PASSES_ALGEBRA_SHARE_H_
