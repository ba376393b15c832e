// Evaluate: computes a graph element by element. The CPU device, and the reference that kernels are
// held against.
//
// Native precision rounds every result to its dtype. Double precision computes every float value in
// double and leaves float casts unrounded. With track_error a bound on the error that a correct
// kernel may make is carried beside each value: every op adds its own rounding (UlpBound × u of the
// op's dtype × |value|; a reduction of n terms 4·u_acc·(2 + log2 n)·Σ|terms|; a rounding cast u of
// its type) to what its operands' bounds can change, found by evaluating the op at the corners of
// its operands' intervals. A result that jumps there, or leaves the range of its type, is undecided
// (infinite bound).
//
// With rearranged the bounds are those of two graphs that are equal as real numbers (default math,
// compiler/passes/README.md): K, what a kernel for the second gives, differs from the value F of
// the first by no more than both bounds together. For S, the value of the second with the
// constants that rearranging made of the first one's exactly, is within the first's bound of F:
// constants of the first count as fractions that round to them, so each scalar next to arithmetic
// may be off by its rounding. And K is within the second's bound of S: its constants are rounded
// when they are written out. Values that are not finite, and the sign of a zero, are undecided:
// inf·x + inf·y may have become inf·(x + y).
//
// Thread-safety: pure. Errors: INVALID_ARGUMENT when inputs do not fit the graph or extents
// contradict each other; RESOURCE_EXHAUSTED names limit and need; CANCELLED. Cost: O(elements ×
// nodes) time; values are freed after last use.
#ifndef FUSIOND_RUNTIME_CPU_EVALUATE_H_
#define FUSIOND_RUNTIME_CPU_EVALUATE_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/ir/graph.h"
#include "compiler/ir/math.h"
#include "runtime/cpu/host_tensor.h"

namespace fusiond::cpu {

struct EvaluateOptions {
  bool double_precision = false;
  bool track_error = false;              // needs double_precision
  bool rearranged = false;               // needs track_error
  ir::Math math = ir::Math::kDefault;    // of the kernels whose errors are tracked
  int64_t max_bytes = int64_t{1} << 40;  // of live values
  Cancelled cancelled = {};              // asked before every node too
};

// One tensor an output, in order (aliased ones included). Symbolic extents are bound to the inputs'
// shapes.
absl::StatusOr<std::vector<HostTensor>> Evaluate(const ir::Graph& graph,
                                                 std::vector<HostTensor> inputs,
                                                 const EvaluateOptions& options = {});

// Unit roundoff: 2⁻⁸ bf16, 2⁻¹¹ half, 2⁻²⁴ float, 2⁻⁵³ double; 0 for integers.
double UnitRoundoff(ir::DType dtype);
// What rounding `value` to `dtype` may change it by: the unit roundoff of it, or of the smallest
// normal number, below which spacing stays the same. 0 for integers.
double RoundingError(ir::DType dtype, double value);

}  // namespace fusiond::cpu

#endif  // FUSIOND_RUNTIME_CPU_EVALUATE_H_
