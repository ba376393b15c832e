#include "client/cli/local_run.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cc/local_executable.h"
#include "runtime/base/status_macros.h"
#include "runtime/cuda/driver.h"
#include "runtime/cuda/probe.h"

namespace fusiond::cli {
namespace {

using cuda::CUdeviceptr;
using cuda::Driver;

// The process's primary context, current on this thread, with what was allocated in it.
class LocalContext {
 public:
  explicit LocalContext(const Driver& driver) : driver_(driver) {}
  ~LocalContext() {
    for (CUdeviceptr address : allocated_) driver_.MemFree(address);
    for (cuda::CUevent event : events_) driver_.EventDestroy(event);
    if (stream_ != nullptr) driver_.StreamDestroy(stream_);
    if (retained_) driver_.PrimaryCtxRelease(device_);
  }

  absl::Status Open(cuda::CUdevice device) {
    device_ = device;
    cuda::CUcontext context;
    FUSIOND_RETURN_IF_ERROR(
        driver_.ToStatus(driver_.PrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain"));
    retained_ = true;
    FUSIOND_RETURN_IF_ERROR(driver_.ToStatus(driver_.CtxSetCurrent(context), "cuCtxSetCurrent"));
    for (cuda::CUevent& event : events_) {
      FUSIOND_RETURN_IF_ERROR(
          driver_.ToStatus(driver_.EventCreate(&event, cuda::kEventDefault), "cuEventCreate"));
    }
    return driver_.ToStatus(driver_.StreamCreate(&stream_, cuda::kStreamNonBlocking),
                            "cuStreamCreate");
  }

  absl::StatusOr<CUdeviceptr> Allocate(uint64_t bytes) {
    CUdeviceptr address;
    FUSIOND_RETURN_IF_ERROR(
        driver_.ToStatus(driver_.MemAlloc(&address, std::max<uint64_t>(bytes, 1)),
                         absl::StrCat("allocate ", bytes, " bytes")));
    allocated_.push_back(address);
    return address;
  }

  absl::StatusOr<CUdeviceptr> Upload(const std::string& data) {
    FUSIOND_ASSIGN_OR_RETURN(CUdeviceptr address, Allocate(data.size()));
    if (!data.empty()) {
      FUSIOND_RETURN_IF_ERROR(driver_.ToStatus(
          driver_.MemcpyHtoDAsync(address, data.data(), data.size(), stream_), "copy in"));
    }
    return address;
  }

  absl::Status Download(CUdeviceptr address, std::string& data) {
    if (data.empty()) return absl::OkStatus();
    FUSIOND_RETURN_IF_ERROR(driver_.ToStatus(
        driver_.MemcpyDtoHAsync(data.data(), address, data.size(), stream_), "copy out"));
    return driver_.ToStatus(driver_.StreamSynchronize(stream_), "copy out");
  }

  absl::StatusOr<absl::Duration> Time(const client::LocalExecutable& loaded,
                                      const std::vector<executable::TensorArg>& inputs,
                                      const std::vector<executable::TensorArg>& outputs,
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
    return absl::Microseconds(ms * 1e3);
  }

 private:
  const Driver& driver_;
  cuda::CUdevice device_ = 0;
  bool retained_ = false;
  cuda::CUstream stream_ = nullptr;
  cuda::CUevent events_[2] = {};
  std::vector<CUdeviceptr> allocated_;
};

}  // namespace

absl::StatusOr<std::vector<HostArray>> RunLocally(const executable::Executable& executable,
                                                  const std::vector<HostArray>& inputs,
                                                  const std::string& driver_path, int repeat,
                                                  RunReport& report) {
  FUSIOND_ASSIGN_OR_RETURN(const Driver* driver, Driver::Open(driver_path));
  FUSIOND_ASSIGN_OR_RETURN(std::vector<cuda::ProbedDevice> devices, cuda::Probe(*driver));
  auto device = std::find_if(devices.begin(), devices.end(), [&](const cuda::ProbedDevice& d) {
    return d.info.arch == executable.arch;
  });
  if (device == devices.end()) {
    return absl::FailedPreconditionError(
        absl::StrCat("no visible GPU is of arch ", executable.arch));
  }
  report.device = absl::StrCat(device->uuid, ", this process");
  LocalContext context(*driver);
  FUSIOND_RETURN_IF_ERROR(context.Open(device->device));
  FUSIOND_ASSIGN_OR_RETURN(
      std::unique_ptr<client::LocalExecutable> loaded,
      client::LocalExecutable::Load(*driver, executable, device->info.sm_count));
  std::vector<executable::TensorArg> input_args, output_args;
  for (const HostArray& input : inputs) {
    CUdeviceptr address = 0;
    if (!input.scalar) {
      FUSIOND_ASSIGN_OR_RETURN(address, context.Upload(input.data));
    }
    input_args.push_back(ToArg(input, address));
  }
  FUSIOND_ASSIGN_OR_RETURN(std::vector<HostArray> outputs, OutputArrays(executable, inputs));
  for (size_t i = 0; i < outputs.size(); ++i) {
    CUdeviceptr address;
    if (executable.outputs[i].alias_input) {
      address = input_args[*executable.outputs[i].alias_input].address;
    } else {
      FUSIOND_ASSIGN_OR_RETURN(address, context.Upload(outputs[i].data));  // poisoned
    }
    output_args.push_back(ToArg(outputs[i], address));
  }
  FUSIOND_ASSIGN_OR_RETURN(int64_t workspace_bytes, loaded->WorkspaceBytes(input_args));
  FUSIOND_ASSIGN_OR_RETURN(CUdeviceptr workspace,
                           context.Allocate(static_cast<uint64_t>(workspace_bytes)));
  for (int i = 0; i < repeat; ++i) {
    FUSIOND_ASSIGN_OR_RETURN(absl::Duration time,
                             context.Time(*loaded, input_args, output_args, workspace));
    report.device_times.push_back(time);
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    FUSIOND_RETURN_IF_ERROR(context.Download(output_args[i].address, outputs[i].data));
  }
  return outputs;
}

}  // namespace fusiond::cli
