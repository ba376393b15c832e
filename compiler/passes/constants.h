// Arithmetic on scalar constants, as the evaluator defines it (compiler/device/README.md,
// "Semantics that others must match").
//
// Pure functions. Integer and bool constants are int64_t or bool, floating-point ones double.
#ifndef FUSIOND_COMPILER_PASSES_CONSTANTS_H_
#define FUSIOND_COMPILER_PASSES_CONSTANTS_H_

#include <optional>

#include "absl/types/span.h"
#include "compiler/ir/graph.h"

namespace fusiond::passes {

// The one double that stands for a constant of a floating-point dtype: the value rounded to it; for
// f32 the double nearest to the float's shortest decimal form, so that 0.1 stays 0.1 in print.
double ConstantOf(ir::DType dtype, double value);

// The value a cast gives. nullopt: float to integer where the value does not fit.
std::optional<ir::Number> ConvertConstant(ir::Number number, ir::DType from, ir::DType to);

// Value of a pointwise op on constants of its compute type. nullopt: not one of the ops folded here
// (arithmetic, roots, powers, exponentials and logarithms), or undefined.
std::optional<ir::Number> FoldPointwise(ir::Op op, ir::DType compute,
                                        absl::Span<const ir::Number> operands);

// A float constant's value.
std::optional<double> FloatConstant(const ir::Graph& graph, ir::ValueId id);

}  // namespace fusiond::passes

#endif  // FUSIOND_COMPILER_PASSES_CONSTANTS_H_
