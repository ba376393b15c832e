// What a child process gives up before it touches a client's bytes. Each step is irreversible.
//
// Thread-safety: call from the only thread, once, in the order of this header; the system call
// filter (seccomp.h) comes last.
// Errors: INTERNAL with the system's reason. A process that cannot be hardened must not serve.
#ifndef FUSIOND_SERVER_PROCESS_HARDEN_H_
#define FUSIOND_SERVER_PROCESS_HARDEN_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/base/file.h"

namespace fusiond::server {

// No privilege through exec, no core file, working directory /, no capability, no ptrace or /proc
// access by equals (undumpable), and death when the spawning thread ends. The kernel's
// out-of-memory killer takes it rather than the supervisor, whose end is everybody's.
absl::Status Harden();

// Memory as the kernel counts it against RLIMIT_AS. Opens /proc/self/status once, so that it can be
// asked under a filter without open().
class MemoryMeter {
 public:
  static absl::StatusOr<MemoryMeter> Open();
  // Address space now, and at its largest; 0 if it cannot be read.
  uint64_t SizeBytes() const { return Field("VmSize:"); }
  uint64_t PeakBytes() const { return Field("VmPeak:"); }

 private:
  explicit MemoryMeter(base::UniqueFd status) : status_(std::move(status)) {}
  uint64_t Field(const char* name) const;

  base::UniqueFd status_;
};

// Lets the process take `bytes` of address space beyond what it has now. Does nothing in builds
// with AddressSanitizer or ThreadSanitizer, which reserve terabytes of it.
absl::Status LimitMemory(const MemoryMeter& meter, uint64_t bytes);
// Whether this build can limit memory.
bool MemoryLimitWorks();

}  // namespace fusiond::server

#endif  // FUSIOND_SERVER_PROCESS_HARDEN_H_
