// fold_constants (R4): computes scalar nodes whose operands are constants, in their own type, and
// drops operations that change no value.
//
//   %1 = reciprocal %n : f64     (%n = 8192)   →   %1 = constant {value=0.0001220703125}
//   %3 = mul %x, %one  : f32[8]                →   %x
//   %3 = sub %x, %zero, div %x, %one           →   %x
//   %3 = mul %x, %minus_one                    →   %3 = neg %x
//
// Needs: IR-50. Exact for every value (x - 0 keeps -0; x + 0 would not and stays, here). Folds
// arithmetic, roots, powers, exponentials and logarithms; leaves other ops on constants alone.
// Cost: O(1) a node.
#ifndef FUSIOND_COMPILER_PASSES_FOLD_CONSTANTS_H_
#define FUSIOND_COMPILER_PASSES_FOLD_CONSTANTS_H_

#include "absl/status/statusor.h"
#include "compiler/ir/graph.h"
#include "compiler/passes/pass.h"

namespace fusiond::passes {

absl::StatusOr<bool> FoldConstants(ir::Graph& graph, const PassContext& context);

}  // namespace fusiond::passes

#endif  // FUSIOND_COMPILER_PASSES_FOLD_CONSTANTS_H_
