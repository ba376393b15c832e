// deduplicate (R7): equal nodes are one node, operands of commutative ops stand in one order, a > b
// is b < a, and what no output needs is gone.
//
//   %2 = cast %x, %3 = cast %x   →   one of them, used twice
//   add %b, %a                   →   add %a, %b
//   gt %a, %b                    →   lt %b, %a
//
// The order: the larger value first, constants last, then by the structure of what computes them
// (builder.h). Exact, but for which payload a nan keeps. Reductions that read the same values in
// the same way become one node, which is what R11 needs: siblings over one axis share a kernel's
// loop. Cost: O(operands) a node. Does not look into the meaning of an op (normalise_algebra does).
#ifndef FUSIOND_COMPILER_PASSES_DEDUPLICATE_H_
#define FUSIOND_COMPILER_PASSES_DEDUPLICATE_H_

#include "absl/status/statusor.h"
#include "compiler/ir/graph.h"
#include "compiler/passes/pass.h"

namespace fusiond::passes {

absl::StatusOr<bool> Deduplicate(ir::Graph& graph, const PassContext& context);

}  // namespace fusiond::passes

#endif  // FUSIOND_COMPILER_PASSES_DEDUPLICATE_H_
