// DeviceInfo: what the compiler knows of a device, as plain numbers, so that any arch compiles and
// is tested anywhere.
//
// Thread-safety: a value. Units: in the names. Sources of the figures: profiles.cc.
#ifndef FUSIOND_RUNTIME_EXECUTABLE_DEVICE_INFO_H_
#define FUSIOND_RUNTIME_EXECUTABLE_DEVICE_INFO_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace fusiond::executable {

inline constexpr absl::string_view kCpuArch = "cpu";

struct DeviceInfo {
  std::string arch;     // "sm_90a", or "cpu"
  std::string profile;  // name of the table row the figures came from, e.g. "h200"

  int compute_capability = 0;  // 10 * major + minor: 80, 86, 89, 90, 100, 120
  int sm_count = 0;
  int64_t max_smem_per_block = 0;  // opt-in limit, bytes
  int64_t smem_per_sm = 0;         // bytes
  int registers_per_sm = 65536;
  int max_threads_per_sm = 2048;
  int max_threads_per_block = 1024;
  int64_t l2_bytes = 0;
  double dram_gb_per_s = 0;           // sheet value, read + write
  int64_t max_argument_bytes = 4096;  // kernel arguments

  bool has_cp_async = false;   // from 8.0
  bool has_bulk_copy = false;  // cp.async.bulk and mbarrier transactions, from 9.0
  bool has_clusters = false;   // thread-block clusters and distributed shared memory, from 9.0
  bool has_pdl = false;        // programmatic dependent launch, from 9.0

  bool is_cpu() const { return arch == kCpuArch; }
  bool operator==(const DeviceInfo&) const = default;
};

// Every named profile, then one default per arch (profile == arch), then "cpu".
const std::vector<DeviceInfo>& Profiles();
// By profile name ("h200"), by arch ("sm_90a": the arch's default) or "cpu". NOT_FOUND lists the
// names.
absl::StatusOr<DeviceInfo> ProfileByName(absl::string_view name);
// The profile for a real card: by marketing name ("NVIDIA H200") where one matches, else the
// default of its arch. FAILED_PRECONDITION names the compute capability when no arch of ours covers
// it.
absl::StatusOr<DeviceInfo> ProfileForCard(absl::string_view card_name, int compute_capability);

}  // namespace fusiond::executable

#endif  // FUSIOND_RUNTIME_EXECUTABLE_DEVICE_INFO_H_
