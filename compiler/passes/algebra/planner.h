// Planner: decides how terms are computed, so that little is done an element.
//
//  - Factors and terms that vary along fewer axes are combined among themselves first: row scalars
//  at
//    row level. In a sum they stay apart where they centre a value: x - mean(x) + b is (x - mean) +
//    b, never x + (b - mean), whose rounding error is that of the mean.
//  - Whole powers are products up to a cube, then by squaring. Inverse powers are powers of one
//    reciprocal, or of one rsqrt where the value's reciprocal root is used anywhere. Row scalars
//    are multiplied one by one, reductions first: s·r·r·r, never r³.
//  - A product's constant goes into the smallest of its factors, and into a sum among them if that
//    saves an operation: ½·(1 + t) is ½·t + ½, and n⁻¹·[s + n·eps] is s/n + eps again.
#ifndef FUSIOND_COMPILER_PASSES_ALGEBRA_PLANNER_H_
#define FUSIOND_COMPILER_PASSES_ALGEBRA_PLANNER_H_

#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "compiler/passes/algebra/balance.h"
#include "compiler/passes/algebra/expression.h"
#include "compiler/passes/algebra/plan.h"

namespace fusiond::passes {

class Planner {
 public:
  Planner(Expressions& expressions, Plans& plans) : expressions_(expressions), plans_(plans) {}

  // One plan a root.
  std::vector<PlanId> Run(absl::Span<const TermId> roots);

 private:
  PlanId OfAtom(AtomId id);
  // The value of a term.
  PlanId Value(TermId id);
  // The same without its sign, which a sum takes up.
  Item Signed(TermId id);
  Item Product(const Term& term, bool with_sign);
  bool NegateSmaller(Items& items);
  void PairPowers(Items& items);
  void AppendFactor(const Factor& factor, PlanId base, Items& items);
  PlanId WholePower(PlanId base, int n);
  // coefficient · the sum atom, spread over its terms.
  Item Sum(AtomId id, const Coefficient& coefficient);
  std::vector<Items> CentredGroups(AtomId id, const Coefficient& coefficient);
  bool Centres(const Term& small, const Term& large) const;
  // Which factor, if any, takes up the coefficient.
  std::optional<size_t> Absorbs(const Term& term) const;
  // Combines items of fewer axes first; what is left is one chain.
  Item Levelled(ir::Op op, Items items);

  Expressions& expressions_;
  Plans& plans_;
  std::vector<bool> has_rsqrt_;
  absl::flat_hash_map<AtomId, PlanId> atoms_;
  absl::flat_hash_map<TermId, Item> terms_;
  absl::flat_hash_map<TermId, PlanId> values_;
};

}  // namespace fusiond::passes

#endif  // FUSIOND_COMPILER_PASSES_ALGEBRA_PLANNER_H_
