// implicit_broadcasts (R5, R6b, R13): every value is computed at its own size, and meets larger
// ones by the IR's alignment; views stand at the edges of the graph only.
//
//   %b = broadcast_in_dim %r {shape=[8,64], broadcast_dims=[0]}     (%r : f32[8], an input)
//   %c = reciprocal %b : f32[8,64]              →   %1 = broadcast %r {…} : f32[8,1]
//   %y = mul %x, %c                                 %2 = reciprocal %1 : f32[8,1]
//                                                   %y = mul %x, %2 : f32[8,64]
//   %s = sum %x {dims=[1]} : f32[8]             →   %s = sum %x {dims=[1], keepdim=true} : f32[8,1]
//   set %x                                      →   %x
//
// Pointwise ops and casts thus move to the small side of a broadcast, squeezes sink to the outputs,
// inserted dims rise to the inputs, and chains of views vanish. axes.h decides where dims stand.
// What stays: maps, a broadcast right after an input, a squeeze or broadcast right before an
// output, views at a barrier of axes.h, an expand before an output whose elements repeat (then a
// set where the output was not declared with stride 0), an expand before a map or before a
// reduction of repeated dims (trivial_reductions takes that), segment_set.
// Needs: static extents. Establishes: IR-52 (keepdim), IR-53. Exact for every value: no element
// changes. Cost: O(dims) a node.
#ifndef FUSIOND_COMPILER_PASSES_IMPLICIT_BROADCASTS_H_
#define FUSIOND_COMPILER_PASSES_IMPLICIT_BROADCASTS_H_

#include "absl/status/statusor.h"
#include "compiler/ir/graph.h"
#include "compiler/passes/pass.h"

namespace fusiond::passes {

absl::StatusOr<bool> ImplicitBroadcasts(ir::Graph& graph, const PassContext& context);

}  // namespace fusiond::passes

#endif  // FUSIOND_COMPILER_PASSES_IMPLICIT_BROADCASTS_H_
