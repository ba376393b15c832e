#include "server/process/seccomp.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

#include "absl/strings/str_cat.h"
#include "runtime/base/file.h"

namespace fusiond::server {
namespace {

absl::Status Failure(absl::string_view step, int negative_errno) {
  return absl::InternalError(
      absl::StrCat("system call filter: ", base::ErrnoStatus(-negative_errno, step).message()));
}

constexpr int kAllowed[] = {
    // memory (mmap and mprotect: below)
    SCMP_SYS(brk), SCMP_SYS(munmap), SCMP_SYS(mremap), SCMP_SYS(madvise),
    // descriptors it has, and pipes to itself (UBSan asks with one whether memory is mapped)
    SCMP_SYS(pipe), SCMP_SYS(pipe2), SCMP_SYS(read), SCMP_SYS(readv), SCMP_SYS(pread64),
    SCMP_SYS(write), SCMP_SYS(writev), SCMP_SYS(lseek), SCMP_SYS(close), SCMP_SYS(fstat),
    SCMP_SYS(poll), SCMP_SYS(ppoll),
    // itself
    SCMP_SYS(getpid), SCMP_SYS(gettid), SCMP_SYS(getuid), SCMP_SYS(geteuid), SCMP_SYS(getgid),
    SCMP_SYS(getegid), SCMP_SYS(getcwd), SCMP_SYS(getrusage), SCMP_SYS(getrlimit), SCMP_SYS(times),
    SCMP_SYS(sysinfo), SCMP_SYS(uname), SCMP_SYS(getrandom), SCMP_SYS(getcpu),
    // time, locks, scheduling
    SCMP_SYS(clock_gettime), SCMP_SYS(clock_getres), SCMP_SYS(gettimeofday), SCMP_SYS(time),
    SCMP_SYS(nanosleep), SCMP_SYS(clock_nanosleep), SCMP_SYS(futex), SCMP_SYS(sched_yield),
    SCMP_SYS(sched_getaffinity), SCMP_SYS(sched_get_priority_max), SCMP_SYS(sched_get_priority_min),
    SCMP_SYS(set_robust_list), SCMP_SYS(rseq), SCMP_SYS(membarrier), SCMP_SYS(restart_syscall),
    // its own signals and its end
    SCMP_SYS(rt_sigaction), SCMP_SYS(rt_sigprocmask), SCMP_SYS(rt_sigreturn), SCMP_SYS(sigaltstack),
    SCMP_SYS(exit), SCMP_SYS(exit_group)};

constexpr int kNoSuchFile[] = {SCMP_SYS(open),       SCMP_SYS(openat),   SCMP_SYS(openat2),
                               SCMP_SYS(creat),      SCMP_SYS(stat),     SCMP_SYS(lstat),
                               SCMP_SYS(statx),      SCMP_SYS(access),   SCMP_SYS(faccessat),
                               SCMP_SYS(faccessat2), SCMP_SYS(readlink), SCMP_SYS(readlinkat),
                               SCMP_SYS(statfs)};

// What a worker's loop does besides: its sockets, memory shared with clients, waiting.
constexpr int kAllowedToWorkers[] = {
    SCMP_SYS(recvmsg),          SCMP_SYS(sendmsg),      SCMP_SYS(recvfrom),  SCMP_SYS(sendto),
    SCMP_SYS(shutdown),         SCMP_SYS(getsockopt),   SCMP_SYS(fcntl),     SCMP_SYS(memfd_create),
    SCMP_SYS(ftruncate),        SCMP_SYS(fallocate),    SCMP_SYS(epoll_ctl), SCMP_SYS(epoll_wait),
    SCMP_SYS(epoll_pwait),      SCMP_SYS(epoll_pwait2), SCMP_SYS(eventfd2),  SCMP_SYS(msync),
    SCMP_SYS(sched_setaffinity)};

constexpr int kSockets[] = {SCMP_SYS(socket), SCMP_SYS(socketpair), SCMP_SYS(connect),
                            SCMP_SYS(bind),   SCMP_SYS(listen),     SCMP_SYS(accept),
                            SCMP_SYS(accept4)};

constexpr int kSending[] = {SCMP_SYS(sendto), SCMP_SYS(sendmsg), SCMP_SYS(sendmmsg)};

constexpr int kHostile[] = {
    // other programs and processes
    SCMP_SYS(execve), SCMP_SYS(execveat), SCMP_SYS(fork), SCMP_SYS(vfork), SCMP_SYS(ptrace),
    SCMP_SYS(process_vm_readv), SCMP_SYS(process_vm_writev), SCMP_SYS(kill), SCMP_SYS(tkill),
    SCMP_SYS(rt_sigqueueinfo), SCMP_SYS(rt_tgsigqueueinfo), SCMP_SYS(pidfd_open),
    SCMP_SYS(pidfd_getfd), SCMP_SYS(pidfd_send_signal),
    // another view of the system
    SCMP_SYS(mount), SCMP_SYS(umount2), SCMP_SYS(move_mount), SCMP_SYS(open_tree), SCMP_SYS(fsopen),
    SCMP_SYS(pivot_root), SCMP_SYS(chroot), SCMP_SYS(unshare), SCMP_SYS(setns),
    // the kernel's attack surface
    SCMP_SYS(bpf), SCMP_SYS(perf_event_open), SCMP_SYS(userfaultfd), SCMP_SYS(io_uring_setup),
    SCMP_SYS(io_uring_enter), SCMP_SYS(io_uring_register), SCMP_SYS(add_key), SCMP_SYS(request_key),
    SCMP_SYS(keyctl), SCMP_SYS(init_module), SCMP_SYS(finit_module), SCMP_SYS(kexec_load),
    SCMP_SYS(reboot),
    // other rights
    SCMP_SYS(setuid), SCMP_SYS(setgid), SCMP_SYS(setresuid), SCMP_SYS(setresgid), SCMP_SYS(capset)};

// SCMP_CMP64 leaves a field to default, which Clang warns of.
scmp_arg_cmp Argument(unsigned argument, scmp_compare op, uint64_t a, uint64_t b = 0) {
  return {argument, op, a, b};
}

// Executable memory is for nobody: all code is loaded by now.
scmp_arg_cmp WithoutExec(unsigned argument) {
  return Argument(argument, SCMP_CMP_MASKED_EQ, PROT_EXEC, 0);
}

template <typename Calls>
void Add(std::vector<SyscallRule>& rules, const Calls& calls, uint32_t action) {
  for (int call : calls) rules.push_back({call, action});
}

// A process that computes: no files, no executable memory, no other process.
std::vector<SyscallRule> ComputingRules() {
  std::vector<SyscallRule> rules;
  Add(rules, kAllowed, SCMP_ACT_ALLOW);
  Add(rules, kNoSuchFile, SCMP_ACT_ERRNO(ENOENT));
  Add(rules, kSockets, SCMP_ACT_KILL_PROCESS);
  Add(rules, kHostile, SCMP_ACT_KILL_PROCESS);
  // fstat, as glibc 2.33 and later calls it, and any other stat.
  rules.push_back({SCMP_SYS(newfstatat),
                   SCMP_ACT_ALLOW,
                   {Argument(3, SCMP_CMP_MASKED_EQ, AT_EMPTY_PATH, AT_EMPTY_PATH)}});
  rules.push_back({SCMP_SYS(newfstatat),
                   SCMP_ACT_ERRNO(ENOENT),
                   {Argument(3, SCMP_CMP_MASKED_EQ, AT_EMPTY_PATH, 0)}});
  rules.push_back({SCMP_SYS(mmap), SCMP_ACT_ALLOW, {WithoutExec(2)}});
  rules.push_back({SCMP_SYS(mprotect), SCMP_ACT_ALLOW, {WithoutExec(2)}});
  // NVRTC raises its own soft stack limit for each compile; other limits of its own may be read.
  const scmp_arg_cmp own_process = Argument(0, SCMP_CMP_EQ, 0);
  rules.push_back(
      {SCMP_SYS(prlimit64), SCMP_ACT_ALLOW, {own_process, Argument(1, SCMP_CMP_EQ, RLIMIT_STACK)}});
  rules.push_back(
      {SCMP_SYS(prlimit64), SCMP_ACT_ALLOW, {own_process, Argument(2, SCMP_CMP_EQ, 0)}});
  // abort() and raise(); a signal to anybody else kills, as kill() does.
  const auto self = static_cast<uint64_t>(::getpid());
  rules.push_back({SCMP_SYS(tgkill), SCMP_ACT_ALLOW, {Argument(0, SCMP_CMP_EQ, self)}});
  rules.push_back({SCMP_SYS(tgkill), SCMP_ACT_KILL_PROCESS, {Argument(0, SCMP_CMP_NE, self)}});
  return rules;
}

}  // namespace

absl::Status LoadSeccompFilter(const std::vector<SyscallRule>& rules, uint32_t otherwise) {
  std::unique_ptr<void, decltype(&seccomp_release)> filter(::seccomp_init(otherwise),
                                                           &::seccomp_release);
  if (filter == nullptr) return Failure("create", -ENOMEM);
  // One filter for all threads, or none.
  if (int error = ::seccomp_attr_set(filter.get(), SCMP_FLTATR_CTL_TSYNC, 1); error != 0) {
    return Failure("apply to all threads", error);
  }
  ::seccomp_attr_set(filter.get(), SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
  for (const SyscallRule& rule : rules) {
    if (rule.action == otherwise) continue;  // libseccomp refuses what says nothing
    const int error =
        ::seccomp_rule_add_array(filter.get(), rule.action, rule.syscall,
                                 static_cast<unsigned>(rule.when.size()), rule.when.data());
    if (error != 0 && error != -EDOM) {  // -EDOM: no such call on this arch
      return Failure(absl::StrCat("rule for system call ", rule.syscall), error);
    }
  }
  if (int error = ::seccomp_load(filter.get()); error != 0) return Failure("load", error);
  return absl::OkStatus();
}

absl::Status EnterCompileSandbox() {
  std::vector<SyscallRule> rules = ComputingRules();
  Add(rules, kSending, SCMP_ACT_KILL_PROCESS);
  return LoadSeccompFilter(rules, SCMP_ACT_ERRNO(EPERM));
}

absl::Status EnterWorkerSandbox(bool gpu) {
  if (!gpu) {
    std::vector<SyscallRule> rules = ComputingRules();
    Add(rules, kAllowedToWorkers, SCMP_ACT_ALLOW);
    return LoadSeccompFilter(rules, SCMP_ACT_ERRNO(EPERM));
  }
  // The driver opens devices, starts threads and may do more after its next update: it is only kept
  // from what no driver needs once its context is there.
  std::vector<SyscallRule> rules;
  Add(rules, kHostile, SCMP_ACT_ERRNO(EPERM));
  return LoadSeccompFilter(rules, SCMP_ACT_ALLOW);
}

}  // namespace fusiond::server
