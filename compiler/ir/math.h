// Math: the numerics tier that a graph is compiled in.
//
//   kStrict   libdevice's functions, IEEE division, no reassociation, no fused multiply-add, casts
//             as written
//   kDefault  our own functions and quotients within 4 ulp, reassociation where passes/README.md
//             says so, excess precision between nodes
//   kFast     as kDefault, with the hardware's approximations of exp, log, sin, tanh, …
//             (compiler/device/math_fast.cuh says how close they come)
//
// Reductions accumulate in f32, of f64 in f64, and denormals are kept in all of them.
#ifndef FUSIOND_COMPILER_IR_MATH_H_
#define FUSIOND_COMPILER_IR_MATH_H_

#include <cstdint>

namespace fusiond::ir {

enum class Math : uint8_t { kStrict, kDefault, kFast };

}  // namespace fusiond::ir

#endif  // FUSIOND_COMPILER_IR_MATH_H_
