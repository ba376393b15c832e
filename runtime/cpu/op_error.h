// How far a correct kernel may be from the exact value of a pointwise op.
//
// Pure functions, thread-safe.
#ifndef FUSIOND_RUNTIME_CPU_OP_ERROR_H_
#define FUSIOND_RUNTIME_CPU_OP_ERROR_H_

#include "compiler/ir/math.h"
#include "compiler/ir/op_table.h"

namespace fusiond::cpu {

// Error of a tier's device functions on f32 in units in the last place of the result, as the tests
// allow it. 0.5 for correctly rounded ops.
double UlpBound(ir::Op op, ir::Math math);
// The magnitude that UlpBound is meant of: |value|, or that of the largest term where an op's own
// steps cancel.
double ErrorScale(ir::Op op, ir::Math math, const double* operands, double value);

}  // namespace fusiond::cpu

#endif  // FUSIOND_RUNTIME_CPU_OP_ERROR_H_
