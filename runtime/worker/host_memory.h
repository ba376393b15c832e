// HostMemory: what a worker may take of its machine's memory, so that it refuses what would make
// the kernel kill it: pages are given one by one, long after the call that asked for them.
//
// Thread-safety: thread-safe. Ownership: outlives everything that takes from it.
#ifndef FUSIOND_RUNTIME_WORKER_HOST_MEMORY_H_
#define FUSIOND_RUNTIME_WORKER_HOST_MEMORY_H_

#include <atomic>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "runtime/base/file.h"

namespace fusiond::worker {

class HostMemory {
 public:
  // `limit_bytes`: the machine's or cgroup's; 0 = what the kernel says that the machine has.
  // `meminfo` is opened here, since a worker's sandbox opens nothing; where it cannot be, the limit
  // alone counts.
  explicit HostMemory(uint64_t limit_bytes = 0, const std::string& meminfo = "/proc/meminfo");

  uint64_t limit_bytes() const { return limit_bytes_; }
  // What is left of the limit, and no more than the kernel can give now.
  uint64_t FreeBytes() const;
  // OK, or RESOURCE_EXHAUSTED of `what` with `bytes`, limit and what is free.
  absl::Status CheckRoom(absl::string_view what, uint64_t bytes) const;

  void Take(uint64_t bytes) { taken_.fetch_add(bytes, std::memory_order_relaxed); }  // a sum alone
  void Give(uint64_t bytes) { taken_.fetch_sub(bytes, std::memory_order_relaxed); }

 private:
  const base::UniqueFd meminfo_;
  const uint64_t limit_bytes_;
  std::atomic<uint64_t> taken_{0};
};

}  // namespace fusiond::worker

#endif  // FUSIOND_RUNTIME_WORKER_HOST_MEMORY_H_
