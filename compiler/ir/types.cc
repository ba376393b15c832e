#include "compiler/ir/types.h"

namespace fusiond::ir {

Type ScalarType(DType dtype) {
  return {.dtype = dtype, .scalar = true, .shape = {}, .strides = {}};
}

Type TensorType(DType dtype, const Dims& shape) {
  return {.dtype = dtype, .scalar = false, .shape = shape, .strides = ContiguousStrides(shape)};
}

Dims ContiguousStrides(const Dims& shape) {
  Dims strides(shape.size());
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    if (shape[i] == kSymbolic) stride = kUnknownStride;
    if (stride == kUnknownStride) continue;
    // An extent of 0 leaves the outer strides as if it were 1, as torch does.
    if (shape[i] > 1 && __builtin_mul_overflow(stride, shape[i], &stride)) stride = kUnknownStride;
  }
  return strides;
}

std::optional<int64_t> ElementCount(const Type& type) {
  int64_t count = 1;
  bool empty = false;
  for (const int64_t extent : type.shape) {
    if (extent == kSymbolic) return std::nullopt;
    empty = empty || extent == 0;
    if (extent != 0 && __builtin_mul_overflow(count, extent, &count)) return std::nullopt;
  }
  if (count > int64_t{1} << 62) return std::nullopt;
  return empty ? 0 : count;
}

}  // namespace fusiond::ir
