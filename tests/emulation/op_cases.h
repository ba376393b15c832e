// One case a type with a kernel for every pointwise op of the op table, called through its helper
// on special and random values, and held against the evaluator's meaning of the op.
//
// Thread-safety: pure functions.
#ifndef FUSIOND_TESTS_EMULATION_OP_CASES_H_
#define FUSIOND_TESTS_EMULATION_OP_CASES_H_

#include <vector>

#include "tests/emulation/cases.h"

namespace fusiond::emulation {

// For bool, i32, i64, f32 and f64; for f32 in each numerics tier. Floats are allowed cpu::UlpBound
// of their op.
std::vector<Case> OpCases();

// Every conversion between two element types, on every value of the 16-bit types and on values
// around every rounding boundary.
std::vector<Case> ConversionCases();

}  // namespace fusiond::emulation

#endif  // FUSIOND_TESTS_EMULATION_OP_CASES_H_
