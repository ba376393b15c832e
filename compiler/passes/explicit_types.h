// explicit_types (R4, R6c): writes every conversion as a cast node or a constant of the right type.
//
//   %2 = mul %x, %c : f32[8]          →   %3 = cast %x {dtype=f32}
//   (%x : bf16[8], %c = 3.0 : f64)        %4 = constant {value=3.0, dtype=f32}
//                                         %5 = mul %3, %4 : f32[8]
//   sum %x : bf16[]                   →   cast (sum (cast %x {dtype=f32})) {dtype=bf16}
//   where %p, %a, %b : bf16[8]        →   cast (where %p, (cast %a), (cast %b)) {dtype=bf16}
//
// Establishes: IR-50 (operands have the op's compute type, scalars too) and IR-51 (half and bf16
// are computed in f32; sum and prod have no dtype attribute, and accumulate in f32, f64 or i64).
// A double constant in float code thus narrows once, here. Exact: where, max and min only choose
// among values that the cast back restores; sum and prod round once, as they did.
// Cost: O(operands) a node. Does not remove a cast (fold_casts) or fold an operation
// (fold_constants).
#ifndef FUSIOND_COMPILER_PASSES_EXPLICIT_TYPES_H_
#define FUSIOND_COMPILER_PASSES_EXPLICIT_TYPES_H_

#include "absl/status/statusor.h"
#include "compiler/ir/graph.h"
#include "compiler/passes/pass.h"

namespace fusiond::passes {

absl::StatusOr<bool> ExplicitTypes(ir::Graph& graph, const PassContext& context);

}  // namespace fusiond::passes

#endif  // FUSIOND_COMPILER_PASSES_EXPLICIT_TYPES_H_
