// One graph compiled and loaded with inputs, outputs and workspace in device memory, at sizes that
// host memory does not have to hold; for timing, and for checking a sample of every output.
//
// Thread-safety: single-thread. Ownership: the Gpu must outlive it.
#ifndef FUSIOND_TESTS_BENCH_KERNEL_RUN_H_
#define FUSIOND_TESTS_BENCH_KERNEL_RUN_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/ir/graph.h"
#include "compiler/nvrtc/nvrtc.h"
#include "runtime/cuda/loaded_executable.h"
#include "runtime/executable/binding.h"
#include "tests/gpu/compiled_graph.h"
#include "tests/gpu/gpu.h"
#include "tests/gpu/samples.h"

namespace fusiond::bench {

class KernelRun {
 public:
  // Requires: static extents.
  static absl::StatusOr<std::unique_ptr<KernelRun>> Make(testing::Gpu& gpu,
                                                         const nvrtc::Nvrtc& nvrtc,
                                                         ir::Graph graph);

  // Moves inputs, outputs and workspace to newly allocated memory. How pages happen to lie in the
  // memory's channels is worth up to 5 % on an H200, so that one placement measures itself.
  absl::Status Relocate();

  absl::Status Launch();
  // Launches on poisoned outputs, and holds about 2^17 elements of each against the evaluator,
  // within its bounds. ABORTED names what is wrong.
  absl::Status Check();

  int64_t bytes() const { return bytes_; }  // of the graph's inputs and outputs, each once
  int64_t registers() const { return registers_; }
  int64_t local_bytes() const { return local_bytes_; }
  const cuda::LoadedExecutable& loaded() const { return *loaded_; }
  const std::vector<executable::TensorArg>& inputs() const { return inputs_; }
  const std::vector<executable::TensorArg>& outputs() const { return outputs_; }
  cuda::CUdeviceptr workspace() const { return workspace_.address(); }

 private:
  KernelRun(testing::Gpu& gpu, ir::Graph graph) : gpu_(gpu), graph_(std::move(graph)) {}
  absl::Status PlaceInputs();
  absl::Status PlaceOutputs();
  absl::Status PlaceWorkspace();
  absl::Status CheckOutput(size_t output);

  testing::Gpu& gpu_;
  const ir::Graph graph_;
  std::unique_ptr<cuda::LoadedExecutable> loaded_;
  std::vector<testing::Samples> samples_;      // by input
  std::vector<testing::DeviceMemory> memory_;  // of inputs_, then of outputs_
  std::vector<uint64_t> memory_bytes_;
  testing::DeviceMemory workspace_;
  std::vector<executable::TensorArg> inputs_, outputs_;
  std::vector<int64_t> output_bytes_;
  int64_t bytes_ = 0;
  int64_t registers_ = 0;
  int64_t local_bytes_ = 0;
};

}  // namespace fusiond::bench

#endif  // FUSIOND_TESTS_BENCH_KERNEL_RUN_H_
