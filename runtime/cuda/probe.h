// Probe: the GPUs of this host, from cuInit and attributes alone; no context is made.
#ifndef FUSIOND_RUNTIME_CUDA_PROBE_H_
#define FUSIOND_RUNTIME_CUDA_PROBE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/cuda/driver.h"
#include "runtime/executable/device_info.h"

namespace fusiond::cuda {

struct ProbedDevice {
  CUdevice device = 0;
  std::string uuid;  // "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"
  std::string name;
  int compute_capability = 0;
  int64_t memory_bytes = 0;
  int64_t memory_granularity = 0;  // 0: this card cannot export memory as descriptors
  executable::DeviceInfo info;     // empty arch when `problem` is set
  std::string problem;             // why it cannot be used
};

absl::StatusOr<std::vector<ProbedDevice>> Probe(const Driver& driver);

std::string UuidToString(const CUuuid& uuid);

}  // namespace fusiond::cuda

#endif  // FUSIOND_RUNTIME_CUDA_PROBE_H_
