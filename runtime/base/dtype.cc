#include "runtime/base/dtype.h"

namespace fusiond::base {

absl::string_view DTypeName(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return "bool";
    case DType::kInt32:
      return "i32";
    case DType::kInt:
      return "i64";
    case DType::kHalf:
      return "f16";
    case DType::kBFloat16:
      return "bf16";
    case DType::kFloat:
      return "f32";
    case DType::kDouble:
      return "f64";
  }
  return "?";
}

std::optional<DType> DTypeFromName(absl::string_view name) {
  for (DType dtype : kAllDTypes) {
    if (DTypeName(dtype) == name) return dtype;
  }
  return std::nullopt;
}

int64_t ByteSize(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return 1;
    case DType::kHalf:
    case DType::kBFloat16:
      return 2;
    case DType::kInt32:
    case DType::kFloat:
      return 4;
    case DType::kInt:
    case DType::kDouble:
      return 8;
  }
  return 0;
}

bool IsFloatingPoint(DType dtype) { return dtype >= DType::kHalf; }

bool IsInteger(DType dtype) { return dtype == DType::kInt32 || dtype == DType::kInt; }

DType ComputeType(DType dtype) {
  return dtype == DType::kHalf || dtype == DType::kBFloat16 ? DType::kFloat : dtype;
}

}  // namespace fusiond::base
