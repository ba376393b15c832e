// trivial_reductions (R8): reductions over dims of extent 1, and over dims that expand repeats.
//
//   sum %x {dims=[1], keepdim=true}  (%x : f32[8,1])   →   %x
//   sum (expand %x {shape=[8,64]}) {dims=[1], keepdim=true}  →   mul %x, 64.0
//   prod (expand %x …)  →   pow %x, 64.0        max (expand %x …)   →   %x
//
// A squeeze follows where the reduction had keepdim=false. Needs: IR-50; expands sunk to their
// reductions (implicit_broadcasts). Establishes: no reduction over a dim of extent 1.
// Range: K·x rounds once and is finite whenever the sum is. Leaves alone: expanded extents of 0.
// Cost: O(1) a node.
#ifndef FUSIOND_COMPILER_PASSES_TRIVIAL_REDUCTIONS_H_
#define FUSIOND_COMPILER_PASSES_TRIVIAL_REDUCTIONS_H_

#include "absl/status/statusor.h"
#include "compiler/ir/graph.h"
#include "compiler/passes/pass.h"

namespace fusiond::passes {

absl::StatusOr<bool> TrivialReductions(ir::Graph& graph, const PassContext& context);

}  // namespace fusiond::passes

#endif  // FUSIOND_COMPILER_PASSES_TRIVIAL_REDUCTIONS_H_
