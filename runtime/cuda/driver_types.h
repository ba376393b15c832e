// The parts of the CUDA driver's ABI that fusiond uses, declared here so that nothing needs CUDA's
// headers to build.
//
// Source: cuda.h of CUDA 13.0; a test compiles these against the real header where one is found.
// Names follow cuda.h so that its documentation applies.
#ifndef FUSIOND_RUNTIME_CUDA_DRIVER_TYPES_H_
#define FUSIOND_RUNTIME_CUDA_DRIVER_TYPES_H_

#include <cstddef>
#include <cstdint>

namespace fusiond::cuda {

using CUresult = int;
using CUdevice = int;
using CUdeviceptr = unsigned long long;
using CUcontext = struct CUctx_st*;
using CUmodule = struct CUmod_st*;
using CUfunction = struct CUfunc_st*;
using CUstream = struct CUstream_st*;
using CUevent = struct CUevent_st*;
using CUmemGenericAllocationHandle = unsigned long long;

struct CUuuid {
  char bytes[16];
};

// CUresult values that are told apart.
inline constexpr CUresult kSuccess = 0;
inline constexpr CUresult kInvalidValue = 1;
inline constexpr CUresult kOutOfMemory = 2;
inline constexpr CUresult kNotInitialized = 3;
inline constexpr CUresult kDeinitialized = 4;
inline constexpr CUresult kStubLibrary = 34;
inline constexpr CUresult kDeviceUnavailable = 46;
inline constexpr CUresult kNoDevice = 100;
inline constexpr CUresult kInvalidImage = 200;
inline constexpr CUresult kNoBinaryForGpu = 209;
inline constexpr CUresult kEccUncorrectable = 214;
inline constexpr CUresult kUnsupportedPtxVersion = 222;
inline constexpr CUresult kNotFound = 500;
inline constexpr CUresult kNotReady = 600;
inline constexpr CUresult kIllegalAddress = 700;
inline constexpr CUresult kLaunchTimeout = 702;
inline constexpr CUresult kContextIsDestroyed = 709;
inline constexpr CUresult kAssert = 710;
inline constexpr CUresult kHardwareStackError = 714;
inline constexpr CUresult kIllegalInstruction = 715;
inline constexpr CUresult kMisalignedAddress = 716;
inline constexpr CUresult kInvalidAddressSpace = 717;
inline constexpr CUresult kInvalidPc = 718;
inline constexpr CUresult kLaunchFailed = 719;
inline constexpr CUresult kSystemNotReady = 802;
inline constexpr CUresult kSystemDriverMismatch = 803;
inline constexpr CUresult kMpsClientTerminated = 810;

// CUdevice_attribute.
inline constexpr int kAttributeSmCount = 16;
inline constexpr int kAttributePciBusId = 33;
inline constexpr int kAttributePciDeviceId = 34;
inline constexpr int kAttributeCcMajor = 75;
inline constexpr int kAttributeCcMinor = 76;
inline constexpr int kAttributeVmm = 102;
inline constexpr int kAttributePosixFd = 103;
inline constexpr int kAttributePciDomainId = 50;

// CUfunction_attribute.
inline constexpr int kFunctionLocalBytes = 3;
inline constexpr int kFunctionRegisters = 4;
inline constexpr int kFunctionMaxDynamicSmem = 8;
inline constexpr int kFunctionNonPortableCluster = 14;

// Flags of cuStreamCreate and cuEventCreate.
inline constexpr unsigned kStreamNonBlocking = 1;
inline constexpr unsigned kEventDisableTiming = 2;
inline constexpr unsigned kEventDefault = 0;

// CUlaunchAttributeID.
inline constexpr int kLaunchAttributeClusterDimension = 4;
inline constexpr int kLaunchAttributePdl = 6;  // programmatic stream serialization

struct CUlaunchAttribute {
  int id;
  char pad[8 - sizeof(int)];
  union {
    char bytes[64];
    struct {
      unsigned x, y, z;
    } cluster;
    int programmatic_stream_serialization_allowed;
  } value;
};

struct CUlaunchConfig {
  unsigned grid_x, grid_y, grid_z;
  unsigned block_x, block_y, block_z;
  unsigned smem_bytes;
  CUstream stream;
  CUlaunchAttribute* attributes;
  unsigned attribute_count;
};

// Virtual memory management.
inline constexpr int kAllocationPinned = 1;
inline constexpr int kHandlePosixFd = 1;
inline constexpr int kLocationDevice = 1;
inline constexpr int kAccessReadWrite = 3;
inline constexpr int kGranularityMinimum = 0;

struct CUmemLocation {
  int type;
  int id;
};

struct CUmemAllocationProp {
  int type;
  int requested_handle_types;
  CUmemLocation location;
  void* win32_metadata;
  struct {
    unsigned char compression_type;
    unsigned char gpu_direct_rdma_capable;
    unsigned short usage;
    unsigned char reserved[4];
  } flags;
};

struct CUmemAccessDesc {
  CUmemLocation location;
  int flags;
};

}  // namespace fusiond::cuda

#endif  // FUSIOND_RUNTIME_CUDA_DRIVER_TYPES_H_
