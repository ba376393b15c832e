// What this host gives us, and what of it the parts of the daemon may take: how many compile
// processes, how much memory.
//
// Thread-safety: pure but for reading /proc and /sys. Source: cgroup v2 (Linux
// Documentation/admin-guide/cgroup-v2.rst: cpu.max, memory.max), cgroup v1 (cgroup-v1/memory.rst:
// memory.limit_in_bytes; scheduler/sched-bwc.rst: cpu.cfs_quota_us), sched_getaffinity(2).
#ifndef FUSIOND_SERVER_POOL_HOST_LIMITS_H_
#define FUSIOND_SERVER_POOL_HOST_LIMITS_H_

#include <cstdint>
#include <optional>
#include <string>

namespace fusiond::server {

struct HostLimits {
  int affinity_cpus = 1;             // that this process may run on
  std::optional<double> quota_cpus;  // tightest quota from our cgroup up to the root
  uint64_t memory_bytes = 0;         // the host's, or the tightest cgroup's; 0: unknown
  uint64_t available_bytes = 0;      // of them without swapping (MemAvailable); 0: unknown
};

// `root` stands before /proc and /sys (tests pass a folder, production the empty string). What
// cannot be read sets no limit.
HostLimits ReadHostLimits(const std::string& root);

// As many as there are CPUs (a fraction counts as one), and as fit into the memory if each reaches
// its limit; at least 1, and at most `cap` where that is not 0.
int CompileProcessCount(const HostLimits& limits, uint64_t bytes_per_process, int cap);

// `most`, or this share of the available memory where that is less; but at least `least`.
int64_t ShareOfMemory(const HostLimits& limits, int64_t divisor, int64_t least, int64_t most);

}  // namespace fusiond::server

#endif  // FUSIOND_SERVER_POOL_HOST_LIMITS_H_
