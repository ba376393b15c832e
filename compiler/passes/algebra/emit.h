// Emit: plans as nodes of a graph.
#ifndef FUSIOND_COMPILER_PASSES_ALGEBRA_EMIT_H_
#define FUSIOND_COMPILER_PASSES_ALGEBRA_EMIT_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/passes/algebra/plan.h"
#include "compiler/passes/builder.h"

namespace fusiond::passes {

struct Emitted {
  std::vector<ir::ValueId> values;  // one a root
  // Some chain had nothing but scalars of the launch. They compute in f64, outside the algebra:
  // what is read again has an atom in their place.
  bool scalar_ops = false;
};

// Chains become two-operand ops: products from the highest factor on, their
// constant second; sums from a positive item on, then what is subtracted, then the rest.
absl::StatusOr<Emitted> Emit(const Plans& plans, absl::Span<const PlanId> roots, Builder& builder);

}  // namespace fusiond::passes

#endif  // FUSIOND_COMPILER_PASSES_ALGEBRA_EMIT_H_
