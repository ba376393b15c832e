// One element of a tensor in memory, as double or int64.
//
// Thread-safety: pure functions. Formats: IEEE 754 binary16, 32, 64 and bfloat16, little-endian,
// any alignment; a bool is a byte, 0 or not.
#ifndef FUSIOND_RUNTIME_BASE_ELEMENT_H_
#define FUSIOND_RUNTIME_BASE_ELEMENT_H_

#include <cstdint>

#include "runtime/base/dtype.h"

namespace fusiond::base {

// Rounds to the nearest value of `dtype`, ties to even; a NaN stays one. kDouble returns `value`.
double RoundTo(DType dtype, double value);

// Requires: a floating-point dtype.
double LoadFloat(DType dtype, const char* at);
// Rounds as RoundTo.
void StoreFloat(DType dtype, double value, char* at);
// Requires: kBool, kInt32 or kInt.
int64_t LoadInteger(DType dtype, const char* at);
// Keeps the low bits; a bool is `value != 0`.
void StoreInteger(DType dtype, int64_t value, char* at);

}  // namespace fusiond::base

#endif  // FUSIOND_RUNTIME_BASE_ELEMENT_H_
