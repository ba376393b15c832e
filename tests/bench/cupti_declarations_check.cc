// Compiled, never run: our CUPTI declarations against the real header.
#include <cupti.h>

#include <cstddef>

#include "tests/bench/cupti.h"

namespace fusiond::bench {
namespace {

using cupti::KernelRecord;
#if CUPTI_API_VERSION >= 130000
using Real = CUpti_ActivityKernel10;
#else
using Real = CUpti_ActivityKernel9;
#endif

static_assert(cupti::kConcurrentKernel == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
static_assert(cupti::kFlushForced == CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
static_assert(cupti::kSuccess == CUPTI_SUCCESS);
static_assert(sizeof(CUptiResult) == sizeof(cupti::Result));
static_assert(sizeof(Real::kind) == sizeof(KernelRecord::kind));
static_assert(offsetof(KernelRecord, registers) == offsetof(Real, registersPerThread));
static_assert(offsetof(KernelRecord, start_ns) == offsetof(Real, start));
static_assert(offsetof(KernelRecord, end_ns) == offsetof(Real, end));
static_assert(offsetof(KernelRecord, stream) == offsetof(Real, streamId));
static_assert(offsetof(KernelRecord, local_bytes_per_thread) ==
              offsetof(Real, localMemoryPerThread));
static_assert(offsetof(KernelRecord, correlation) == offsetof(Real, correlationId));
static_assert(offsetof(KernelRecord, name) == offsetof(Real, name));

// The functions' types, with our stand-ins for enumerations and contexts.
[[maybe_unused]] CUptiResult Calls(uint8_t* buffer, CUpti_Activity** record) {
  CUpti_BuffersCallbackRequestFunc requested = [](uint8_t**, size_t*, size_t*) {};
  CUpti_BuffersCallbackCompleteFunc completed = [](CUcontext, uint32_t, uint8_t*, size_t, size_t) {
  };
  cuptiActivityRegisterCallbacks(requested, completed);
  cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  cuptiActivityFlushAll(cupti::kFlushForced);
  return cuptiActivityGetNextRecord(buffer, size_t{1}, record);
}

}  // namespace
}  // namespace fusiond::bench
