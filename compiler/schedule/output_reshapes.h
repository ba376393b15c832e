// Outputs behind a reshape are computed in the shape before it: memory of an output is row-major,
// so that its elements lie the same in both.
//
//   %y = mul %x, %rstd : f32[6,64]               %y = mul %x, %rstd : f32[6,64]
//   %r = reshape %y : f32[2,3,64]                %w' = reshape (expand %w) : f32[6,64]
//   %o = mul %r, %w : f32[2,3,64]          →     %o = mul %y, %w' : f32[6,64]
//   output %o                                    output %o
//
// What computes %y so writes the output itself. Only where nothing else uses what stands behind the
// reshape, and other operands there are made of inputs by few nodes, without reductions. The
// output's type changes; its elements, in order, do not.
//
// Thread-safety: pure function. Cost: O(nodes behind the reshape, at most 16) an output.
#ifndef FUSIOND_COMPILER_SCHEDULE_OUTPUT_RESHAPES_H_
#define FUSIOND_COMPILER_SCHEDULE_OUTPUT_RESHAPES_H_

#include "absl/status/status.h"
#include "compiler/ir/graph.h"

namespace fusiond::schedule {

absl::Status TakeReshapesOffOutputs(ir::Graph& graph);

}  // namespace fusiond::schedule

#endif  // FUSIOND_COMPILER_SCHEDULE_OUTPUT_RESHAPES_H_
