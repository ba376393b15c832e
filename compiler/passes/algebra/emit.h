// Emit: plans as nodes of a graph.
#ifndef FUSIOND_COMPILER_PASSES_ALGEBRA_EMIT_H_
#define FUSIOND_COMPILER_PASSES_ALGEBRA_EMIT_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/passes/algebra/plan.h"
#include "compiler/passes/builder.h"

namespace fusiond::passes {

// One value a root. Chains become two-operand ops: products from the highest factor on, their
// constant second; sums from a positive item on, then what is subtracted, then the rest.
absl::StatusOr<std::vector<ir::ValueId>> Emit(const Plans& plans, absl::Span<const PlanId> roots,
                                              Builder& builder);

}  // namespace fusiond::passes

#endif  // FUSIOND_COMPILER_PASSES_ALGEBRA_EMIT_H_
