// Element types of tensors and scalars, shared by graphs, executables and the wire.
//
// Thread-safety: values. The numbers are those of fusiond.v1.DType and stand in persisted records:
// never reused.
#ifndef FUSIOND_RUNTIME_BASE_DTYPE_H_
#define FUSIOND_RUNTIME_BASE_DTYPE_H_

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"

namespace fusiond::base {

// kInt is 64 bits wide, as in the front end's DataType.Int. The numbers are those of
// fusiond.v1.DType.
enum class DType : uint8_t {
  kBool = 1,
  kInt32 = 2,
  kInt = 3,
  kHalf = 4,
  kBFloat16 = 5,
  kFloat = 6,
  kDouble = 7,
};

inline constexpr DType kAllDTypes[] = {DType::kBool,     DType::kInt32, DType::kInt,   DType::kHalf,
                                       DType::kBFloat16, DType::kFloat, DType::kDouble};

// "bool", "i32", "i64", "f16", "bf16", "f32", "f64": the spelling of .fir text and benchmark names.
absl::string_view DTypeName(DType dtype);
std::optional<DType> DTypeFromName(absl::string_view name);
int64_t ByteSize(DType dtype);
bool IsFloatingPoint(DType dtype);
bool IsInteger(DType dtype);  // kInt32, kInt; not kBool
// kHalf and kBFloat16 compute in kFloat; every other type computes in itself.
DType ComputeType(DType dtype);

}  // namespace fusiond::base

#endif  // FUSIOND_RUNTIME_BASE_DTYPE_H_
