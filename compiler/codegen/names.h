// How types, values and numbers are spelt in generated text.
//
// Thread-safety: pure functions.
#ifndef FUSIOND_COMPILER_CODEGEN_NAMES_H_
#define FUSIOND_COMPILER_CODEGEN_NAMES_H_

#include <string>

#include "absl/strings/string_view.h"
#include "compiler/ir/attributes.h"
#include "compiler/ir/math.h"
#include "compiler/ir/op_table.h"
#include "compiler/ir/types.h"

namespace fusiond::codegen {

// Element type in memory: "bf16", "f16", "f32", "f64", "i32", "i64", "b8".
const char* MemoryType(ir::DType dtype);
// Type in registers: "bool", "i32", "i64", "f32", "f64". Requires: not a 16-bit type.
const char* RegisterType(ir::DType dtype);
// An expression of RegisterType(dtype): "0x1.8p+1f", "-5ll", "true". Floats are exact.
std::string Literal(const ir::Number& number, ir::DType dtype);

// The device function of a pointwise op on registers of `dtype`, and the device file besides
// math.cuh that it stands in, if one: numerics tiers differ in f32 functions alone.
struct Helper {
  std::string name;        // "fd_exp", "fd_fast_exp"
  absl::string_view file;  // "math_fast.cuh"
};
Helper HelperOf(ir::Op op, ir::DType dtype, ir::Math math);

}  // namespace fusiond::codegen

#endif  // FUSIOND_COMPILER_CODEGEN_NAMES_H_
