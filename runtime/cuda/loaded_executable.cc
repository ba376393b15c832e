#include "runtime/cuda/loaded_executable.h"

#include <cstring>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/check.h"
#include "runtime/base/status_macros.h"

namespace fusiond::cuda {
namespace {

using executable::Formula;
using executable::KernelArgument;
using executable::KernelStep;
using executable::MemsetStep;
using executable::TensorArg;

// Above this much dynamic shared memory a kernel must opt in. Source: CUDA C++ Programming Guide,
// "Shared Memory".
constexpr unsigned kDefaultSmemLimit = 48 << 10;
// Larger clusters are not portable and need a flag. Source: CUDA C++ Programming Guide, "Thread
// Block Clusters".
constexpr int64_t kPortableCluster = 8;

using Shapes = absl::InlinedVector<absl::Span<const int64_t>, 16>;

Shapes ShapesOf(absl::Span<const TensorArg> inputs) {
  Shapes shapes;
  for (const TensorArg& input : inputs) shapes.push_back(input.shape);
  return shapes;
}

bool SameExtents(absl::Span<const int64_t> extents, absl::Span<const TensorArg> inputs) {
  size_t at = 0;
  for (const TensorArg& input : inputs) {
    for (int64_t extent : input.shape) {
      if (at == extents.size() || extents[at] != extent) return false;
      ++at;
    }
  }
  return at == extents.size();
}

absl::StatusOr<unsigned> EvaluateExtent(const Formula& formula,
                                        absl::Span<const absl::Span<const int64_t>> shapes,
                                        int sm_count, absl::string_view what) {
  FUSIOND_ASSIGN_OR_RETURN(int64_t value, formula.Evaluate(shapes, sm_count));
  if (value > 0x7fffffff) {
    return absl::InvalidArgumentError(absl::StrCat(what, ": limit is 2147483647, is ", value));
  }
  return static_cast<unsigned>(value);
}

}  // namespace

LoadedExecutable::LoadedExecutable(const Driver& driver, executable::Executable executable,
                                   int sm_count)
    : driver_(driver), executable_(std::move(executable)), sm_count_(sm_count) {}

LoadedExecutable::~LoadedExecutable() {
  for (CUmodule module : modules_) driver_.ModuleUnload(module);
  for (const Plan* plan = plans_.load(std::memory_order_acquire); plan != nullptr;) {
    delete std::exchange(plan, plan->next);
  }
}

absl::StatusOr<std::unique_ptr<LoadedExecutable>> LoadedExecutable::Load(
    const Driver& driver, executable::Executable executable, int sm_count) {
  auto loaded = std::unique_ptr<LoadedExecutable>(
      new LoadedExecutable(driver, std::move(executable), sm_count));
  FUSIOND_RETURN_IF_ERROR(loaded->LoadImages());
  return loaded;
}

absl::Status LoadedExecutable::LoadImages() {
  for (const executable::Image& image : executable_.images) {
    CUmodule module;
    FUSIOND_RETURN_IF_ERROR(
        driver_.ToStatus(driver_.ModuleLoadData(&module, image.cubin.data()),
                         absl::StrCat("load image ", image.key.Hex().substr(0, 12))));
    modules_.push_back(module);
  }
  for (const executable::Step& step : executable_.steps) {
    CUfunction function = nullptr;
    if (const auto* kernel = std::get_if<KernelStep>(&step)) {
      FUSIOND_RETURN_IF_ERROR(driver_.ToStatus(
          driver_.ModuleGetFunction(&function, modules_[kernel->image], kernel->entry.c_str()),
          absl::StrCat("find kernel ", kernel->entry)));
      // Touching the function loads its code now, so that a first launch never waits for a busy
      // stream.
      int registers = 0;
      FUSIOND_RETURN_IF_ERROR(driver_.ToStatus(
          driver_.FuncGetAttribute(&registers, kFunctionRegisters, function), kernel->entry));
    } else if (std::holds_alternative<executable::HostEvaluateStep>(step)) {
      return absl::InvalidArgumentError("executable is for the CPU device, not for CUDA");
    }
    functions_.push_back(function);
  }
  return absl::OkStatus();
}

std::vector<KernelResources> LoadedExecutable::Resources() const {
  std::vector<KernelResources> all;
  for (size_t i = 0; i < functions_.size(); ++i) {
    if (functions_[i] == nullptr) continue;
    KernelResources resources;
    resources.entry = std::get<KernelStep>(executable_.steps[i]).entry;
    driver_.FuncGetAttribute(&resources.registers, kFunctionRegisters, functions_[i]);
    driver_.FuncGetAttribute(&resources.local_bytes, kFunctionLocalBytes, functions_[i]);
    all.push_back(std::move(resources));
  }
  return all;
}

absl::StatusOr<std::vector<executable::OutputShape>> LoadedExecutable::OutputShapes(
    absl::Span<const TensorArg> inputs) const {
  FUSIOND_RETURN_IF_ERROR(executable::CheckInputs(executable_, inputs));
  return executable::OutputShapes(executable_, inputs, sm_count_);
}

absl::StatusOr<int64_t> LoadedExecutable::WorkspaceBytes(absl::Span<const TensorArg> inputs) const {
  FUSIOND_RETURN_IF_ERROR(executable::CheckInputs(executable_, inputs));
  return executable::WorkspaceBytes(executable_, inputs, sm_count_);
}

// Only ever raises the limit: plans for other extents keep what they need.
absl::Status LoadedExecutable::RaiseSmemLimit(CUfunction function, unsigned bytes,
                                              const std::string& entry) const {
  if (bytes <= kDefaultSmemLimit) return absl::OkStatus();
  int limit = 0;
  FUSIOND_RETURN_IF_ERROR(
      driver_.ToStatus(driver_.FuncGetAttribute(&limit, kFunctionMaxDynamicSmem, function), entry));
  if (static_cast<unsigned>(limit) >= bytes) return absl::OkStatus();
  return driver_.ToStatus(
      driver_.FuncSetAttribute(function, kFunctionMaxDynamicSmem, static_cast<int>(bytes)),
      absl::StrCat(entry, ": ", bytes, " bytes of shared memory"));
}

absl::Status LoadedExecutable::PlanKernel(const KernelStep& step, CUfunction function,
                                          absl::Span<const absl::Span<const int64_t>> shapes,
                                          PlannedKernel& planned) const {
  unsigned extents[10];
  const Formula* formulas[] = {
      &step.grid[0],  &step.grid[1],    &step.grid[2],    &step.block[0],   &step.block[1],
      &step.block[2], &step.cluster[0], &step.cluster[1], &step.cluster[2], &step.dynamic_smem};
  for (int i = 0; i < 10; ++i) {
    FUSIOND_ASSIGN_OR_RETURN(extents[i],
                             EvaluateExtent(*formulas[i], shapes, sm_count_, step.entry));
  }
  CUlaunchConfig& config = planned.config;
  config.grid_x = extents[0], config.grid_y = extents[1], config.grid_z = extents[2];
  config.block_x = extents[3], config.block_y = extents[4], config.block_z = extents[5];
  config.smem_bytes = extents[9];
  const int64_t cluster = int64_t{extents[6]} * extents[7] * extents[8];
  if (cluster > 1) {
    CUlaunchAttribute& attribute = planned.attributes[config.attribute_count++];
    attribute.id = kLaunchAttributeClusterDimension;
    attribute.value.cluster = {extents[6], extents[7], extents[8]};
    if (cluster > kPortableCluster) {
      FUSIOND_RETURN_IF_ERROR(driver_.ToStatus(
          driver_.FuncSetAttribute(function, kFunctionNonPortableCluster, 1), step.entry));
    }
  }
  if (step.pdl) {
    CUlaunchAttribute& attribute = planned.attributes[config.attribute_count++];
    attribute.id = kLaunchAttributePdl;
    attribute.value.programmatic_stream_serialization_allowed = 1;
  }
  FUSIOND_RETURN_IF_ERROR(RaiseSmemLimit(function, config.smem_bytes, step.entry));
  for (const KernelArgument& argument : step.arguments) {
    FUSIOND_ASSIGN_OR_RETURN(int64_t number, argument.formula.Evaluate(shapes, sm_count_));
    planned.numbers.push_back(number);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<LoadedExecutable::Plan>> LoadedExecutable::MakePlan(
    absl::Span<const TensorArg> inputs) const {
  auto plan = std::make_unique<Plan>();
  for (const TensorArg& input : inputs) {
    plan->extents.insert(plan->extents.end(), input.shape.begin(), input.shape.end());
  }
  const Shapes shapes = ShapesOf(inputs);
  plan->kernels.resize(executable_.steps.size());
  plan->memsets.resize(executable_.steps.size());
  for (size_t i = 0; i < executable_.steps.size(); ++i) {
    if (const auto* kernel = std::get_if<KernelStep>(&executable_.steps[i])) {
      FUSIOND_RETURN_IF_ERROR(PlanKernel(*kernel, functions_[i], shapes, plan->kernels[i]));
    } else {
      const auto& memset = std::get<MemsetStep>(executable_.steps[i]);
      FUSIOND_ASSIGN_OR_RETURN(plan->memsets[i].offset, memset.offset.Evaluate(shapes, sm_count_));
      FUSIOND_ASSIGN_OR_RETURN(plan->memsets[i].bytes, memset.bytes.Evaluate(shapes, sm_count_));
    }
  }
  return plan;
}

absl::StatusOr<const LoadedExecutable::Plan*> LoadedExecutable::FindOrMakePlan(
    absl::Span<const TensorArg> inputs) const {
  // Pairs with the release below: a plan is complete before it can be found.
  const Plan* first = plans_.load(std::memory_order_acquire);
  for (const Plan* plan = first; plan != nullptr; plan = plan->next) {
    if (SameExtents(plan->extents, inputs)) return plan;
  }
  base::MutexLock lock(&mutex_);
  FUSIOND_ASSIGN_OR_RETURN(std::unique_ptr<Plan> plan, MakePlan(inputs));
  plan->next = plans_.load(std::memory_order_relaxed);  // only written under mutex_
  plans_.store(plan.get(), std::memory_order_release);
  return plan.release();
}

absl::Status LoadedExecutable::LaunchKernel(size_t step, const PlannedKernel& planned,
                                            CUstream stream, absl::Span<const TensorArg> inputs,
                                            absl::Span<const TensorArg> outputs,
                                            CUdeviceptr workspace) const {
  const KernelStep& kernel = std::get<KernelStep>(executable_.steps[step]);
  const size_t count = kernel.arguments.size();
  absl::InlinedVector<void*, 64> parameters(count);
  absl::InlinedVector<uint64_t, 64> values(count);  // what has no address of its own yet
  for (size_t i = 0; i < count; ++i) {
    const KernelArgument& argument = kernel.arguments[i];
    parameters[i] = &values[i];
    switch (argument.kind) {
      case KernelArgument::Kind::kInput:
        values[i] = inputs[argument.index].address;
        break;
      case KernelArgument::Kind::kOutput:
        values[i] = outputs[argument.index].address;
        break;
      case KernelArgument::Kind::kWorkspace:
        values[i] = workspace + static_cast<uint64_t>(planned.numbers[i]);
        break;
      case KernelArgument::Kind::kScalar:
        values[i] = executable::ConvertScalar(inputs[argument.index].bits, argument.dtype);
        break;
      case KernelArgument::Kind::kInt32:
      case KernelArgument::Kind::kInt64:
        values[i] =
            static_cast<uint64_t>(planned.numbers[i]);  // little-endian: the low bytes are the i32
        break;
    }
  }
  CUlaunchConfig config = planned.config;
  if (config.grid_x == 0 || config.grid_y == 0 || config.grid_z == 0) return absl::OkStatus();
  CUresult result;
  if (config.attribute_count == 0) {
    result = driver_.LaunchKernel(functions_[step], config.grid_x, config.grid_y, config.grid_z,
                                  config.block_x, config.block_y, config.block_z, config.smem_bytes,
                                  stream, parameters.data(), nullptr);
  } else {
    config.stream = stream;
    config.attributes =
        const_cast<CUlaunchAttribute*>(planned.attributes);  // only read by the driver
    result = driver_.LaunchKernelEx(&config, functions_[step], parameters.data(), nullptr);
  }
  return result == kSuccess ? absl::OkStatus() : driver_.ToStatus(result, kernel.entry);
}

absl::Status LoadedExecutable::Launch(CUstream stream, absl::Span<const TensorArg> inputs,
                                      absl::Span<const TensorArg> outputs,
                                      CUdeviceptr workspace) const {
  FUSIOND_RETURN_IF_ERROR(executable::CheckInputs(executable_, inputs));
  if (outputs.size() != executable_.outputs.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("outputs: expected ", executable_.outputs.size(), ", given ", outputs.size()));
  }
  FUSIOND_RETURN_IF_ERROR(executable::CheckGuards(executable_, inputs, outputs));
  FUSIOND_ASSIGN_OR_RETURN(const Plan* plan, FindOrMakePlan(inputs));
  for (size_t i = 0; i < executable_.steps.size(); ++i) {
    if (functions_[i] != nullptr) {
      FUSIOND_RETURN_IF_ERROR(
          LaunchKernel(i, plan->kernels[i], stream, inputs, outputs, workspace));
      continue;
    }
    const auto& memset = std::get<MemsetStep>(executable_.steps[i]);
    const CUdeviceptr base = memset.output ? outputs[*memset.output].address : workspace;
    const PlannedMemset& planned = plan->memsets[i];
    if (planned.bytes == 0) continue;
    FUSIOND_RETURN_IF_ERROR(driver_.ToStatus(
        driver_.MemsetD8Async(base + static_cast<uint64_t>(planned.offset), memset.value,
                              static_cast<size_t>(planned.bytes), stream),
        "memset"));
  }
  return absl::OkStatus();
}

}  // namespace fusiond::cuda
