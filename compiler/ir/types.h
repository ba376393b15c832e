// Element types and the type of an IR value.
//
// Thread-safety: values. Units: extents and strides in elements, sizes in bytes.
#ifndef FUSIOND_COMPILER_IR_TYPES_H_
#define FUSIOND_COMPILER_IR_TYPES_H_

#include <cstdint>
#include <optional>

#include "absl/container/inlined_vector.h"
#include "runtime/base/dtype.h"

namespace fusiond::ir {

using base::ByteSize;
using base::ComputeType;
using base::DType;
using base::DTypeFromName;
using base::DTypeName;
using base::IsFloatingPoint;
using base::IsInteger;
using base::kAllDTypes;

inline constexpr int kMaxRank = 8;
// An extent known only when a request names it.
inline constexpr int64_t kSymbolic = -1;
// A stride that depends on a symbolic extent or is not constrained by the definition.
inline constexpr int64_t kUnknownStride = -1;

using Dims = absl::InlinedVector<int64_t, 4>;

// A tensor, or a host scalar (`scalar`; then shape and strides are empty). A tensor of rank 0 is
// not a scalar: the two promote differently.
struct Type {
  DType dtype = DType::kFloat;
  bool scalar = false;
  Dims shape;    // ≥ 0, 1 for a broadcast dim, or kSymbolic
  Dims strides;  // same rank; 0 = expanded, kUnknownStride

  int rank() const { return static_cast<int>(shape.size()); }
  bool operator==(const Type&) const = default;
};

Type ScalarType(DType dtype);
// Row-major contiguous; strides left of a symbolic extent are unknown.
Type TensorType(DType dtype, const Dims& shape);
// Row-major strides of `shape`; kUnknownStride left of a symbolic extent.
Dims ContiguousStrides(const Dims& shape);
// Product of the extents (1 for scalars and rank 0); nullopt when one is symbolic or the product
// of those that are not 0 exceeds 2^62.
std::optional<int64_t> ElementCount(const Type& type);

}  // namespace fusiond::ir

#endif  // FUSIOND_COMPILER_IR_TYPES_H_
