#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <functional>

#include "absl/strings/match.h"
#include "runtime/base/file.h"
#include "server/process/child_process.h"
#include "server/process/harden.h"
#include "server/process/seccomp.h"
#include "server/process/thread_room.h"
#include "tests/support/status_matchers.h"

namespace fusiond::server {
namespace {

using ::fusiond::testing::IsOk;
using ::fusiond::testing::StatusIs;
using ::testing::HasSubstr;

ExitStatus WaitForEnd(ChildProcess& child) {
  pollfd end{child.pidfd(), POLLIN, 0};
  EXPECT_EQ(::poll(&end, 1, 60'000), 1) << "the child does not end";
  return child.Reap().value_or(ExitStatus{});
}

SpawnOptions Shell(const std::string& script) {
  SpawnOptions options;
  options.program = "/bin/sh";
  options.arguments = {"-c", script};
  return options;
}

TEST(ChildProcessTest, ExitCodeAndSignalAreTold) {
  ASSERT_OK_AND_ASSIGN(auto exits, ChildProcess::Spawn(Shell("exit 3")));
  EXPECT_EQ(WaitForEnd(*exits).ToString(), "exited with code 3");
  ASSERT_OK_AND_ASSIGN(auto dies, ChildProcess::Spawn(Shell("kill -SEGV $$")));
  EXPECT_EQ(WaitForEnd(*dies).ToString(), "killed by signal 11 (SEGV)");
}

TEST(ChildProcessTest, NothingIsInheritedButTheSocket) {
  base::UniqueFd leak(::open("/dev/null", O_RDONLY));  // not close-on-exec
  SpawnOptions options = Shell("exec 2>&3; cd /proc/$$/fd; echo * $HOME $GIVEN >&3");
  options.environment = {"GIVEN=given"};
  ASSERT_OK_AND_ASSIGN(auto child, ChildProcess::Spawn(options));
  EXPECT_EQ(WaitForEnd(*child).ToString(), "exited with code 0");
  char text[256] = {};
  ASSERT_GT(::read(child->socket(), text, sizeof(text) - 1), 0);
  // 4 is the folder that the shell lists.
  EXPECT_EQ(std::string(text), "0 1 2 3 4 given\n");
}

TEST(ChildProcessTest, RunningChildIsNotReaped) {
  ASSERT_OK_AND_ASSIGN(auto child, ChildProcess::Spawn(Shell("read line <&3")));
  EXPECT_EQ(child->Reap(), std::nullopt);
  child->Kill();
  EXPECT_EQ(WaitForEnd(*child).ToString(), "killed by signal 9 (KILL)");
}

TEST(ChildProcessTest, MissingProgramIsNotFound) {
  SpawnOptions options;
  options.program = "/nonexistent/program";
  EXPECT_THAT(ChildProcess::Spawn(options),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("/nonexistent/program")));
}

TEST(ChildProcessTest, F25NoDescriptorsIsResourceExhausted) {
  struct rlimit before;
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const struct rlimit none = {0, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  absl::Status status = ChildProcess::Spawn(Shell("exit 0")).status();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted));
}

// Runs `body` in a forked child inside a sandbox, the compile process's unless another is named;
// its answer is the exit code. 250 and above: the sandbox could not be entered.
ExitStatus InSandbox(const std::function<int()>& body,
                     const std::function<absl::Status()>& enter = EnterCompileSandbox) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    if (!Harden().ok()) ::_exit(250);
    if (!enter().ok()) ::_exit(251);
    ::_exit(body());
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  ExitStatus exit;
  exit.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
  exit.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  return exit;
}

// errno of a call that must fail.
int ErrorOf(const std::function<int64_t()>& call) {
  return InSandbox([&] { return call() < 0 ? errno : 0; }).exit_code;
}

TEST(CompileSandboxTest, ComputingAndMemoryWork) {
  EXPECT_EQ(InSandbox([] {
              std::string block(8 << 20, 'x');  // through mmap
              struct rlimit limit = {};
              return block.back() == 'x' && ::getrlimit(RLIMIT_AS, &limit) == 0 ? 7 : 1;
            }).exit_code,
            7);
}

TEST(CompileSandboxTest, FilesDoNotExist) {
  EXPECT_EQ(ErrorOf([] { return ::open("/etc/passwd", O_RDONLY); }), ENOENT);
  EXPECT_EQ(ErrorOf([] { return ::access("/", R_OK); }), ENOENT);
  EXPECT_EQ(ErrorOf([] { return ::syscall(SYS_openat2, AT_FDCWD, "/etc/passwd", nullptr, 0); }),
            ENOENT);
}

TEST(CompileSandboxTest, AttacksKill) {
  const std::vector<std::pair<const char*, std::function<void()>>> attacks = {
      {"socket", [] { ::socket(AF_INET, SOCK_STREAM, 0); }},
      {"connect", [] { ::connect(3, nullptr, 0); }},
      {"exec", [] { ::execl("/bin/true", "true", nullptr); }},
      {"execveat", [] { ::syscall(SYS_execveat, 3, "", nullptr, nullptr, 0); }},
      {"ptrace", [] { ::syscall(SYS_ptrace, 16 /* PTRACE_ATTACH */, ::getpid(), 0, 0); }},
      {"kill of another", [] { ::kill(1, 0); }},
      {"tgkill of another", [] { ::syscall(SYS_tgkill, 1, 1, 0); }},
      {"io_uring", [] { ::syscall(SYS_io_uring_setup, 1, nullptr); }},
      {"bpf", [] { ::syscall(SYS_bpf, 0, nullptr, 0); }},
  };
  for (const auto& [name, attack] : attacks) {
    ExitStatus end = InSandbox([&attack = attack] {
      attack();
      return 0;
    });
    EXPECT_EQ(end.signal, SIGSYS) << name << ": " << end.ToString();
  }
}

TEST(CompileSandboxTest, TheRestIsRefused) {
  EXPECT_EQ(ErrorOf([] { return ::unlink("/tmp/x"); }), EPERM);
  EXPECT_EQ(ErrorOf([] { return ::mkdir("/tmp/x", 0700); }), EPERM);
  EXPECT_EQ(ErrorOf([] { return ::memfd_create("x", 0); }), EPERM);
  EXPECT_EQ(ErrorOf([] { return ::syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0); }), EPERM);
  EXPECT_EQ(ErrorOf([] {
              void* p =
                  ::mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
              return p == MAP_FAILED ? -1 : 0;
            }),
            EPERM);
  EXPECT_EQ(ErrorOf([] {
              void* p = ::mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
              return ::mprotect(p, 4096, PROT_READ | PROT_EXEC);
            }),
            EPERM);
  EXPECT_EQ(ErrorOf([] {
              struct rlimit limit = {1, 1};
              return ::setrlimit(RLIMIT_AS, &limit);
            }),
            EPERM);
  EXPECT_EQ(ErrorOf([] { return ::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0); }), EPERM);
}

TEST(CompileSandboxTest, AbortStillEndsTheProcess) {
  EXPECT_EQ(InSandbox([] {
              ::abort();
              return 0;
            }).signal,
            SIGABRT);
}

absl::Status EnterCpuWorkerSandbox() { return EnterWorkerSandbox(/*gpu=*/false); }
absl::Status EnterGpuWorkerSandbox() { return EnterWorkerSandbox(/*gpu=*/true); }

TEST(WorkerSandboxTest, CpuWorkerServesItsSocketsAndSharesMemory) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
  const ExitStatus end = InSandbox(
      [&ends] {
        const int memory = ::memfd_create("x", MFD_ALLOW_SEALING);
        struct stat size = {};
        if (memory < 0 || ::ftruncate(memory, 4096) != 0 || ::fallocate(memory, 0, 0, 4096) != 0 ||
            ::fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK) != 0 || ::fstat(memory, &size) != 0)
          return 1;
        void* mapped = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
        if (mapped == MAP_FAILED) return 2;
        char byte = 7;
        iovec part = {&byte, 1};
        msghdr message = {};
        message.msg_iov = &part;
        message.msg_iovlen = 1;
        if (::sendmsg(ends[0], &message, 0) != 1 || ::recvmsg(ends[1], &message, 0) != 1) return 3;
        return static_cast<int>(byte);
      },
      EnterCpuWorkerSandbox);
  EXPECT_EQ(end.exit_code, 7) << end.ToString();
}

TEST(WorkerSandboxTest, CpuWorkerReachesNothingElse) {
  const auto error = [](const std::function<int64_t()>& call) {
    return InSandbox([&] { return call() < 0 ? errno : 0; }, EnterCpuWorkerSandbox).exit_code;
  };
  EXPECT_EQ(error([] { return ::open("/etc/passwd", O_RDONLY); }), ENOENT);
  EXPECT_EQ(error([] { return ::unlink("/tmp/x"); }), EPERM);
  EXPECT_EQ(error([] { return ::syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0); }), EPERM);
  for (const std::function<void()>& attack : std::vector<std::function<void()>>{
           [] { ::socket(AF_INET, SOCK_STREAM, 0); }, [] { ::connect(3, nullptr, 0); },
           [] { ::execl("/bin/true", "true", nullptr); }, [] { ::kill(1, 0); }}) {
    const ExitStatus end = InSandbox(
        [&] {
          attack();
          return 0;
        },
        EnterCpuWorkerSandbox);
    EXPECT_EQ(end.signal, SIGSYS) << end.ToString();
  }
}

TEST(WorkerSandboxTest, GpuWorkerStartsNoProgramAndTracesNobody) {
  const auto error = [](const std::function<int64_t()>& call) {
    return InSandbox([&] { return call() < 0 ? errno : 0; }, EnterGpuWorkerSandbox).exit_code;
  };
  EXPECT_EQ(error([] { return ::execl("/bin/true", "true", nullptr); }), EPERM);
  EXPECT_EQ(error([] { return ::syscall(SYS_ptrace, 16 /* PTRACE_ATTACH */, 1, 0, 0); }), EPERM);
  EXPECT_EQ(error([] { return ::kill(1, 0); }), EPERM);
  EXPECT_EQ(error([] { return ::open("/dev/null", O_RDWR); }), 0);  // devices are the driver's
}

TEST(HardenTest, PrivilegesAreGone) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    if (!Harden().ok()) ::_exit(250);
    ASSERT_OK_AND_ASSIGN(std::string status, base::ReadFile("/proc/self/status"));
    const bool capless = absl::StrContains(status, "CapEff:\t0000000000000000");
    const bool no_new = absl::StrContains(status, "NoNewPrivs:\t1");
    int death = 0;
    ::prctl(PR_GET_PDEATHSIG, &death, 0, 0, 0);
    const bool undumpable = ::prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 0;
    ASSERT_OK_AND_ASSIGN(std::string oom_score, base::ReadFile("/proc/self/oom_score_adj"));
    const bool killed_first = std::stoi(oom_score) >= 500;
    ::_exit(capless && no_new && undumpable && death == SIGKILL && killed_first ? 7 : 1);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 7);
}

TEST(MemoryLimitTest, AllocationBeyondTheLimitFails) {
  if (!MemoryLimitWorks()) GTEST_SKIP() << "this build reserves address space (sanitizer)";
  const pid_t pid = ::fork();
  if (pid == 0) {
    absl::StatusOr<MemoryMeter> meter = MemoryMeter::Open();
    if (!meter.ok() || !LimitMemory(*meter, 64 << 20).ok()) ::_exit(250);
    auto map = [](size_t bytes) {
      return ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    };
    const uint64_t before = meter->PeakBytes();
    const bool small = map(32 << 20) != MAP_FAILED;
    const bool large = map(48 << 20) != MAP_FAILED;
    ::_exit(small && !large && meter->PeakBytes() >= before + (30 << 20) ? 7 : 1);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 7);
}

// Exit code of a child that runs `body`.
int InChild(const std::function<int()>& body) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(body());
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// A service manager, or a shell's ulimit -v, may leave less than a compile may use.
TEST(MemoryLimitTest, LowerLimitThatWasGivenStays) {
  if (!MemoryLimitWorks()) GTEST_SKIP() << "this build reserves address space (sanitizer)";
  EXPECT_EQ(InChild([] {
              absl::StatusOr<MemoryMeter> meter = MemoryMeter::Open();
              if (!meter.ok()) return 1;
              const rlim_t given = meter->SizeBytes() + (32 << 20);
              struct rlimit limit = {given, given};
              if (::setrlimit(RLIMIT_AS, &limit) != 0 || !Harden().ok()) return 2;
              if (!LimitMemory(*meter, 64 << 20).ok()) return 3;
              ::getrlimit(RLIMIT_AS, &limit);
              return limit.rlim_max == given ? 0 : 4;
            }),
            0);
}

TEST(HardenTest, ChildWhoseParentHasEndedIsToldSo) {
  EXPECT_EQ(InChild([] {
              int ends[2];
              if (::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return 1;
              ::dup2(ends[0], 500);
              ::close(ends[0]);
              ::close(ends[1]);
              ::dup2(500, kChildSocket);
              return absl::IsUnavailable(Harden()) ? 0 : 2;
            }),
            0);
}

TEST(ThreadRoomTest, MissingThreadsAreToldWithTheLimit) {
  EXPECT_THAT(CheckRoomForThreads(8), testing::IsOk());
  EXPECT_EQ(InChild([] {
              const struct rlimit few = {4, 4};
              // Root has no such limit.
              if (::setrlimit(RLIMIT_NPROC, &few) != 0) return 1;
              if (::geteuid() == 0 && ::setresuid(54321, 54321, 54321) != 0) return 2;
              const absl::Status status = CheckRoomForThreads(8);
              return absl::IsResourceExhausted(status) &&
                             absl::StrContains(status.message(), "8 threads needed") &&
                             absl::StrContains(status.message(), "the user may have 4 (ulimit -u)")
                         ? 0
                         : 3;
            }),
            0);
}

}  // namespace
}  // namespace fusiond::server
