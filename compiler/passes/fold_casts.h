// fold_casts (R6): drops conversions that change no value, and with excess precision those that
// only round.
//
//   cast %x {dtype=f32}                 (%x : f32)    →   %x
//   cast (cast %x {dtype=f32}) {dtype=bf16}  (%x : bf16)  →   %x          up and down again
//   cast (cast %x {dtype=f32}) {dtype=f64}   (%x : bf16)  →   cast %x {dtype=f64}
//   cast (cast %x {dtype=bf16}) {dtype=f32}  (%x : f32)   →   %x          excess precision; or
//   where
//                                                             %x is a choice among bf16 values
//
// The last: neg, abs, maximum, minimum, clamp, relu, where, max, min and views of values that the
// narrow type holds give such a value again, so that the round trip is exact. A cast to f64 before
// one to i32 stays: a nan becomes another integer from f64 than from the narrower types.
// Needs: IR-50; views above casts already gone (implicit_broadcasts), so that a rounding on a
// broadcast value is one on the small value. Establishes: no cast to a value's own type; with
// excess precision half and bf16 stand only before an output. A rounding that an output shows
// stays. Without excess precision nothing changes any value. With it a rounding disappears: results
// move by at most what it would have rounded, and a value beyond half's or bf16's range stays
// finite. Does not move a cast across arithmetic. Cost: O(operands) a node.
#ifndef FUSIOND_COMPILER_PASSES_FOLD_CASTS_H_
#define FUSIOND_COMPILER_PASSES_FOLD_CASTS_H_

#include "absl/status/statusor.h"
#include "compiler/ir/graph.h"
#include "compiler/passes/pass.h"

namespace fusiond::passes {

absl::StatusOr<bool> FoldCasts(ir::Graph& graph, const PassContext& context);

}  // namespace fusiond::passes

#endif  // FUSIOND_COMPILER_PASSES_FOLD_CASTS_H_
