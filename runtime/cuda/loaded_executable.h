// LoadedExecutable: an Executable in one CUDA context, ready to launch.
//
// A launch checks the guards, takes the plan that was made for these extents (or makes it), points
// the argument table at the caller's addresses and calls the driver once a step. No lock, no
// allocation and no hashing once a shape has been seen, up to 64 arguments a kernel.
//
// Thread-safety: thread-safe; one object may be launched from many threads and streams at once,
// each launch with its own workspace. Ownership: holds its modules; the Driver and the context must
// outlive it; destroy it with its context current and no launch in flight. Errors:
// FAILED_PRECONDITION when a guard fails or the driver refuses an image; INVALID_ARGUMENT for wrong
// arguments; ABORTED when the context is lost; RESOURCE_EXHAUSTED out of memory.
#ifndef FUSIOND_RUNTIME_CUDA_LOADED_EXECUTABLE_H_
#define FUSIOND_RUNTIME_CUDA_LOADED_EXECUTABLE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/base/mutex.h"
#include "runtime/cuda/driver.h"
#include "runtime/executable/binding.h"
#include "runtime/executable/executable.h"

namespace fusiond::cuda {

// Resource use of one kernel as the driver reports it after loading.
struct KernelResources {
  std::string entry;
  int registers = 0;
  int local_bytes = 0;  // spills and stack; 0 in every variant of ours
};

class LoadedExecutable {
 public:
  // Loads every image into the current context. `sm_count` is that of the context's device.
  static absl::StatusOr<std::unique_ptr<LoadedExecutable>> Load(const Driver& driver,
                                                                executable::Executable executable,
                                                                int sm_count);
  ~LoadedExecutable();
  LoadedExecutable(const LoadedExecutable&) = delete;
  LoadedExecutable& operator=(const LoadedExecutable&) = delete;

  const executable::Executable& executable() const { return executable_; }
  std::vector<KernelResources> Resources() const;

  // Output shapes and workspace size for these inputs; allocate accordingly before Launch.
  absl::StatusOr<std::vector<executable::OutputShape>> OutputShapes(
      absl::Span<const executable::TensorArg> inputs) const;
  absl::StatusOr<int64_t> WorkspaceBytes(absl::Span<const executable::TensorArg> inputs) const;

  // Enqueues every step on `stream`. outputs: one an output of the executable, in order, aliased
  // ones included (their address is the input's). workspace: WorkspaceBytes() bytes, aligned as the
  // executable says, until the launch is done.
  absl::Status Launch(CUstream stream, absl::Span<const executable::TensorArg> inputs,
                      absl::Span<const executable::TensorArg> outputs, CUdeviceptr workspace) const;

 private:
  // A kernel step with every formula evaluated for one set of extents.
  struct PlannedKernel {
    CUlaunchConfig config{};
    CUlaunchAttribute attributes[2]{};
    std::vector<int64_t> numbers;  // one an argument: workspace offset, i32 or i64 value
  };
  struct PlannedMemset {
    int64_t offset = 0;
    int64_t bytes = 0;
  };
  struct Plan {
    std::vector<int64_t> extents;        // of all inputs, concatenated
    std::vector<PlannedKernel> kernels;  // one a step; unused for other steps
    std::vector<PlannedMemset> memsets;  // likewise
    const Plan* next = nullptr;
  };

  LoadedExecutable(const Driver& driver, executable::Executable executable, int sm_count);
  absl::Status LoadImages();
  absl::StatusOr<const Plan*> FindOrMakePlan(absl::Span<const executable::TensorArg> inputs) const;
  absl::StatusOr<std::unique_ptr<Plan>> MakePlan(
      absl::Span<const executable::TensorArg> inputs) const;
  absl::Status PlanKernel(const executable::KernelStep& step, CUfunction function,
                          absl::Span<const absl::Span<const int64_t>> shapes,
                          PlannedKernel& planned) const;
  absl::Status RaiseSmemLimit(CUfunction function, unsigned bytes, const std::string& entry) const;
  absl::Status LaunchKernel(size_t step, const PlannedKernel& planned, CUstream stream,
                            absl::Span<const executable::TensorArg> inputs,
                            absl::Span<const executable::TensorArg> outputs,
                            CUdeviceptr workspace) const;

  // Constant after Load.
  const Driver& driver_;
  const executable::Executable executable_;
  const int sm_count_;
  std::vector<CUmodule> modules_;      // one an image
  std::vector<CUfunction> functions_;  // one a step; null for memsets

  // A list that only grows, newest first; readers need no lock.
  mutable std::atomic<const Plan*> plans_{nullptr};
  mutable base::Mutex mutex_;  // held while a plan is made
};

}  // namespace fusiond::cuda

#endif  // FUSIOND_RUNTIME_CUDA_LOADED_EXECUTABLE_H_
