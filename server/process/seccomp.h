// System call filters from tables, and those of compile processes and workers.
//
// Thread-safety: a filter applies to every thread of the process and cannot be undone.
// Errors: INTERNAL where the kernel or libseccomp refuses; the process must not serve then.
// Source: seccomp(2), libseccomp 2.5.
#ifndef FUSIOND_SERVER_PROCESS_SECCOMP_H_
#define FUSIOND_SERVER_PROCESS_SECCOMP_H_

#include <seccomp.h>

#include <vector>

#include "absl/status/status.h"

namespace fusiond::server {

struct SyscallRule {
  int syscall;                          // SCMP_SYS(name); one that this arch lacks is passed over
  uint32_t action;                      // SCMP_ACT_…
  std::vector<scmp_arg_cmp> when = {};  // all must hold
};

// Calls named by no rule get `otherwise`. Requires: no_new_privs (harden.h).
absl::Status LoadSeccompFilter(const std::vector<SyscallRule>& rules, uint32_t otherwise);

// A compile process may compute, take and return memory that is not executable, read and write the
// descriptors that it has, and end. Files do not exist (ENOENT): NVRTC looks for some and goes on.
// What only an attacker asks for (sockets, exec, ptrace, signals to others, …) kills the process,
// so that it is seen; anything else, new threads included, is refused with EPERM.
absl::Status EnterCompileSandbox();

// A CPU worker may do as much, and serve its sockets and the memory that it shares with clients. A
// GPU worker may do what the CUDA driver does; starting programs, looking into other processes,
// loading code into the kernel and the like are refused with EPERM. Call with all threads started
// and the device open.
absl::Status EnterWorkerSandbox(bool gpu);

}  // namespace fusiond::server

#endif  // FUSIOND_SERVER_PROCESS_SECCOMP_H_
