// lower_variance: var, var_mean and welford as sums, the mean first and then the centred squares.
//
//   %v, %m = var_mean %x {dims=[1]}   →   %s = sum %x {dims=[1], keepdim=true}
//   (%x : f32[4,128])                     %mk = div %s, 128.0
//                                         %d = sub %x, %mk
//                                         %q = sum (mul %d, %d) {dims=[1], keepdim=true}
//                                         %vk = div %q, 127.0;  then a squeeze each
//
// So that a variance written out and one asked for meet, and schedulers know four reductions. The
// two passes over x are exact where one over x and x² cancels; a row that a kernel holds is read
// once. A divisor below 0 counts as 0, as in torch.
// Needs: IR-50, static extents. Establishes: reductions are sum, prod, max and min (IR-52).
// Cost: at most ten nodes a node.
#ifndef FUSIOND_COMPILER_PASSES_LOWER_VARIANCE_H_
#define FUSIOND_COMPILER_PASSES_LOWER_VARIANCE_H_

#include "absl/status/statusor.h"
#include "compiler/ir/graph.h"
#include "compiler/passes/pass.h"

namespace fusiond::passes {

absl::StatusOr<bool> LowerVariance(ir::Graph& graph, const PassContext& context);

}  // namespace fusiond::passes

#endif  // FUSIOND_COMPILER_PASSES_LOWER_VARIANCE_H_
