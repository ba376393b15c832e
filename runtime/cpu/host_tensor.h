// HostTensor: the elements of one value as the evaluator holds them, and conversion from and to raw
// buffers.
//
// Elements stand in row-major order without gaps: floats as double, bools and integers as int64.
// Thread-compatible.
#ifndef FUSIOND_RUNTIME_CPU_HOST_TENSOR_H_
#define FUSIOND_RUNTIME_CPU_HOST_TENSOR_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/ir/types.h"
#include "runtime/base/element.h"

namespace fusiond::cpu {

struct HostTensor {
  ir::Type type;                  // all extents known
  std::vector<double> floats;     // when type.dtype is a floating-point type
  std::vector<int64_t> integers;  // otherwise
  // Bound on |computed - exact| an element, only when asked for (EvaluateOptions::track_error).
  // Infinite: undecided, the element lies too near a discontinuity.
  std::vector<double> error;

  size_t size() const { return floats.size() + integers.size(); }
};

HostTensor FloatScalar(double value, ir::DType dtype = ir::DType::kDouble);
HostTensor IntegerScalar(int64_t value, ir::DType dtype = ir::DType::kInt);

using base::RoundTo;

// Asked every so many elements whether nobody waits for the rest; empty: never.
using Cancelled = std::function<bool()>;
inline constexpr int64_t kElementsBetweenLooks = int64_t{1} << 16;

// Reads elements at `data` + Σ index·stride (strides in elements of type.dtype). Requires: every
// such address readable.
HostTensor ReadBuffer(const ir::Type& type, const void* data, absl::Span<const int64_t> strides);
// CANCELLED: in between.
absl::StatusOr<HostTensor> ReadBuffer(const ir::Type& type, const void* data,
                                      absl::Span<const int64_t> strides,
                                      const Cancelled& cancelled);
// Writes elements as `tensor.type.dtype`. Requires: every address writable.
void WriteBuffer(const HostTensor& tensor, void* data, absl::Span<const int64_t> strides);
// CANCELLED: in between; some are written.
absl::Status WriteBuffer(const HostTensor& tensor, void* data, absl::Span<const int64_t> strides,
                         const Cancelled& cancelled);

}  // namespace fusiond::cpu

#endif  // FUSIOND_RUNTIME_CPU_HOST_TENSOR_H_
