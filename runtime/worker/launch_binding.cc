#include "runtime/worker/launch_binding.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "absl/container/inlined_vector.h"
#include "runtime/base/status_numbers.h"
#include "runtime/cuda/driver.h"

namespace fusiond::worker {
namespace {

using channel::CompletionCode;
using channel::CompletionReason;
using channel::Outcome;
using executable::TensorArg;

constexpr int64_t kMaxExtent = int64_t{1} << 40;

Outcome Refuse(CompletionReason reason, size_t index, uint64_t limit, uint64_t actual) {
  Outcome outcome;
  outcome.code = CompletionCode::kInvalidArgument;
  outcome.reason = reason;
  outcome.index = static_cast<uint32_t>(index);
  outcome.limit = limit;
  outcome.actual = actual;
  return outcome;
}

// Fills strides the executable leaves open, row-major, innermost dim first.
void FillStrides(const executable::InputSpec& spec, TensorArg& input) {
  int64_t row_major = 1;
  input.strides.resize(spec.rank());
  for (uint32_t d = spec.rank(); d-- > 0;) {
    input.strides[d] = spec.strides[d] >= 0 ? spec.strides[d] : row_major;
    // Too large for any buffer is as good as infinite: CheckInputs or Place refuses it.
    if (__builtin_mul_overflow(row_major, std::max<int64_t>(input.shape[d], 1), &row_major)) {
      row_major = std::numeric_limits<int64_t>::max();
    }
  }
}

// Bytes from element 0 to the end of the last element; saturates.
uint64_t Reach(absl::Span<const int64_t> shape, absl::Span<const int64_t> strides,
               int64_t element_bytes) {
  unsigned __int128 last = 0;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 0) return 0;
    last += static_cast<unsigned __int128>(shape[d] - 1) * static_cast<uint64_t>(strides[d]);
  }
  const unsigned __int128 bytes = (last + 1) * static_cast<uint64_t>(element_bytes);
  constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max() / 2;
  return bytes > kMax ? kMax : static_cast<uint64_t>(bytes);
}

Outcome Place(const TensorMemory& memory, size_t index, base::DType dtype, TensorArg& tensor) {
  const auto element_bytes = static_cast<uint64_t>(base::ByteSize(dtype));
  if (memory.offset % element_bytes != 0) {
    return Refuse(CompletionReason::kBufferAlignment, index, element_bytes, memory.offset);
  }
  const uint64_t end =
      memory.offset + Reach(tensor.shape, tensor.strides, static_cast<int64_t>(element_bytes));
  if (end > memory.bytes) return Refuse(CompletionReason::kBufferRange, index, memory.bytes, end);
  tensor.address = memory.address + memory.offset;
  return {};
}

}  // namespace

LaunchShape ShapeOfLaunch(const executable::Executable& executable) {
  LaunchShape shape;
  for (const executable::InputSpec& input : executable.inputs) {
    if (input.scalar) {
      ++shape.extents;
      continue;
    }
    ++shape.tensors;
    for (int64_t extent : input.shape) shape.extents += extent < 0 ? 1 : 0;
  }
  for (const executable::OutputSpec& output : executable.outputs) {
    shape.tensors += output.alias_input ? 0 : 1;
  }
  return shape;
}

Outcome BindLaunch(const executable::Executable& executable, int sm_count,
                   absl::Span<const TensorMemory> tensors, absl::Span<const int64_t> extents,
                   BoundLaunch& bound) {
  size_t extent = 0, tensor = 0;
  bound.inputs.assign(executable.inputs.size(), TensorArg());
  for (size_t i = 0; i < executable.inputs.size(); ++i) {
    const executable::InputSpec& spec = executable.inputs[i];
    for (int64_t static_extent : spec.shape) {
      int64_t value = static_extent;
      if (value < 0) {
        value = extents[extent];
        if (value < 0 || value > kMaxExtent) {
          return Refuse(CompletionReason::kExtentValue, extent, kMaxExtent,
                        static_cast<uint64_t>(value));
        }
        ++extent;
      }
      bound.inputs[i].shape.push_back(value);
    }
    if (!spec.scalar) FillStrides(spec, bound.inputs[i]);
  }
  absl::InlinedVector<size_t, 16> tensor_of_input(executable.inputs.size(), 0);
  for (size_t i = 0; i < executable.inputs.size(); ++i) {
    if (executable.inputs[i].scalar) {
      bound.inputs[i].bits = static_cast<uint64_t>(extents[extent++]);
      continue;
    }
    Outcome placed = Place(tensors[tensor], tensor, executable.inputs[i].dtype, bound.inputs[i]);
    if (!placed.ok()) return placed;
    tensor_of_input[i] = tensor++;
  }
  absl::Status inputs_ok = executable::CheckInputs(executable, bound.inputs);
  if (!inputs_ok.ok()) return OutcomeFromStatus(inputs_ok);
  absl::StatusOr<std::vector<executable::OutputShape>> shapes =
      executable::OutputShapes(executable, bound.inputs, sm_count);
  if (!shapes.ok()) return OutcomeFromStatus(shapes.status());

  bound.outputs.assign(executable.outputs.size(), TensorArg());
  for (size_t i = 0; i < executable.outputs.size(); ++i) {
    TensorArg& output = bound.outputs[i];
    output.shape = (*shapes)[i].shape;
    output.strides = (*shapes)[i].strides;
    // One that aliases an input must fit that input's buffer, too.
    const std::optional<uint32_t> alias = executable.outputs[i].alias_input;
    const size_t at = alias ? tensor_of_input[*alias] : tensor++;
    Outcome placed = Place(tensors[at], at, executable.outputs[i].dtype, output);
    if (!placed.ok()) return placed;
  }
  for (size_t g = 0; g < executable.guards.size(); ++g) {
    if (!executable::CheckGuard(executable, executable.guards[g], bound.inputs, bound.outputs)
             .ok()) {
      Outcome outcome = Refuse(CompletionReason::kGuard, g, 0, 0);
      outcome.code = CompletionCode::kFailedPrecondition;
      return outcome;
    }
  }
  return {};
}

Outcome OutcomeFromStatus(const absl::Status& status) {
  Outcome outcome;
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return outcome;
    case absl::StatusCode::kInvalidArgument:
      outcome.code = CompletionCode::kInvalidArgument;
      outcome.reason = CompletionReason::kArguments;
      break;
    case absl::StatusCode::kNotFound:
      outcome.code = CompletionCode::kNotFound;
      break;
    case absl::StatusCode::kFailedPrecondition:
      outcome.code = CompletionCode::kFailedPrecondition;
      break;
    case absl::StatusCode::kResourceExhausted:
      outcome.code = CompletionCode::kResourceExhausted;
      outcome.reason = CompletionReason::kMemory;
      if (std::optional<base::MemoryNeed> need = base::MemoryNeedOf(status)) {
        outcome.limit = need->limit_bytes;
        outcome.actual = need->needed_bytes;
        outcome.index = static_cast<uint32_t>(std::min<uint64_t>(need->free_bytes >> 20, ~0u));
      }
      return outcome;
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kCancelled:
      outcome.code = CompletionCode::kDeadlineExceeded;
      outcome.reason = CompletionReason::kDeadline;
      break;
    case absl::StatusCode::kAborted:
      outcome.code = CompletionCode::kContextLost;
      break;
    case absl::StatusCode::kUnimplemented:
      outcome.code = CompletionCode::kUnimplemented;
      break;
    default:
      outcome.code = CompletionCode::kInternal;
      break;
  }
  if (std::optional<uint64_t> result = base::NumberOf(status, cuda::kResultNumber)) {
    outcome.reason = CompletionReason::kDevice;
    outcome.actual = *result;
  }
  return outcome;
}

}  // namespace fusiond::worker
