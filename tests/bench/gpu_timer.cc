#include "tests/bench/gpu_timer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/device/device_text.h"
#include "runtime/base/status_macros.h"

namespace fusiond::device {
extern const DeviceFile kReadMemoryFiles[];
}  // namespace fusiond::device

namespace fusiond::bench {
namespace {

constexpr char kReadMemory[] = "fd_bench_read_memory";
constexpr uint64_t kEmptyingBytes = 256 << 20;  // several times any L2 cache
constexpr uint64_t kCopyBytes = uint64_t{2} << 30;
constexpr int kCopies = 10;

// Cuts what ran into calls: each stands behind one run of the emptying kernel.
std::vector<TimedCall> CutIntoCalls(const std::vector<KernelInterval>& intervals) {
  std::vector<TimedCall> calls;
  int64_t end_ns = 0;
  for (const KernelInterval& interval : intervals) {
    if (interval.name == kReadMemory) {
      calls.emplace_back();
      end_ns = 0;
      continue;
    }
    if (calls.empty()) continue;
    ++calls.back().kernels;
    const int64_t begin_ns = std::max(interval.start_ns, end_ns);
    end_ns = std::max(interval.end_ns, end_ns);
    calls.back().gpu_us += static_cast<double>(std::max<int64_t>(end_ns - begin_ns, 0)) * 1e-3;
  }
  return calls;
}

}  // namespace

absl::StatusOr<std::unique_ptr<GpuTimer>> GpuTimer::Open(testing::Gpu& gpu,
                                                         const nvrtc::Nvrtc& nvrtc,
                                                         const std::string& cupti) {
  std::unique_ptr<GpuTimer> timer(new GpuTimer(gpu));
  FUSIOND_ASSIGN_OR_RETURN(timer->recorder_, KernelRecorder::Open(cupti));
  const absl::string_view text = device::kReadMemoryFiles[0].text;
  FUSIOND_ASSIGN_OR_RETURN(
      const nvrtc::CompileOutput compiled,
      nvrtc.Compile(
          {.source = std::string(text), .name = "read_memory.cu", .arch = gpu.device().info.arch}));
  FUSIOND_RETURN_IF_ERROR(gpu.ToStatus(
      gpu.driver().ModuleLoadData(&timer->module_, compiled.cubin.data()), "load read_memory"));
  FUSIOND_RETURN_IF_ERROR(gpu.ToStatus(
      gpu.driver().ModuleGetFunction(&timer->read_memory_, timer->module_, kReadMemory),
      kReadMemory));
  FUSIOND_ASSIGN_OR_RETURN(timer->memory_, gpu.Allocate(kEmptyingBytes));
  FUSIOND_ASSIGN_OR_RETURN(timer->sink_, gpu.Allocate(4));
  FUSIOND_RETURN_IF_ERROR(gpu.Fill(timer->memory_.address(), 0, kEmptyingBytes));
  return timer;
}

GpuTimer::~GpuTimer() {
  if (module_ != nullptr) gpu_.driver().ModuleUnload(module_);
}

absl::Status GpuTimer::EmptyL2() {
  cuda::CUdeviceptr from = memory_.address(), sink = sink_.address();
  uint64_t count = kEmptyingBytes / 16;
  void* arguments[] = {&from, &count, &sink};
  return gpu_.ToStatus(gpu_.driver().LaunchKernel(read_memory_, 1024, 1, 1, 512, 1, 1, 0,
                                                  gpu_.stream(), arguments, nullptr),
                       kReadMemory);
}

absl::StatusOr<double> GpuTimer::CopyRate() {
  const cuda::Driver& driver = gpu_.driver();
  FUSIOND_ASSIGN_OR_RETURN(const testing::DeviceMemory from, gpu_.Allocate(kCopyBytes));
  FUSIOND_ASSIGN_OR_RETURN(const testing::DeviceMemory to, gpu_.Allocate(kCopyBytes));
  FUSIOND_RETURN_IF_ERROR(gpu_.Fill(from.address(), 0x5a, kCopyBytes));
  cuda::CUevent begin, end;
  FUSIOND_RETURN_IF_ERROR(
      gpu_.ToStatus(driver.EventCreate(&begin, cuda::kEventDefault), "make an event"));
  FUSIOND_RETURN_IF_ERROR(
      gpu_.ToStatus(driver.EventCreate(&end, cuda::kEventDefault), "make an event"));
  std::vector<float> times_ms;
  for (int i = 0; i < kCopies + 3; ++i) {  // the first three warm up
    driver.EventRecord(begin, gpu_.stream());
    FUSIOND_RETURN_IF_ERROR(gpu_.ToStatus(
        driver.MemcpyDtoDAsync(to.address(), from.address(), kCopyBytes, gpu_.stream()), "copy"));
    driver.EventRecord(end, gpu_.stream());
    FUSIOND_RETURN_IF_ERROR(gpu_.Synchronize());
    float ms = 0;
    FUSIOND_RETURN_IF_ERROR(gpu_.ToStatus(driver.EventElapsedTime(&ms, begin, end), "time a copy"));
    if (i >= 3) times_ms.push_back(ms);
  }
  driver.EventDestroy(begin);
  driver.EventDestroy(end);
  std::sort(times_ms.begin(), times_ms.end());
  return 2.0 * static_cast<double>(kCopyBytes) / (times_ms[kCopies / 2] * 1e-3) * 1e-9;
}

absl::StatusOr<std::vector<TimedCall>> GpuTimer::Measure(
    const std::function<absl::Status()>& launch, int warm_up, int calls) {
  for (int i = 0; i < warm_up; ++i) FUSIOND_RETURN_IF_ERROR(launch());
  FUSIOND_RETURN_IF_ERROR(gpu_.Synchronize());
  FUSIOND_RETURN_IF_ERROR(recorder_->Take().status());
  for (int i = 0; i < calls; ++i) {
    FUSIOND_RETURN_IF_ERROR(EmptyL2());
    FUSIOND_RETURN_IF_ERROR(launch());
  }
  FUSIOND_RETURN_IF_ERROR(gpu_.Synchronize());
  FUSIOND_ASSIGN_OR_RETURN(const std::vector<KernelInterval> intervals, recorder_->Take());
  std::vector<TimedCall> timed = CutIntoCalls(intervals);
  if (timed.size() != static_cast<size_t>(calls)) {
    return absl::InternalError(absl::StrCat("CUPTI recorded ", timed.size(), " of ", calls,
                                            " calls (", intervals.size(), " kernels)"));
  }
  return timed;
}

}  // namespace fusiond::bench
