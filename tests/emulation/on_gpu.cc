#include "tests/emulation/on_gpu.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/cuda/probe.h"
#include "tests/support/nvrtc_for_tests.h"

namespace fusiond::emulation {

absl::StatusOr<std::unique_ptr<Gpu>> Gpu::Open() {
  std::unique_ptr<Gpu> gpu(new Gpu);
  FUSIOND_ASSIGN_OR_RETURN(gpu->driver_, cuda::Driver::Open());
  FUSIOND_ASSIGN_OR_RETURN(gpu->nvrtc_, nvrtc::Nvrtc::Open(testing::NvrtcLocationForTests()));
  FUSIOND_ASSIGN_OR_RETURN(auto devices, cuda::Probe(*gpu->driver_));
  for (const cuda::ProbedDevice& device : devices) {
    if (!device.problem.empty()) continue;
    gpu->arch_ = device.info.arch;
    gpu->device_ = device.device;
    cuda::CUcontext context;
    FUSIOND_RETURN_IF_ERROR(gpu->driver_->ToStatus(
        gpu->driver_->PrimaryCtxRetain(&context, device.device), "make a context"));
    gpu->has_context_ = true;
    FUSIOND_RETURN_IF_ERROR(
        gpu->driver_->ToStatus(gpu->driver_->CtxSetCurrent(context), "enter the context"));
    return gpu;
  }
  return absl::NotFoundError("no usable GPU");
}

Gpu::~Gpu() {
  if (has_context_) driver_->PrimaryCtxRelease(device_);
}

absl::StatusOr<cuda::CUmodule> Gpu::Load(const std::string& text) {
  FUSIOND_ASSIGN_OR_RETURN(nvrtc::CompileOutput output,
                           nvrtc_->Compile({text, "kernel.cu", arch_, {"--std=c++17"}}));
  cuda::CUmodule module;
  FUSIOND_RETURN_IF_ERROR(
      driver_->ToStatus(driver_->ModuleLoadData(&module, output.cubin.data()), "load a cubin"));
  return module;
}

absl::Status Gpu::Launch(const KernelCall& call, cuda::CUmodule module,
                         const std::vector<cuda::CUdeviceptr>& addresses) {
  const emulation::Launch& launch = call.launch;
  cuda::CUfunction function;
  FUSIOND_RETURN_IF_ERROR(driver_->ToStatus(
      driver_->ModuleGetFunction(&function, module, launch.entry.c_str()), launch.entry));
  FUSIOND_RETURN_IF_ERROR(
      driver_->ToStatus(driver_->FuncSetAttribute(function, cuda::kFunctionMaxDynamicSmem,
                                                  static_cast<int>(launch.smem_bytes)),
                        "shared memory"));
  std::vector<cuda::CUdeviceptr> pointers(launch.arguments.size());
  std::vector<void*> arguments;
  for (size_t i = 0; i < launch.arguments.size(); i++) {
    const Argument& argument = launch.arguments[i];
    if (argument.tensor >= 0) {
      pointers[i] = addresses[argument.tensor] + argument.offset;
      arguments.push_back(&pointers[i]);
    } else {
      arguments.push_back(const_cast<char*>(argument.value.data()));
    }
  }
  cuda::CUlaunchAttribute attributes[2] = {};
  attributes[0].id = cuda::kLaunchAttributeClusterDimension;
  attributes[0].value.cluster = {static_cast<unsigned>(launch.cluster), 1, 1};
  attributes[1].id = cuda::kLaunchAttributePdl;
  attributes[1].value.programmatic_stream_serialization_allowed = 1;
  // A plain launch names no attribute; archs before sm_90 know none of these.
  const unsigned first = launch.cluster > 1 ? 0 : 1, end = launch.dependent ? 2 : 1;
  cuda::CUlaunchConfig config = {static_cast<unsigned>(launch.grid_x),
                                 static_cast<unsigned>(launch.grid_y),
                                 1,
                                 static_cast<unsigned>(launch.threads),
                                 1,
                                 1,
                                 static_cast<unsigned>(launch.smem_bytes),
                                 nullptr,
                                 attributes + first,
                                 end - first};
  return driver_->ToStatus(driver_->LaunchKernelEx(&config, function, arguments.data(), nullptr),
                           launch.entry);
}

absl::StatusOr<std::vector<std::string>> Gpu::Run(const std::vector<KernelCall>& chain,
                                                  const std::vector<Tensor>& tensors) {
  std::map<std::string, cuda::CUmodule> modules;
  for (const KernelCall& call : chain) {
    if (modules.count(call.text) != 0) continue;
    FUSIOND_ASSIGN_OR_RETURN(modules[call.text], Load(call.text));
  }
  std::vector<cuda::CUdeviceptr> addresses;
  for (const Tensor& tensor : tensors) {
    cuda::CUdeviceptr address = 0;
    FUSIOND_RETURN_IF_ERROR(driver_->ToStatus(driver_->MemAlloc(&address, tensor.bytes.size() + 1),
                                              "allocate a tensor"));
    addresses.push_back(address);
    FUSIOND_RETURN_IF_ERROR(driver_->ToStatus(
        driver_->MemcpyHtoDAsync(address, tensor.bytes.data(), tensor.bytes.size(), nullptr),
        "write a tensor"));
  }
  for (const KernelCall& call : chain)
    FUSIOND_RETURN_IF_ERROR(Launch(call, modules[call.text], addresses));
  std::vector<std::string> results;
  for (size_t i = 0; i < tensors.size(); i++) {
    std::string& result = results.emplace_back(tensors[i].bytes.size(), '\0');
    FUSIOND_RETURN_IF_ERROR(driver_->ToStatus(
        driver_->MemcpyDtoHAsync(result.data(), addresses[i], result.size(), nullptr),
        "read a tensor"));
  }
  FUSIOND_RETURN_IF_ERROR(driver_->ToStatus(driver_->StreamSynchronize(nullptr), "run the chain"));
  for (cuda::CUdeviceptr address : addresses) driver_->MemFree(address);
  for (auto& [text, module] : modules) driver_->ModuleUnload(module);
  return results;
}

}  // namespace fusiond::emulation
