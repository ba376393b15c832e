#include "client/cc/local_context.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace fusiond::client {

using cuda::CUdeviceptr;

absl::StatusOr<std::unique_ptr<LocalContext>> LocalContext::Open(const cuda::Driver& driver,
                                                                 const std::string& arch) {
  FUSIOND_ASSIGN_OR_RETURN(std::vector<cuda::ProbedDevice> devices, cuda::Probe(driver));
  auto device =
      std::find_if(devices.begin(), devices.end(), [&](const cuda::ProbedDevice& candidate) {
        return candidate.problem.empty() && candidate.info.arch == arch;
      });
  if (device == devices.end()) {
    return absl::FailedPreconditionError(absl::StrCat("no visible GPU is of arch ", arch));
  }
  std::unique_ptr<LocalContext> context(new LocalContext(driver, *std::move(device)));
  FUSIOND_RETURN_IF_ERROR(context->Retain());
  return context;
}

absl::Status LocalContext::Retain() {
  cuda::CUcontext context;
  FUSIOND_RETURN_IF_ERROR(driver_.ToStatus(driver_.PrimaryCtxRetain(&context, device_.device),
                                           "cuDevicePrimaryCtxRetain"));
  retained_ = true;
  FUSIOND_RETURN_IF_ERROR(driver_.ToStatus(driver_.CtxSetCurrent(context), "cuCtxSetCurrent"));
  for (cuda::CUevent& event : events_) {
    FUSIOND_RETURN_IF_ERROR(
        driver_.ToStatus(driver_.EventCreate(&event, cuda::kEventDefault), "cuEventCreate"));
  }
  return driver_.ToStatus(driver_.StreamCreate(&stream_, cuda::kStreamNonBlocking),
                          "cuStreamCreate");
}

LocalContext::~LocalContext() {
  for (CUdeviceptr address : allocated_) driver_.MemFree(address);
  for (cuda::CUevent event : events_) {
    if (event != nullptr) driver_.EventDestroy(event);
  }
  if (stream_ != nullptr) driver_.StreamDestroy(stream_);
  if (retained_) driver_.PrimaryCtxRelease(device_.device);
}

absl::StatusOr<CUdeviceptr> LocalContext::Allocate(uint64_t bytes) {
  CUdeviceptr address;
  FUSIOND_RETURN_IF_ERROR(driver_.ToStatus(driver_.MemAlloc(&address, std::max<uint64_t>(bytes, 1)),
                                           absl::StrCat("allocate ", bytes)));
  allocated_.push_back(address);
  return address;
}

absl::StatusOr<CUdeviceptr> LocalContext::Upload(absl::string_view data) {
  FUSIOND_ASSIGN_OR_RETURN(CUdeviceptr address, Allocate(data.size()));
  if (data.empty()) return address;
  FUSIOND_RETURN_IF_ERROR(driver_.ToStatus(
      driver_.MemcpyHtoDAsync(address, data.data(), data.size(), stream_), "copy in"));
  // `data` is the caller's again on return.
  FUSIOND_RETURN_IF_ERROR(driver_.ToStatus(driver_.StreamSynchronize(stream_), "copy in"));
  return address;
}

absl::Status LocalContext::Download(CUdeviceptr from, uint64_t bytes, char* to) {
  if (bytes == 0) return absl::OkStatus();
  FUSIOND_RETURN_IF_ERROR(
      driver_.ToStatus(driver_.MemcpyDtoHAsync(to, from, bytes, stream_), "copy out"));
  return driver_.ToStatus(driver_.StreamSynchronize(stream_), "copy out");
}

absl::StatusOr<absl::Duration> LocalContext::Launch(const LocalExecutable& loaded,
                                                    absl::Span<const executable::TensorArg> inputs,
                                                    absl::Span<const executable::TensorArg> outputs,
                                                    CUdeviceptr workspace) {
  FUSIOND_RETURN_IF_ERROR(
      driver_.ToStatus(driver_.EventRecord(events_[0], stream_), "cuEventRecord"));
  FUSIOND_RETURN_IF_ERROR(loaded.Launch(stream_, inputs, outputs, workspace));
  FUSIOND_RETURN_IF_ERROR(
      driver_.ToStatus(driver_.EventRecord(events_[1], stream_), "cuEventRecord"));
  FUSIOND_RETURN_IF_ERROR(driver_.ToStatus(driver_.StreamSynchronize(stream_), "launch"));
  float ms = 0;
  FUSIOND_RETURN_IF_ERROR(driver_.ToStatus(driver_.EventElapsedTime(&ms, events_[0], events_[1]),
                                           "cuEventElapsedTime"));
  return absl::Milliseconds(ms);
}

}  // namespace fusiond::client
