// Any bytes as an executable, as guards, and as an executable that is launched: what is accepted
// survives being written and read again, guards and formulas can be asked anything, and a launch
// that is bound stays within its buffers.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/check.h"
#include "runtime/executable/binding.h"
#include "runtime/executable/serialise.h"
#include "runtime/worker/launch_binding.h"

namespace fusiond::executable {
namespace {

constexpr int64_t kExtents[] = {-1, 0, 1, 7, int64_t{1} << 40, INT64_MAX};
constexpr int kSmCount = 132;
constexpr uint64_t kBufferBytes = 1 << 20;
constexpr int kBufferShift = 32;  // buffer i begins at (i + 1) << 32

// Tensors of the executable's ranks.
std::vector<TensorArg> Inputs(const Executable& executable, int64_t extent) {
  std::vector<TensorArg> inputs;
  for (const InputSpec& spec : executable.inputs) {
    TensorArg input;
    input.address = 0x10000 * (inputs.size() + 1);
    input.shape.assign(spec.rank(), extent);
    input.strides.assign(spec.rank(), 1);
    inputs.push_back(input);
  }
  return inputs;
}

void CheckCall(const Executable& executable, int64_t extent) {
  const std::vector<TensorArg> inputs = Inputs(executable, extent);
  if (!CheckInputs(executable, inputs).ok()) return;
  CheckGuards(executable, inputs, {}).IgnoreError();
  WorkspaceBytes(executable, inputs, kSmCount).status().IgnoreError();
  const absl::StatusOr<std::vector<OutputShape>> shapes =
      OutputShapes(executable, inputs, kSmCount);
  if (!shapes.ok()) return;
  std::vector<TensorArg> outputs;
  for (const OutputShape& shape : *shapes) {
    FUSIOND_CHECK(shape.bytes >= 0);
    outputs.push_back({0x10008, shape.shape, shape.strides, 0});
  }
  CheckGuards(executable, inputs, outputs).IgnoreError();
}

void CheckWithinItsBuffer(const TensorArg& tensor, DType dtype) {
  unsigned __int128 end = 1;  // in elements
  for (size_t d = 0; d < tensor.shape.size(); ++d) {
    if (tensor.shape[d] == 0) return;
    end += static_cast<unsigned __int128>(tensor.shape[d] - 1) *
           static_cast<uint64_t>(tensor.strides[d]);
  }
  const uint64_t offset = tensor.address & ((uint64_t{1} << kBufferShift) - 1);
  FUSIOND_CHECK(tensor.address >> kBufferShift != 0);
  FUSIOND_CHECK(offset + end * static_cast<uint64_t>(base::ByteSize(dtype)) <= kBufferBytes);
}

void CheckLaunch(const Executable& executable, int64_t extent) {
  const worker::LaunchShape shape = worker::ShapeOfLaunch(executable);
  std::vector<worker::TensorMemory> buffers;
  while (buffers.size() < shape.tensors) {
    buffers.push_back({(buffers.size() + 1) << kBufferShift, kBufferBytes, 16, nullptr});
  }
  const std::vector<int64_t> extents(shape.extents, extent);
  worker::BoundLaunch bound;
  if (!worker::BindLaunch(executable, kSmCount, buffers, extents, bound).ok()) return;
  for (size_t i = 0; i < bound.inputs.size(); ++i) {
    const InputSpec& spec = executable.inputs[i];
    if (!spec.scalar) CheckWithinItsBuffer(bound.inputs[i], spec.dtype);
  }
  for (size_t i = 0; i < bound.outputs.size(); ++i) {
    CheckWithinItsBuffer(bound.outputs[i], executable.outputs[i].dtype);
  }
}

void CheckExecutable(absl::string_view bytes) {
  const absl::StatusOr<Executable> executable = Deserialise(bytes);
  if (!executable.ok()) return;
  const absl::StatusOr<Executable> back = Deserialise(Serialise(*executable));
  FUSIOND_CHECK(back.ok() && *back == *executable);
  for (const int64_t extent : kExtents) {
    CheckCall(*executable, extent);
    CheckLaunch(*executable, extent);
  }
}

void CheckGuardList(absl::string_view bytes) {
  const absl::StatusOr<std::vector<Guard>> guards = DeserialiseGuards(bytes);
  if (!guards.ok()) return;
  const absl::StatusOr<std::vector<Guard>> back = DeserialiseGuards(SerialiseGuards(*guards));
  FUSIOND_CHECK(back.ok() && *back == *guards);
  TensorArg input;
  input.address = 8;
  input.shape = {4, 16};
  input.strides = {16, 1};
  CheckInputGuards(*guards, {input, TensorArg()}).IgnoreError();
}

}  // namespace
}  // namespace fusiond::executable

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  fusiond::executable::CheckExecutable(bytes);
  fusiond::executable::CheckGuardList(bytes);
  return 0;
}
