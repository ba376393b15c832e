#include "runtime/executable/binding.h"

#include <bit>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace fusiond::executable {
namespace {

// Of any tensor: its bytes can be counted in 64 bits.
constexpr int64_t kMaxLastElement = int64_t{1} << 58;

using Shapes = absl::InlinedVector<absl::Span<const int64_t>, 16>;

Shapes ShapesOf(absl::Span<const TensorArg> inputs) {
  Shapes shapes;
  for (const TensorArg& input : inputs) shapes.push_back(input.shape);
  return shapes;
}

absl::Status Violation(absl::string_view what, uint32_t index, absl::string_view rule,
                       int64_t expected, int64_t actual) {
  return absl::FailedPreconditionError(absl::StrCat("guard: ", what, " ", index, ": ", rule,
                                                    ": executable needs ", expected, ", given ",
                                                    actual));
}

// Bytes [begin, end) that a tensor's elements touch.
std::pair<uint64_t, uint64_t> Footprint(const TensorArg& tensor, int64_t element_bytes) {
  uint64_t last = 0;
  for (size_t i = 0; i < tensor.shape.size(); ++i) {
    if (tensor.shape[i] == 0) return {tensor.address, tensor.address};
    last += static_cast<uint64_t>(tensor.shape[i] - 1) * static_cast<uint64_t>(tensor.strides[i]);
  }
  return {tensor.address, tensor.address + (last + 1) * static_cast<uint64_t>(element_bytes)};
}

absl::Status CheckDimGuard(const Guard& guard, const TensorArg& input) {
  if (guard.dim >= input.shape.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("guard: input ", guard.input, " has no dim ", guard.dim));
  }
  const int64_t extent = input.shape[guard.dim], stride = input.strides[guard.dim];
  const bool stride_matters = extent > 1;
  switch (guard.kind) {
    case Guard::Kind::kExtentEquals:
      if (extent == guard.value) return absl::OkStatus();
      return Violation("input", guard.input, absl::StrCat("extent of dim ", guard.dim), guard.value,
                       extent);
    case Guard::Kind::kExtentDivisible:
      if (guard.value > 0 && extent % guard.value == 0) return absl::OkStatus();
      return Violation("input", guard.input,
                       absl::StrCat("extent of dim ", guard.dim, " a multiple"), guard.value,
                       extent);
    case Guard::Kind::kExtentAtMost:
      if (extent <= guard.value) return absl::OkStatus();
      return Violation("input", guard.input, absl::StrCat("extent of dim ", guard.dim, " at most"),
                       guard.value, extent);
    case Guard::Kind::kStrideEquals:
      if (!stride_matters || stride == guard.value) return absl::OkStatus();
      return Violation("input", guard.input, absl::StrCat("stride of dim ", guard.dim), guard.value,
                       stride);
    default:
      if (!stride_matters || (guard.value > 0 && stride % guard.value == 0))
        return absl::OkStatus();
      return Violation("input", guard.input,
                       absl::StrCat("stride of dim ", guard.dim, " a multiple"), guard.value,
                       stride);
  }
}

absl::Status CheckAligned(const Guard& guard, absl::Span<const TensorArg> inputs,
                          absl::Span<const TensorArg> outputs) {
  const bool is_output = guard.output.has_value();
  const uint32_t index = is_output ? *guard.output : guard.input;
  if (is_output && outputs.empty()) return absl::OkStatus();
  absl::Span<const TensorArg> side = is_output ? outputs : inputs;
  if (index >= side.size()) return absl::InvalidArgumentError("guard: index out of range");
  const uint64_t rest =
      guard.value > 0 ? side[index].address % static_cast<uint64_t>(guard.value) : 0;
  if (rest == 0) return absl::OkStatus();
  return Violation(is_output ? "output" : "input", index, "alignment of the address, bytes",
                   guard.value, static_cast<int64_t>(side[index].address & -side[index].address));
}

absl::Status CheckNoOverlap(const Executable& executable, const Guard& guard,
                            absl::Span<const TensorArg> inputs,
                            absl::Span<const TensorArg> outputs) {
  if (outputs.empty()) return absl::OkStatus();
  if (!guard.output || *guard.output >= outputs.size() || guard.input >= inputs.size()) {
    return absl::InvalidArgumentError("guard: index out of range");
  }
  const OutputSpec& spec = executable.outputs[*guard.output];
  if (spec.alias_input == guard.input || executable.inputs[guard.input].scalar)
    return absl::OkStatus();
  auto [ob, oe] = Footprint(outputs[*guard.output], ByteSize(spec.dtype));
  auto [ib, ie] = Footprint(inputs[guard.input], ByteSize(executable.inputs[guard.input].dtype));
  if (oe <= ib || ie <= ob) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("guard: output ", *guard.output, " overlaps input ", guard.input));
}

}  // namespace

absl::Status CheckInputs(const Executable& executable, absl::Span<const TensorArg> inputs) {
  if (inputs.size() != executable.inputs.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("inputs: expected ", executable.inputs.size(), ", given ", inputs.size()));
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TensorArg& input = inputs[i];
    const uint32_t rank = executable.inputs[i].rank();
    if (input.shape.size() != rank || input.strides.size() != rank) {
      return absl::InvalidArgumentError(
          absl::StrCat("input ", i, ": expected rank ", rank, ", given ", input.shape.size(),
                       " extents and ", input.strides.size(), " strides"));
    }
    int64_t last = 0;
    for (uint32_t d = 0; d < rank; ++d) {
      int64_t span;
      if (input.shape[d] < 0 || input.strides[d] < 0 ||
          __builtin_mul_overflow(std::max<int64_t>(input.shape[d] - 1, 0), input.strides[d],
                                 &span) ||
          __builtin_add_overflow(last, span, &last) || last > kMaxLastElement) {
        return absl::InvalidArgumentError(absl::StrCat(
            "input ", i, ": dim ", d, " has extent ", input.shape[d], " and stride ",
            input.strides[d], "; neither may be negative, nor the tensor exceed 2^58 elements"));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status CheckGuard(const Executable& executable, const Guard& guard,
                        absl::Span<const TensorArg> inputs, absl::Span<const TensorArg> outputs) {
  if (guard.kind == Guard::Kind::kAligned) return CheckAligned(guard, inputs, outputs);
  if (guard.kind == Guard::Kind::kNoOverlap)
    return CheckNoOverlap(executable, guard, inputs, outputs);
  if (guard.input >= inputs.size()) return absl::InvalidArgumentError("guard: index out of range");
  return CheckDimGuard(guard, inputs[guard.input]);
}

absl::Status CheckInputGuards(absl::Span<const Guard> guards, absl::Span<const TensorArg> inputs) {
  static const Executable
      no_outputs;  // with no outputs given, nothing of the executable is looked at
  for (const Guard& guard : guards)
    FUSIOND_RETURN_IF_ERROR(CheckGuard(no_outputs, guard, inputs, {}));
  return absl::OkStatus();
}

absl::Status CheckGuards(const Executable& executable, absl::Span<const TensorArg> inputs,
                         absl::Span<const TensorArg> outputs) {
  for (const Guard& guard : executable.guards) {
    FUSIOND_RETURN_IF_ERROR(CheckGuard(executable, guard, inputs, outputs));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<OutputShape>> OutputShapes(const Executable& executable,
                                                      absl::Span<const TensorArg> inputs,
                                                      int sm_count) {
  const Shapes shapes = ShapesOf(inputs);
  std::vector<OutputShape> result;
  for (const OutputSpec& spec : executable.outputs) {
    OutputShape output;
    int64_t last = 0;
    bool empty = false;
    for (size_t d = 0; d < spec.shape.size(); ++d) {
      FUSIOND_ASSIGN_OR_RETURN(int64_t extent, spec.shape[d].Evaluate(shapes, sm_count));
      FUSIOND_ASSIGN_OR_RETURN(int64_t stride, spec.strides[d].Evaluate(shapes, sm_count));
      output.shape.push_back(extent);
      output.strides.push_back(stride);
      empty = empty || extent == 0;
      int64_t span;
      if (__builtin_mul_overflow(std::max<int64_t>(extent - 1, 0), stride, &span) ||
          __builtin_add_overflow(last, span, &last) || last > kMaxLastElement) {
        return absl::InvalidArgumentError(
            absl::StrCat("output ", result.size(), ": dim ", d, " has extent ", extent,
                         " and stride ", stride, "; a tensor may not exceed 2^58 elements"));
      }
    }
    if (!empty) output.bytes = (last + 1) * ByteSize(spec.dtype);
    result.push_back(std::move(output));
  }
  return result;
}

absl::StatusOr<int64_t> WorkspaceBytes(const Executable& executable,
                                       absl::Span<const TensorArg> inputs, int sm_count) {
  return executable.workspace_bytes.Evaluate(ShapesOf(inputs), sm_count);
}

uint64_t ConvertScalar(uint64_t bits, base::DType to) {
  switch (to) {
    case base::DType::kFloat:
      return std::bit_cast<uint32_t>(static_cast<float>(std::bit_cast<double>(bits)));
    case base::DType::kBool:
      return bits != 0;
    case base::DType::kInt32:
      return static_cast<uint32_t>(bits);
    default:
      return bits;
  }
}

}  // namespace fusiond::executable
