// Random ops written out: integer and float arithmetic on the words of random_bits.
//
// Element i of a draw takes words of Philox4x32-10 (Salmon et al., SC 2011), whose key is the seed
// and whose blocks of four words are counted from offset / 4 on:
//
//   uniform  f32: word i, its upper 24 bits.      f64: words 2i and 2i + 1, 53 bits of them
//   normal   f32: words of the pair that i is in. f64: the four words of that pair's block;
//            by Box and Muller, √(-2 ln u)·cos 2πv for even i, ·sin 2πv for odd ones
//
// i counts the op's own elements in row-major order, so no schedule and no segmentation changes a
// draw. 16-bit types are drawn in f32. A draw of n elements uses words [offset, offset + n) rounded
// up to whole blocks, of f64 [offset, offset + 2n): what is drawn next begins behind them.
#ifndef FUSIOND_COMPILER_IR_RANDOM_H_
#define FUSIOND_COMPILER_IR_RANDOM_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/ir/graph.h"

namespace fusiond::ir {

// uniform, normal, rand_like, randn_like.
bool IsRandom(Op op);

// Adds the nodes that compute a random op's result to `graph`. `operands` are those of the op,
// values of `graph`, without extents; `type` is the result's. Requires: a static shape.
absl::StatusOr<ValueId> ExpandRandom(Graph& graph, Op op, absl::Span<const ValueId> operands,
                                     const Type& type);

}  // namespace fusiond::ir

#endif  // FUSIOND_COMPILER_IR_RANDOM_H_
