// The meaning of every pointwise op on one element: the one switch that defines what a graph
// computes.
//
// What IEEE and C leave open is fixed in compiler/device/README.md ("Semantics that others must
// match"); device code and this file agree on it. Pure functions, thread-safe.
#ifndef FUSIOND_RUNTIME_CPU_POINTWISE_H_
#define FUSIOND_RUNTIME_CPU_POINTWISE_H_

#include <cstdint>

#include "compiler/ir/op_table.h"

namespace fusiond::cpu {

// A float op on operands already converted to the compute type; the caller rounds the result.
// `compute` matters to nextafter alone. Comparisons and predicates are in PointwisePredicate.
double PointwiseFloat(ir::Op op, ir::DType compute, const double* operands);
// An op computed on bools or integers; the result is wrapped to `compute`.
int64_t PointwiseInteger(ir::Op op, ir::DType compute, const int64_t* operands);
// Ops whose result is bool, on float operands.
bool PointwisePredicate(ir::Op op, const double* operands);

// Truncates; out of range saturates; nan as in compiler/device/README.md.
int64_t FloatToInteger(double value, ir::DType from, ir::DType to);
// Wraps to the width of `dtype`; nonzero becomes 1 for bool.
int64_t WrapInteger(int64_t value, ir::DType dtype);

}  // namespace fusiond::cpu

#endif  // FUSIOND_RUNTIME_CPU_POINTWISE_H_
