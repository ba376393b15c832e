// Compiles only if the declarations of runtime/cuda/driver_types.h agree with the real cuda.h.
#include <cuda.h>

#include <cstddef>
#include <type_traits>

#include "runtime/cuda/driver.h"

namespace ours = fusiond::cuda;

namespace {

// Parameters agree when they have one size and are both pointers or both not.
template <typename A, typename B>
constexpr bool kAlike = sizeof(A) == sizeof(B) && std::is_pointer_v<A> == std::is_pointer_v<B>;

template <typename A, typename B>
struct SameShape : std::false_type {};
template <typename R1, typename... A, typename R2, typename... B>
struct SameShape<R1 (*)(A...), R2 (*)(B...)> {
  static constexpr bool Value() {
    if constexpr (sizeof...(A) != sizeof...(B)) {
      return false;
    } else {
      return kAlike<R1, R2> && (kAlike<A, B> && ...);
    }
  }
  static constexpr bool value = Value();
};

#define CHECK_FUNCTION(member, function) \
  static_assert(SameShape<ours::Driver::member##Function, decltype(&function)>::value, #function)

CHECK_FUNCTION(Init, cuInit);
CHECK_FUNCTION(GetErrorName, cuGetErrorName);
CHECK_FUNCTION(GetErrorString, cuGetErrorString);
CHECK_FUNCTION(DriverGetVersion, cuDriverGetVersion);
CHECK_FUNCTION(DeviceGetCount, cuDeviceGetCount);
CHECK_FUNCTION(DeviceGet, cuDeviceGet);
CHECK_FUNCTION(DeviceGetName, cuDeviceGetName);
CHECK_FUNCTION(DeviceGetUuid, cuDeviceGetUuid);
CHECK_FUNCTION(DeviceGetAttribute, cuDeviceGetAttribute);
CHECK_FUNCTION(DeviceTotalMem, cuDeviceTotalMem);
CHECK_FUNCTION(PrimaryCtxRetain, cuDevicePrimaryCtxRetain);
CHECK_FUNCTION(PrimaryCtxRelease, cuDevicePrimaryCtxRelease);
CHECK_FUNCTION(CtxSetCurrent, cuCtxSetCurrent);
CHECK_FUNCTION(CtxGetCurrent, cuCtxGetCurrent);
CHECK_FUNCTION(CtxSynchronize, cuCtxSynchronize);
CHECK_FUNCTION(ModuleLoadData, cuModuleLoadData);
CHECK_FUNCTION(ModuleUnload, cuModuleUnload);
CHECK_FUNCTION(ModuleGetFunction, cuModuleGetFunction);
CHECK_FUNCTION(FuncGetAttribute, cuFuncGetAttribute);
CHECK_FUNCTION(FuncSetAttribute, cuFuncSetAttribute);
CHECK_FUNCTION(LaunchKernel, cuLaunchKernel);
CHECK_FUNCTION(LaunchKernelEx, cuLaunchKernelEx);
CHECK_FUNCTION(StreamCreate, cuStreamCreate);
CHECK_FUNCTION(StreamDestroy, cuStreamDestroy);
CHECK_FUNCTION(StreamSynchronize, cuStreamSynchronize);
CHECK_FUNCTION(StreamQuery, cuStreamQuery);
CHECK_FUNCTION(EventCreate, cuEventCreate);
CHECK_FUNCTION(EventDestroy, cuEventDestroy);
CHECK_FUNCTION(EventRecord, cuEventRecord);
CHECK_FUNCTION(EventQuery, cuEventQuery);
CHECK_FUNCTION(EventElapsedTime, cuEventElapsedTime);
CHECK_FUNCTION(MemGetInfo, cuMemGetInfo);
CHECK_FUNCTION(MemAlloc, cuMemAlloc);
CHECK_FUNCTION(MemFree, cuMemFree);
CHECK_FUNCTION(MemcpyHtoDAsync, cuMemcpyHtoDAsync);
CHECK_FUNCTION(MemcpyDtoHAsync, cuMemcpyDtoHAsync);
CHECK_FUNCTION(MemcpyDtoDAsync, cuMemcpyDtoDAsync);
CHECK_FUNCTION(MemsetD8Async, cuMemsetD8Async);
CHECK_FUNCTION(MemAddressReserve, cuMemAddressReserve);
CHECK_FUNCTION(MemAddressFree, cuMemAddressFree);
CHECK_FUNCTION(MemCreate, cuMemCreate);
CHECK_FUNCTION(MemRelease, cuMemRelease);
CHECK_FUNCTION(MemMap, cuMemMap);
CHECK_FUNCTION(MemUnmap, cuMemUnmap);
CHECK_FUNCTION(MemSetAccess, cuMemSetAccess);
CHECK_FUNCTION(MemGetAllocationGranularity, cuMemGetAllocationGranularity);
CHECK_FUNCTION(MemExportToShareableHandle, cuMemExportToShareableHandle);
CHECK_FUNCTION(MemImportFromShareableHandle, cuMemImportFromShareableHandle);

static_assert(sizeof(ours::CUuuid) == sizeof(CUuuid));
static_assert(sizeof(ours::CUlaunchConfig) == sizeof(CUlaunchConfig));
static_assert(offsetof(ours::CUlaunchConfig, stream) == offsetof(CUlaunchConfig, hStream));
static_assert(offsetof(ours::CUlaunchConfig, smem_bytes) ==
              offsetof(CUlaunchConfig, sharedMemBytes));
static_assert(offsetof(ours::CUlaunchConfig, attributes) == offsetof(CUlaunchConfig, attrs));
static_assert(offsetof(ours::CUlaunchConfig, attribute_count) ==
              offsetof(CUlaunchConfig, numAttrs));
static_assert(sizeof(ours::CUlaunchAttribute) == sizeof(CUlaunchAttribute));
static_assert(offsetof(ours::CUlaunchAttribute, value) == offsetof(CUlaunchAttribute, value));
static_assert(sizeof(ours::CUmemAllocationProp) == sizeof(CUmemAllocationProp));
static_assert(offsetof(ours::CUmemAllocationProp, location) ==
              offsetof(CUmemAllocationProp, location));
static_assert(offsetof(ours::CUmemAllocationProp, flags) ==
              offsetof(CUmemAllocationProp, allocFlags));
static_assert(sizeof(ours::CUmemAccessDesc) == sizeof(CUmemAccessDesc));

#define CHECK_VALUE(value, constant) static_assert(ours::value == constant, #constant)
CHECK_VALUE(kSuccess, CUDA_SUCCESS);
CHECK_VALUE(kInvalidValue, CUDA_ERROR_INVALID_VALUE);
CHECK_VALUE(kOutOfMemory, CUDA_ERROR_OUT_OF_MEMORY);
CHECK_VALUE(kNotInitialized, CUDA_ERROR_NOT_INITIALIZED);
CHECK_VALUE(kDeinitialized, CUDA_ERROR_DEINITIALIZED);
CHECK_VALUE(kStubLibrary, CUDA_ERROR_STUB_LIBRARY);
CHECK_VALUE(kDeviceUnavailable, CUDA_ERROR_DEVICE_UNAVAILABLE);
CHECK_VALUE(kNoDevice, CUDA_ERROR_NO_DEVICE);
CHECK_VALUE(kInvalidImage, CUDA_ERROR_INVALID_IMAGE);
CHECK_VALUE(kNoBinaryForGpu, CUDA_ERROR_NO_BINARY_FOR_GPU);
CHECK_VALUE(kEccUncorrectable, CUDA_ERROR_ECC_UNCORRECTABLE);
CHECK_VALUE(kUnsupportedPtxVersion, CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
CHECK_VALUE(kNotFound, CUDA_ERROR_NOT_FOUND);
CHECK_VALUE(kNotReady, CUDA_ERROR_NOT_READY);
CHECK_VALUE(kIllegalAddress, CUDA_ERROR_ILLEGAL_ADDRESS);
CHECK_VALUE(kLaunchTimeout, CUDA_ERROR_LAUNCH_TIMEOUT);
CHECK_VALUE(kContextIsDestroyed, CUDA_ERROR_CONTEXT_IS_DESTROYED);
CHECK_VALUE(kAssert, CUDA_ERROR_ASSERT);
CHECK_VALUE(kHardwareStackError, CUDA_ERROR_HARDWARE_STACK_ERROR);
CHECK_VALUE(kIllegalInstruction, CUDA_ERROR_ILLEGAL_INSTRUCTION);
CHECK_VALUE(kMisalignedAddress, CUDA_ERROR_MISALIGNED_ADDRESS);
CHECK_VALUE(kInvalidAddressSpace, CUDA_ERROR_INVALID_ADDRESS_SPACE);
CHECK_VALUE(kInvalidPc, CUDA_ERROR_INVALID_PC);
CHECK_VALUE(kLaunchFailed, CUDA_ERROR_LAUNCH_FAILED);
CHECK_VALUE(kSystemNotReady, CUDA_ERROR_SYSTEM_NOT_READY);
CHECK_VALUE(kSystemDriverMismatch, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH);
CHECK_VALUE(kMpsClientTerminated, CUDA_ERROR_MPS_CLIENT_TERMINATED);
CHECK_VALUE(kAttributeSmCount, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
CHECK_VALUE(kAttributeCcMajor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
CHECK_VALUE(kAttributeCcMinor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
CHECK_VALUE(kAttributeVmm, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
CHECK_VALUE(kAttributePosixFd, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED);
CHECK_VALUE(kFunctionLocalBytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
CHECK_VALUE(kFunctionRegisters, CU_FUNC_ATTRIBUTE_NUM_REGS);
CHECK_VALUE(kFunctionMaxDynamicSmem, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
CHECK_VALUE(kFunctionNonPortableCluster, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED);
CHECK_VALUE(kStreamNonBlocking, CU_STREAM_NON_BLOCKING);
CHECK_VALUE(kEventDisableTiming, CU_EVENT_DISABLE_TIMING);
CHECK_VALUE(kLaunchAttributeClusterDimension, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
CHECK_VALUE(kLaunchAttributePdl, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
CHECK_VALUE(kAllocationPinned, CU_MEM_ALLOCATION_TYPE_PINNED);
CHECK_VALUE(kHandlePosixFd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
CHECK_VALUE(kLocationDevice, CU_MEM_LOCATION_TYPE_DEVICE);
CHECK_VALUE(kAccessReadWrite, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
CHECK_VALUE(kGranularityMinimum, CU_MEM_ALLOC_GRANULARITY_MINIMUM);

}  // namespace
