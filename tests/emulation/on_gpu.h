// Kernels on a real GPU: the counterpart of Emulate.
//
// Thread-safety: single-thread. Cost: a compile for each text and launch chain.
#ifndef FUSIOND_TESTS_EMULATION_ON_GPU_H_
#define FUSIOND_TESTS_EMULATION_ON_GPU_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/nvrtc/nvrtc.h"
#include "runtime/cuda/driver.h"
#include "tests/emulation/kernel_call.h"

namespace fusiond::emulation {

class Gpu {
 public:
  // The first usable GPU. NOT_FOUND or FAILED_PRECONDITION without driver, GPU or NVRTC: a reason
  // to skip.
  static absl::StatusOr<std::unique_ptr<Gpu>> Open();
  ~Gpu();
  const std::string& arch() const { return arch_; }

  // Compiles the texts, runs the chain on one stream, and returns the tensors after it. INTERNAL:
  // NVRTC or the driver refuse, or the kernels fault.
  absl::StatusOr<std::vector<std::string>> Run(const std::vector<KernelCall>& chain,
                                               const std::vector<Tensor>& tensors);

 private:
  Gpu() = default;
  absl::StatusOr<cuda::CUmodule> Load(const std::string& text);
  absl::Status Launch(const KernelCall& call, cuda::CUmodule module,
                      const std::vector<cuda::CUdeviceptr>& addresses);

  const cuda::Driver* driver_ = nullptr;
  std::unique_ptr<nvrtc::Nvrtc> nvrtc_;
  std::string arch_;
  cuda::CUdevice device_ = 0;
  bool has_context_ = false;
};

}  // namespace fusiond::emulation

#endif  // FUSIOND_TESTS_EMULATION_ON_GPU_H_
