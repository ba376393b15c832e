// Driver: the CUDA driver as one table of function pointers, opened with dlopen.
//
// Nothing links to libcuda: a machine without it opens no Driver and says why. Tests make a Driver
// from functions of their own.
//
// Thread-safety: the table is constant after construction; its functions are as thread-safe as the
// driver's. Ownership: lives for ever once opened (libcuda cannot be unloaded safely).
#ifndef FUSIOND_RUNTIME_CUDA_DRIVER_H_
#define FUSIOND_RUNTIME_CUDA_DRIVER_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/cuda/driver_types.h"

namespace fusiond::cuda {

// FUSIOND_DRIVER_FUNCTION(member, "exported name", result (*)(parameters)); the versioned names are
// those that cuda.h of CUDA 13.0 maps the plain ones to.
#define FUSIOND_DRIVER_FUNCTIONS(X)                                                                \
  X(Init, "cuInit", CUresult (*)(unsigned))                                                        \
  X(DriverGetVersion, "cuDriverGetVersion", CUresult (*)(int*))                                    \
  X(GetErrorName, "cuGetErrorName", CUresult (*)(CUresult, const char**))                          \
  X(GetErrorString, "cuGetErrorString", CUresult (*)(CUresult, const char**))                      \
  X(DeviceGetCount, "cuDeviceGetCount", CUresult (*)(int*))                                        \
  X(DeviceGet, "cuDeviceGet", CUresult (*)(CUdevice*, int))                                        \
  X(DeviceGetName, "cuDeviceGetName", CUresult (*)(char*, int, CUdevice))                          \
  X(DeviceGetUuid, "cuDeviceGetUuid_v2", CUresult (*)(CUuuid*, CUdevice))                          \
  X(DeviceGetAttribute, "cuDeviceGetAttribute", CUresult (*)(int*, int, CUdevice))                 \
  X(DeviceTotalMem, "cuDeviceTotalMem_v2", CUresult (*)(size_t*, CUdevice))                        \
  X(PrimaryCtxRetain, "cuDevicePrimaryCtxRetain", CUresult (*)(CUcontext*, CUdevice))              \
  X(PrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2", CUresult (*)(CUdevice))                     \
  X(CtxSetCurrent, "cuCtxSetCurrent", CUresult (*)(CUcontext))                                     \
  X(CtxGetCurrent, "cuCtxGetCurrent", CUresult (*)(CUcontext*))                                    \
  X(CtxGetDevice, "cuCtxGetDevice", CUresult (*)(CUdevice*))                                       \
  X(CtxSynchronize, "cuCtxSynchronize", CUresult (*)())                                            \
  X(ModuleLoadData, "cuModuleLoadData", CUresult (*)(CUmodule*, const void*))                      \
  X(ModuleUnload, "cuModuleUnload", CUresult (*)(CUmodule))                                        \
  X(ModuleGetFunction, "cuModuleGetFunction", CUresult (*)(CUfunction*, CUmodule, const char*))    \
  X(FuncGetAttribute, "cuFuncGetAttribute", CUresult (*)(int*, int, CUfunction))                   \
  X(FuncSetAttribute, "cuFuncSetAttribute", CUresult (*)(CUfunction, int, int))                    \
  X(LaunchKernel, "cuLaunchKernel",                                                                \
    CUresult (*)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, \
                 CUstream, void**, void**))                                                        \
  X(LaunchKernelEx, "cuLaunchKernelEx",                                                            \
    CUresult (*)(const CUlaunchConfig*, CUfunction, void**, void**))                               \
  X(StreamCreate, "cuStreamCreate", CUresult (*)(CUstream*, unsigned))                             \
  X(StreamDestroy, "cuStreamDestroy_v2", CUresult (*)(CUstream))                                   \
  X(StreamSynchronize, "cuStreamSynchronize", CUresult (*)(CUstream))                              \
  X(StreamQuery, "cuStreamQuery", CUresult (*)(CUstream))                                          \
  X(EventCreate, "cuEventCreate", CUresult (*)(CUevent*, unsigned))                                \
  X(EventDestroy, "cuEventDestroy_v2", CUresult (*)(CUevent))                                      \
  X(EventRecord, "cuEventRecord", CUresult (*)(CUevent, CUstream))                                 \
  X(EventQuery, "cuEventQuery", CUresult (*)(CUevent))                                             \
  X(EventElapsedTime, "cuEventElapsedTime", CUresult (*)(float*, CUevent, CUevent))                \
  X(MemGetInfo, "cuMemGetInfo_v2", CUresult (*)(size_t*, size_t*))                                 \
  X(MemAlloc, "cuMemAlloc_v2", CUresult (*)(CUdeviceptr*, size_t))                                 \
  X(MemFree, "cuMemFree_v2", CUresult (*)(CUdeviceptr))                                            \
  X(MemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2",                                                       \
    CUresult (*)(CUdeviceptr, const void*, size_t, CUstream))                                      \
  X(MemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2", CUresult (*)(void*, CUdeviceptr, size_t, CUstream))   \
  X(MemcpyDtoDAsync, "cuMemcpyDtoDAsync_v2",                                                       \
    CUresult (*)(CUdeviceptr, CUdeviceptr, size_t, CUstream))                                      \
  X(MemsetD8Async, "cuMemsetD8Async", CUresult (*)(CUdeviceptr, unsigned char, size_t, CUstream))  \
  X(MemAddressReserve, "cuMemAddressReserve",                                                      \
    CUresult (*)(CUdeviceptr*, size_t, size_t, CUdeviceptr, unsigned long long))                   \
  X(MemAddressFree, "cuMemAddressFree", CUresult (*)(CUdeviceptr, size_t))                         \
  X(MemCreate, "cuMemCreate",                                                                      \
    CUresult (*)(CUmemGenericAllocationHandle*, size_t, const CUmemAllocationProp*,                \
                 unsigned long long))                                                              \
  X(MemRelease, "cuMemRelease", CUresult (*)(CUmemGenericAllocationHandle))                        \
  X(MemMap, "cuMemMap",                                                                            \
    CUresult (*)(CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle, unsigned long long))   \
  X(MemUnmap, "cuMemUnmap", CUresult (*)(CUdeviceptr, size_t))                                     \
  X(MemSetAccess, "cuMemSetAccess",                                                                \
    CUresult (*)(CUdeviceptr, size_t, const CUmemAccessDesc*, size_t))                             \
  X(MemGetAllocationGranularity, "cuMemGetAllocationGranularity",                                  \
    CUresult (*)(size_t*, const CUmemAllocationProp*, int))                                        \
  X(MemExportToShareableHandle, "cuMemExportToShareableHandle",                                    \
    CUresult (*)(void*, CUmemGenericAllocationHandle, int, unsigned long long))                    \
  X(MemImportFromShareableHandle, "cuMemImportFromShareableHandle",                                \
    CUresult (*)(CUmemGenericAllocationHandle*, void*, int))

inline constexpr char kResultNumber[] = "fusiond/cuda-result";

struct Driver {
#define FUSIOND_DRIVER_MEMBER(member, name, ...) \
  using member##Function = __VA_ARGS__;          \
  member##Function member = nullptr;
  FUSIOND_DRIVER_FUNCTIONS(FUSIOND_DRIVER_MEMBER)
#undef FUSIOND_DRIVER_MEMBER

  std::string path;  // of the library

  // Opens `path`, or libcuda.so.1 by the loader's search if empty, and calls cuInit. NOT_FOUND when
  // there is no such library, FAILED_PRECONDITION when a symbol is missing or cuInit fails (no
  // device, driver mismatch: the text says what to do). The result lives for ever.
  static absl::StatusOr<const Driver*> Open(const std::string& path = "");

  // `status`, and, where it is RESOURCE_EXHAUSTED and does not say so yet, how much memory the
  // current context's device has (base::MemoryNeed) when `needed_bytes` (0: unknown) were asked
  // for.
  absl::Status WithMemory(const absl::Status& status, uint64_t needed_bytes) const;

  // OK, or the status for `result` with `what` in front: RESOURCE_EXHAUSTED out of memory; ABORTED
  // when the context is lost (IsContextLost); FAILED_PRECONDITION for an image the driver refuses;
  // INTERNAL otherwise. The text holds the driver's error name and number; base::NumberOf finds the
  // latter as kResultNumber.
  absl::Status ToStatus(CUresult result, absl::string_view what) const;
};

// True for errors after which every later call in the context fails too ("sticky"): the process
// must end.
bool IsContextLost(CUresult result);

}  // namespace fusiond::cuda

#endif  // FUSIOND_RUNTIME_CUDA_DRIVER_H_
