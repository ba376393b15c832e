// A child process of the supervisor, held by its pidfd and one socket.
//
// The child gets its end of the socket as descriptor kChildSocket, nothing else above stderr, the
// environment it is given and no more, default signal handling and a process group of its own (a
// terminal's ^C is the supervisor's to answer).
//
// Thread-safety: thread-compatible. The thread that spawns must live as long as the child: the
// kernel sends a child's parent-death signal when that thread ends.
// Ownership: the destructor kills the child and waits for it.
// Requires: nobody else in this process waits for "any child", and SIGCHLD is not ignored.
#ifndef FUSIOND_SERVER_PROCESS_CHILD_PROCESS_H_
#define FUSIOND_SERVER_PROCESS_CHILD_PROCESS_H_

#include <sys/socket.h>
#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/base/file.h"

namespace fusiond::server {

inline constexpr int kChildSocket = 3;

struct SpawnOptions {
  std::string program = "/proc/self/exe";
  std::vector<std::string> arguments;    // without argv[0]
  std::vector<std::string> environment;  // "NAME=value"
  int socket_type = SOCK_STREAM;
};

struct ExitStatus {
  int exit_code = 0;  // if it ended by itself
  int signal = 0;     // else

  // "exited with code 3", "killed by signal 11 (SEGV)".
  std::string ToString() const;
};

// A descriptor that becomes readable when process `pid` ends.
absl::StatusOr<base::UniqueFd> OpenPidfd(pid_t pid);

class ChildProcess {
 public:
  // RESOURCE_EXHAUSTED without descriptors or processes; NOT_FOUND, PERMISSION_DENIED or INTERNAL
  // where the program does not start. Cost: does not wait for the program to do anything.
  static absl::StatusOr<std::unique_ptr<ChildProcess>> Spawn(const SpawnOptions& options);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }
  int pidfd() const { return pidfd_.get(); }    // readable once the child has ended
  int socket() const { return socket_.get(); }  // ours, non-blocking

  void Kill();
  // How the child ended, nullopt while it runs; never blocks. The answer stays.
  std::optional<ExitStatus> Reap();

 private:
  ChildProcess(pid_t pid, base::UniqueFd socket) : pid_(pid), socket_(std::move(socket)) {}
  void Wait(int flags);

  const pid_t pid_;
  base::UniqueFd pidfd_;
  base::UniqueFd socket_;
  std::optional<ExitStatus> exit_;
};

}  // namespace fusiond::server

#endif  // FUSIOND_SERVER_PROCESS_CHILD_PROCESS_H_
