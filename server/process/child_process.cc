#include "server/process/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace fusiond::server {
namespace {

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (const std::string& s : strings) pointers.push_back(const_cast<char*>(s.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// posix_spawn with `socket` as kChildSocket, default signals and an own process group. The answer
// is an errno value.
int SpawnWithSocket(const SpawnOptions& options, int socket, pid_t* pid) {
  std::vector<std::string> arguments = {options.program};
  arguments.insert(arguments.end(), options.arguments.begin(), options.arguments.end());

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, socket, kChildSocket);
  posix_spawn_file_actions_addclosefrom_np(&actions, kChildSocket + 1);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  const int error = ::posix_spawn(pid, options.program.c_str(), &actions, &attributes,
                                  Pointers(arguments).data(), Pointers(options.environment).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return error;
}

}  // namespace

std::string ExitStatus::ToString() const {
  if (signal == 0) return absl::StrCat("exited with code ", exit_code);
  const char* name = ::sigabbrev_np(signal);
  return absl::StrCat("killed by signal ", signal, " (", name == nullptr ? "?" : name, ")");
}

absl::StatusOr<base::UniqueFd> OpenPidfd(pid_t pid) {
  // glibc 2.36 declares pidfd_open without C linkage.
  base::UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd.valid()) return base::ErrnoStatus(errno, absl::StrCat("pidfd of process ", pid));
  return pidfd;
}

absl::StatusOr<std::unique_ptr<ChildProcess>> ChildProcess::Spawn(const SpawnOptions& options) {
  int ends[2];
  if (::socketpair(AF_UNIX, options.socket_type | SOCK_CLOEXEC, 0, ends) != 0) {
    return base::ErrnoStatus(errno, "socket for a child process");
  }
  base::UniqueFd ours(ends[0]);
  base::UniqueFd theirs(ends[1]);
  ::fcntl(ours.get(), F_SETFL, O_NONBLOCK);
  pid_t pid = 0;
  if (int error = SpawnWithSocket(options, theirs.get(), &pid); error != 0) {
    const std::string what = absl::StrCat("start ", options.program);
    if (error != EAGAIN) return base::ErrnoStatus(error, what);
    return absl::ResourceExhaustedError(
        absl::StrCat(what, ": the user or the cgroup has as many processes as it may"));
  }
  std::unique_ptr<ChildProcess> child(new ChildProcess(pid, std::move(ours)));
  FUSIOND_ASSIGN_OR_RETURN(child->pidfd_, OpenPidfd(pid));
  return child;
}

ChildProcess::~ChildProcess() {
  Kill();
  Wait(0);
}

void ChildProcess::Kill() {
  // Until it is waited for, the pid cannot mean another process.
  if (!exit_.has_value()) ::kill(pid_, SIGKILL);
}

std::optional<ExitStatus> ChildProcess::Reap() {
  Wait(WNOHANG);
  return exit_;
}

void ChildProcess::Wait(int flags) {
  if (exit_.has_value()) return;
  int status = 0;
  pid_t pid = 0;
  while ((pid = ::waitpid(pid_, &status, flags)) < 0 && errno == EINTR) {
  }
  if (pid != pid_) return;
  exit_ = ExitStatus{.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 0,
                     .signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0};
}

}  // namespace fusiond::server
