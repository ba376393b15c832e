#include "tests/emulation/run_executable.h"

#include <variant>

#include "absl/strings/str_cat.h"
#include "compiler/device/device_text.h"
#include "runtime/base/status_macros.h"

namespace fusiond::emulation {
namespace {

using executable::Executable;
using executable::Formula;
using executable::KernelArgument;
using executable::KernelStep;
using executable::MemsetStep;
using executable::TensorArg;

// A memset step as a kernel.
std::string FillText() {
  return device::Prelude({"types.cuh"}) + R"(
extern "C" __global__ void __launch_bounds__(32) fill(u8* p, u8 value, u64 bytes) {
  for (u64 i = fd_thread(); i < bytes; i += 32) p[i] = value;
}
)";
}

// Turns the steps into launches. Tensors: the inputs, then the outputs, then the workspace.
class ChainBuilder {
 public:
  ChainBuilder(const Executable& executable, const std::vector<std::string>& texts,
               const std::vector<ExecutableInput>& inputs, const RunLayout& layout)
      : executable_(executable), texts_(texts), layout_(layout) {
    for (const ExecutableInput& input : inputs) {
      args_.push_back(input.arg);
      tensors_.push_back({input.bytes, input.alignment});
    }
    for (const TensorArg& arg : args_) shapes_.push_back(arg.shape);
  }

  absl::Status Build() {
    FUSIOND_RETURN_IF_ERROR(executable::CheckInputs(executable_, args_));
    FUSIOND_RETURN_IF_ERROR(AddOutputs());
    FUSIOND_RETURN_IF_ERROR(CheckGuards());
    FUSIOND_ASSIGN_OR_RETURN(int64_t workspace,
                             executable::WorkspaceBytes(executable_, args_, layout_.sm_count));
    workspace_ = static_cast<int>(tensors_.size());
    tensors_.push_back(Poison(workspace, executable_.workspace_alignment));
    for (const executable::Step& step : executable_.steps) {
      if (const auto* kernel = std::get_if<KernelStep>(&step)) {
        FUSIOND_RETURN_IF_ERROR(AddKernel(*kernel));
      } else if (const auto* memset = std::get_if<MemsetStep>(&step)) {
        FUSIOND_RETURN_IF_ERROR(AddMemset(*memset));
      } else {
        return absl::UnimplementedError("a HostEvaluate step has no kernel");
      }
    }
    return absl::OkStatus();
  }

  const std::vector<KernelCall>& chain() const { return chain_; }
  const std::vector<Tensor>& tensors() const { return tensors_; }
  int output_tensor(size_t output) const { return output_tensors_[output]; }

 private:
  absl::Status AddOutputs() {
    FUSIOND_ASSIGN_OR_RETURN(auto shapes,
                             executable::OutputShapes(executable_, args_, layout_.sm_count));
    for (size_t i = 0; i < shapes.size(); i++) {
      if (executable_.outputs[i].alias_input) {
        output_tensors_.push_back(static_cast<int>(*executable_.outputs[i].alias_input));
        continue;
      }
      output_tensors_.push_back(static_cast<int>(tensors_.size()));
      tensors_.push_back(Poison(shapes[i].bytes, layout_.output_alignment));
    }
    output_shapes_ = std::move(shapes);
    return absl::OkStatus();
  }

  // On made-up addresses, far apart, with the alignments that the tensors will have.
  absl::Status CheckGuards() const {
    auto address = [&](int tensor) {
      return ((static_cast<uint64_t>(tensor) + 1) << 40) + tensors_[tensor].alignment;
    };
    std::vector<TensorArg> inputs = args_, outputs;
    for (size_t i = 0; i < inputs.size(); i++) inputs[i].address = address(static_cast<int>(i));
    for (size_t i = 0; i < output_tensors_.size(); i++) {
      outputs.push_back(
          {address(output_tensors_[i]), output_shapes_[i].shape, output_shapes_[i].strides, 0});
    }
    return executable::CheckGuards(executable_, inputs, outputs);
  }

  absl::StatusOr<int64_t> Evaluate(const Formula& formula) const {
    return formula.Evaluate(shapes_, layout_.sm_count);
  }

  absl::StatusOr<Argument> Convert(const KernelArgument& argument) const {
    FUSIOND_ASSIGN_OR_RETURN(int64_t number, Evaluate(argument.formula));
    switch (argument.kind) {
      case KernelArgument::Kind::kInput:
        return In(static_cast<int>(argument.index));
      case KernelArgument::Kind::kOutput:
        return In(output_tensors_[argument.index]);
      case KernelArgument::Kind::kWorkspace:
        return In(workspace_, static_cast<uint64_t>(number));
      case KernelArgument::Kind::kScalar:
        return Value(executable::ConvertScalar(args_[argument.index].bits, argument.dtype));
      case KernelArgument::Kind::kInt32:
        return Value(static_cast<int32_t>(number));
      case KernelArgument::Kind::kInt64:
        return Value(number);
    }
    return absl::InternalError("an unknown kind of argument");
  }

  absl::Status AddKernel(const KernelStep& step) {
    if (step.image >= texts_.size())
      return absl::InvalidArgumentError(absl::StrCat(step.entry, ": no text for its image"));
    int64_t extents[10];
    const Formula* formulas[] = {
        &step.grid[0],  &step.grid[1],    &step.grid[2],    &step.block[0],   &step.block[1],
        &step.block[2], &step.cluster[0], &step.cluster[1], &step.cluster[2], &step.dynamic_smem};
    for (int i = 0; i < 10; i++) {
      FUSIOND_ASSIGN_OR_RETURN(extents[i], Evaluate(*formulas[i]));
    }
    if (extents[2] > 1 || extents[4] != 1 || extents[5] != 1 || extents[7] != 1 || extents[8] != 1)
      return absl::InvalidArgumentError(
          absl::StrCat(step.entry, ": CTAs and clusters have one dim, grids up to two"));
    if (extents[0] * extents[1] * extents[2] == 0) return absl::OkStatus();
    Launch launch;
    launch.entry = step.entry;
    launch.grid_x = extents[0];
    launch.grid_y = extents[1];
    launch.threads = extents[3];
    launch.cluster = extents[6];
    launch.smem_bytes = extents[9];
    launch.dependent = step.pdl;
    for (const KernelArgument& argument : step.arguments) {
      FUSIOND_ASSIGN_OR_RETURN(launch.arguments.emplace_back(), Convert(argument));
    }
    chain_.push_back({texts_[step.image], launch});
    return absl::OkStatus();
  }

  absl::Status AddMemset(const MemsetStep& step) {
    FUSIOND_ASSIGN_OR_RETURN(int64_t offset, Evaluate(step.offset));
    FUSIOND_ASSIGN_OR_RETURN(int64_t bytes, Evaluate(step.bytes));
    if (bytes == 0) return absl::OkStatus();
    Launch launch;
    launch.entry = "fill";
    launch.arguments = {In(step.output ? output_tensors_[*step.output] : workspace_, offset),
                        Value(step.value), Value(static_cast<uint64_t>(bytes))};
    chain_.push_back({FillText(), launch});
    return absl::OkStatus();
  }

  const Executable& executable_;
  const std::vector<std::string>& texts_;
  const RunLayout& layout_;
  std::vector<TensorArg> args_;
  std::vector<absl::Span<const int64_t>> shapes_;
  std::vector<executable::OutputShape> output_shapes_;
  std::vector<int> output_tensors_;
  int workspace_ = 0;
  std::vector<Tensor> tensors_;
  std::vector<KernelCall> chain_;
};

}  // namespace

absl::StatusOr<executable::DeviceInfo> EmulatedDevice(absl::string_view arch) {
  FUSIOND_ASSIGN_OR_RETURN(executable::DeviceInfo device, executable::ProfileByName(arch));
  device.profile = "emulation";
  device.sm_count = 3;
  return device;
}

absl::StatusOr<std::vector<std::string>> RunExecutable(const Executable& executable,
                                                       const std::vector<std::string>& texts,
                                                       const std::vector<ExecutableInput>& inputs,
                                                       const KernelRunner& runner,
                                                       const RunLayout& layout) {
  ChainBuilder builder(executable, texts, inputs, layout);
  FUSIOND_RETURN_IF_ERROR(builder.Build());
  std::vector<std::string> tensors;
  for (const Tensor& tensor : builder.tensors()) tensors.push_back(tensor.bytes);
  if (!builder.chain().empty()) {
    FUSIOND_ASSIGN_OR_RETURN(tensors, runner(builder.chain(), builder.tensors()));
  }
  std::vector<std::string> outputs;
  for (size_t i = 0; i < executable.outputs.size(); i++)
    outputs.push_back(tensors[builder.output_tensor(i)]);
  return outputs;
}

}  // namespace fusiond::emulation
