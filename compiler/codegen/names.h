// How types, values and numbers are spelt in generated text.
//
// Thread-safety: pure functions.
#ifndef FUSIOND_COMPILER_CODEGEN_NAMES_H_
#define FUSIOND_COMPILER_CODEGEN_NAMES_H_

#include <string>

#include "compiler/ir/attributes.h"
#include "compiler/ir/types.h"

namespace fusiond::codegen {

// Element type in memory: "bf16", "f16", "f32", "f64", "i32", "i64", "b8".
const char* MemoryType(ir::DType dtype);
// Type in registers: "bool", "i32", "i64", "f32", "f64". Requires: not a 16-bit type.
const char* RegisterType(ir::DType dtype);
// An expression of RegisterType(dtype): "0x1.8p+1f", "-5ll", "true". Floats are exact.
std::string Literal(const ir::Number& number, ir::DType dtype);

}  // namespace fusiond::codegen

#endif  // FUSIOND_COMPILER_CODEGEN_NAMES_H_
