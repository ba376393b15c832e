// When kernels began and ended, as CUPTI's activity records say. libcupti is opened with dlopen;
// nothing links to it.
//
// Thread-safety: single-thread; CUPTI delivers records on threads of its own, which is hidden here.
// One recorder a process (CUPTI's callbacks carry no argument). Source: cupti_activity.h of CUDA
// 13.0; cupti_declarations_check.cc compiles these declarations against it where it is found.
#ifndef FUSIOND_TESTS_BENCH_CUPTI_H_
#define FUSIOND_TESTS_BENCH_CUPTI_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace fusiond::bench {

namespace cupti {

using Result = int;                           // CUptiResult
inline constexpr Result kSuccess = 0;         // CUPTI_SUCCESS
inline constexpr int kConcurrentKernel = 10;  // CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL
inline constexpr uint32_t kFlushForced = 1;   // CUPTI_ACTIVITY_FLAG_FLUSH_FORCED

// The part of CUpti_ActivityKernel10 up to its name; it is the same since CUpti_ActivityKernel5.
struct KernelRecord {
  int32_t kind;
  uint8_t cache_config;
  uint8_t shared_memory_config;
  uint16_t registers;
  int32_t partitioned_cache_requested;
  int32_t partitioned_cache_executed;
  uint64_t start_ns;
  uint64_t end_ns;
  uint64_t completed_ns;
  uint32_t device, context, stream;
  int32_t grid[3], block[3];
  int32_t static_smem, dynamic_smem;
  uint32_t local_bytes_per_thread;
  uint32_t local_bytes_total;
  uint32_t correlation;
  int64_t grid_id;
  const char* name;
};

}  // namespace cupti

struct KernelInterval {
  std::string name;  // as the driver knows it: mangled
  int64_t start_ns = 0;
  int64_t end_ns = 0;
};

class KernelRecorder {
 public:
  // Records every kernel of this process from now on. `path` empty: libcupti by the loader's
  // search, then in the places of a CUDA installation. NOT_FOUND: none of them opens, with the
  // reasons. FAILED_PRECONDITION: CUPTI refuses, with its code.
  static absl::StatusOr<std::unique_ptr<KernelRecorder>> Open(const std::string& path);

  // The kernels that ended since the last call, by start. Requires: the GPU is idle.
  absl::StatusOr<std::vector<KernelInterval>> Take();

 private:
  using Flush = cupti::Result (*)(uint32_t);
  explicit KernelRecorder(Flush flush) : flush_(flush) {}

  const Flush flush_;
};

}  // namespace fusiond::bench

#endif  // FUSIOND_TESTS_BENCH_CUPTI_H_
