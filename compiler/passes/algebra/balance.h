// Balance: the range side of R9. Splits a power of a row scalar between the two sides of a sum.
//
//   r² · Σ(x·g)   →   r · Σ(x·r·g)
//
// Expressions take every row scalar out of a sum, which is what lets definitions meet. Left there,
// r² or r³ (with r = 1/rms) may overflow where no element of the definition did, and Σ(x·g) as
// well. Of a power that all uses of a sum share, half goes back inside, so that neither side
// carries more than what it needs: x·r is the normalised row, and r·Σ of its products is what the
// hand-written kernels compute. A first power stays outside, where it costs nothing an element.
//
// Range: of r²·Σ(x·g) no intermediate exceeds what the two forms r·Σ(x·r·g) and Σ(x·g)·r·r have in
// common with the definition; a definition with r³ outside becomes safer, one with x·r inside and
// one r outside stays as it was.
#ifndef FUSIOND_COMPILER_PASSES_ALGEBRA_BALANCE_H_
#define FUSIOND_COMPILER_PASSES_ALGEBRA_BALANCE_H_

#include <vector>

#include "absl/types/span.h"
#include "compiler/passes/algebra/expression.h"

namespace fusiond::passes {

// What `roots` are made of: atoms in their order (parts before what uses them), terms in no order
// that means anything.
struct Reachable {
  std::vector<AtomId> atoms;
  std::vector<TermId> terms;
  // By AtomId: the atom is never negative and its reciprocal root is used, so that its inverse
  // powers are powers of that.
  std::vector<bool> has_rsqrt;
};
Reachable Reach(const Expressions& expressions, absl::Span<const TermId> roots);

// The roots with sums balanced; new atoms are added to `expressions`.
std::vector<TermId> Balance(Expressions& expressions, std::vector<TermId> roots);

}  // namespace fusiond::passes

#endif  // FUSIOND_COMPILER_PASSES_ALGEBRA_BALANCE_H_
