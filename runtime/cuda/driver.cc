#include "runtime/cuda/driver.h"

#include <dlfcn.h>

#include "absl/strings/str_cat.h"
#include "runtime/base/load_library.h"
#include "runtime/base/status_numbers.h"

namespace fusiond::cuda {
namespace {

std::string Advice(CUresult result) {
  switch (result) {
    case kNoDevice:
      return "; no GPU is visible (CUDA_VISIBLE_DEVICES, device nodes)";
    case kSystemDriverMismatch:
      return "; the driver was upgraded under the kernel module: reboot needed";
    case kSystemNotReady:
      return "; the fabric manager or another system service is not up yet";
    case kStubLibrary:
      return "; this is the toolkit's stub, not the driver";
    default:
      return "";
  }
}

absl::StatusCode CodeOf(CUresult result) {
  if (IsContextLost(result)) return absl::StatusCode::kAborted;
  switch (result) {
    case kOutOfMemory:
      return absl::StatusCode::kResourceExhausted;
    case kInvalidImage:
    case kNoBinaryForGpu:
    case kUnsupportedPtxVersion:
      return absl::StatusCode::kFailedPrecondition;
    default:
      return absl::StatusCode::kInternal;
  }
}

absl::Status LoadSymbols(void* library, Driver& driver) {
#define FUSIOND_DRIVER_LOAD(member, name, ...)                                                    \
  driver.member = reinterpret_cast<Driver::member##Function>(dlsym(library, name));               \
  if (driver.member == nullptr) {                                                                 \
    return absl::FailedPreconditionError(                                                         \
        absl::StrCat(driver.path, ": no symbol ", name, "; the driver is older than CUDA 12.0")); \
  }
  FUSIOND_DRIVER_FUNCTIONS(FUSIOND_DRIVER_LOAD)
#undef FUSIOND_DRIVER_LOAD
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<const Driver*> Driver::Open(const std::string& path) {
  const std::string name = path.empty() ? "libcuda.so.1" : path;
  const absl::StatusOr<void*> library = base::LoadLibrary(name);
  if (!library.ok())
    return absl::NotFoundError(absl::StrCat("CUDA driver: ", library.status().message()));
  auto* driver = new Driver;
  driver->path = name;
  absl::Status status = LoadSymbols(*library, *driver);
  if (status.ok()) {
    const CUresult result = driver->Init(0);
    status = result == kSuccess
                 ? absl::OkStatus()
                 : absl::FailedPreconditionError(
                       absl::StrCat(driver->ToStatus(result, "cuInit").message(), Advice(result)));
  }
  if (!status.ok()) {
    delete driver;
    return status;
  }
  return driver;
}

absl::Status Driver::WithMemory(const absl::Status& status, uint64_t needed_bytes) const {
  size_t free = 0, total = 0;
  if (!absl::IsResourceExhausted(status) || base::MemoryNeedOf(status).has_value() ||
      MemGetInfo(&free, &total) != kSuccess) {
    return status;
  }
  return base::WithMemoryNeed(status, {needed_bytes, total, free});
}

absl::Status Driver::ToStatus(CUresult result, absl::string_view what) const {
  if (result == kSuccess) return absl::OkStatus();
  const char* name = nullptr;
  const char* text = nullptr;
  if (GetErrorName != nullptr) GetErrorName(result, &name);
  if (GetErrorString != nullptr) GetErrorString(result, &text);
  const std::string message =
      absl::StrCat(what, ": ", name != nullptr ? name : "CUDA error", " (", result, ")",
                   text != nullptr ? absl::StrCat(": ", text) : "");
  return base::WithNumber(absl::Status(CodeOf(result), message), kResultNumber,
                          static_cast<uint64_t>(result));
}

bool IsContextLost(CUresult result) {
  switch (result) {
    case kDeinitialized:
    case kEccUncorrectable:
    case kIllegalAddress:
    case kLaunchTimeout:
    case kContextIsDestroyed:
    case kAssert:
    case kHardwareStackError:
    case kIllegalInstruction:
    case kMisalignedAddress:
    case kInvalidAddressSpace:
    case kInvalidPc:
    case kLaunchFailed:
    case kMpsClientTerminated:
      return true;
    default:
      return false;
  }
}

}  // namespace fusiond::cuda
