// Binding: concrete tensors checked against an Executable, and the sizes that follow.
//
// A binding is what the CPU device, LoadedExecutable and the worker share: guards evaluated in
// order, output shapes, workspace bytes.
#ifndef FUSIOND_RUNTIME_EXECUTABLE_BINDING_H_
#define FUSIOND_RUNTIME_EXECUTABLE_BINDING_H_

#include <cstdint>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/executable/executable.h"

namespace fusiond::executable {

// One argument of a launch. For a scalar input `bits` holds the value (i64, f64 bits, or 0/1).
struct TensorArg {
  uint64_t address = 0;
  absl::InlinedVector<int64_t, 4> shape;
  absl::InlinedVector<int64_t, 4> strides;  // elements
  uint64_t bits = 0;
};

struct OutputShape {
  absl::InlinedVector<int64_t, 4> shape;
  absl::InlinedVector<int64_t, 4> strides;
  int64_t bytes = 0;  // from the address of element 0 to the end of the last element
};

// INVALID_ARGUMENT names input, expected and given number, rank, extent; checks everything but
// guards.
absl::Status CheckInputs(const Executable& executable, absl::Span<const TensorArg> inputs);
// One guard; as CheckGuards.
absl::Status CheckGuard(const Executable& executable, const Guard& guard,
                        absl::Span<const TensorArg> inputs, absl::Span<const TensorArg> outputs);
// Guards held against the inputs alone: what says something about outputs passes. For whoever has
// guards without their executable.
absl::Status CheckInputGuards(absl::Span<const Guard> guards, absl::Span<const TensorArg> inputs);
// OK when every guard on inputs holds; FAILED_PRECONDITION names the first that does not, with both
// values. Guards on output addresses are checked when `outputs` is not empty.
absl::Status CheckGuards(const Executable& executable, absl::Span<const TensorArg> inputs,
                         absl::Span<const TensorArg> outputs);
absl::StatusOr<std::vector<OutputShape>> OutputShapes(const Executable& executable,
                                                      absl::Span<const TensorArg> inputs,
                                                      int sm_count);
absl::StatusOr<int64_t> WorkspaceBytes(const Executable& executable,
                                       absl::Span<const TensorArg> inputs, int sm_count);
// A scalar input's 8 bytes (i64, f64, or 0/1) as a kernel argument of type `to`, in the low bytes
// of the result. Validate refuses an executable that would pass a float as an integer, or the
// reverse.
uint64_t ConvertScalar(uint64_t bits, DType to);

}  // namespace fusiond::executable

#endif  // FUSIOND_RUNTIME_EXECUTABLE_BINDING_H_
