// Times of kernels as CUPTI saw them, each call on an L2 cache emptied with clean lines; and the
// machine's copy rate, against which they are read.
//
// Thread-safety: single-thread. Ownership: the Gpu must outlive it.
#ifndef FUSIOND_TESTS_BENCH_GPU_TIMER_H_
#define FUSIOND_TESTS_BENCH_GPU_TIMER_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/nvrtc/nvrtc.h"
#include "tests/bench/cupti.h"
#include "tests/gpu/gpu.h"

namespace fusiond::bench {

struct TimedCall {
  double gpu_us = 0;  // union of its kernels' intervals: dependent launches overlap
  int kernels = 0;
};

class GpuTimer {
 public:
  // `cupti`: its library, or empty. Errors: as KernelRecorder::Open, and the driver's.
  static absl::StatusOr<std::unique_ptr<GpuTimer>> Open(testing::Gpu& gpu,
                                                        const nvrtc::Nvrtc& nvrtc,
                                                        const std::string& cupti);
  ~GpuTimer();

  // GB/s, read and write counted: the median of ten device-to-device copies of 2 GiB by the driver.
  absl::StatusOr<double> CopyRate();

  // `launch` enqueues on the Gpu's stream; it is called `warm_up` times and then `calls` times, the
  // cache emptied before each.
  absl::StatusOr<std::vector<TimedCall>> Measure(const std::function<absl::Status()>& launch,
                                                 int warm_up, int calls);

 private:
  explicit GpuTimer(testing::Gpu& gpu) : gpu_(gpu) {}
  absl::Status EmptyL2();

  testing::Gpu& gpu_;
  std::unique_ptr<KernelRecorder> recorder_;
  cuda::CUmodule module_ = nullptr;
  cuda::CUfunction read_memory_ = nullptr;
  testing::DeviceMemory memory_, sink_;
};

}  // namespace fusiond::bench

#endif  // FUSIOND_TESTS_BENCH_GPU_TIMER_H_
