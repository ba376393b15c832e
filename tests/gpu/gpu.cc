#include "tests/gpu/gpu.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace fusiond::testing {

absl::StatusOr<std::unique_ptr<Gpu>> Gpu::Open() {
  std::unique_ptr<Gpu> gpu(new Gpu);
  FUSIOND_ASSIGN_OR_RETURN(gpu->driver_, cuda::Driver::Open());
  FUSIOND_ASSIGN_OR_RETURN(std::vector<cuda::ProbedDevice> devices, cuda::Probe(*gpu->driver_));
  auto usable = std::find_if(devices.begin(), devices.end(),
                             [](const cuda::ProbedDevice& d) { return d.problem.empty(); });
  if (usable == devices.end()) {
    return absl::NotFoundError(
        devices.empty() ? "no GPU" : absl::StrCat("no usable GPU: ", devices[0].problem));
  }
  gpu->device_ = *std::move(usable);
  cuda::CUcontext context;
  FUSIOND_RETURN_IF_ERROR(gpu->ToStatus(
      gpu->driver_->PrimaryCtxRetain(&context, gpu->device_.device), "make a context"));
  gpu->has_context_ = true;
  FUSIOND_RETURN_IF_ERROR(gpu->ToStatus(gpu->driver_->CtxSetCurrent(context), "enter the context"));
  FUSIOND_RETURN_IF_ERROR(gpu->ToStatus(
      gpu->driver_->StreamCreate(&gpu->stream_, cuda::kStreamNonBlocking), "make a stream"));
  return gpu;
}

Gpu::~Gpu() {
  if (stream_ != nullptr) driver_->StreamDestroy(stream_);
  if (has_context_) driver_->PrimaryCtxRelease(device_.device);
}

absl::StatusOr<DeviceMemory> Gpu::Allocate(uint64_t bytes) {
  cuda::CUdeviceptr address = 0;
  FUSIOND_RETURN_IF_ERROR(ToStatus(driver_->MemAlloc(&address, std::max<uint64_t>(bytes, 1)),
                                   absl::StrCat("allocate ", bytes, " bytes")));
  return DeviceMemory(driver_, address);
}

absl::Status Gpu::Write(cuda::CUdeviceptr to, absl::string_view bytes) {
  if (bytes.empty()) return absl::OkStatus();
  FUSIOND_RETURN_IF_ERROR(ToStatus(
      driver_->MemcpyHtoDAsync(to, bytes.data(), bytes.size(), stream_), "copy to the device"));
  return Synchronize();
}

absl::Status Gpu::Read(cuda::CUdeviceptr from, char* to, uint64_t bytes) {
  if (bytes == 0) return absl::OkStatus();
  FUSIOND_RETURN_IF_ERROR(
      ToStatus(driver_->MemcpyDtoHAsync(to, from, bytes, stream_), "copy from the device"));
  return Synchronize();
}

absl::Status Gpu::Fill(cuda::CUdeviceptr to, uint8_t value, uint64_t bytes) {
  if (bytes == 0) return absl::OkStatus();
  FUSIOND_RETURN_IF_ERROR(
      ToStatus(driver_->MemsetD8Async(to, value, bytes, stream_), "fill device memory"));
  return Synchronize();
}

absl::Status Gpu::Synchronize() {
  return ToStatus(driver_->StreamSynchronize(stream_), "wait for the stream");
}

}  // namespace fusiond::testing
