// The real daemon, as a process, in a temporary folder of its own.
//
// Thread-safety: thread-compatible. Ownership: the destructor kills the process and removes the
// folder.
#ifndef FUSIOND_TESTS_E2E_TEST_DAEMON_H_
#define FUSIOND_TESTS_E2E_TEST_DAEMON_H_

#include <sys/types.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client/cc/client.h"
#include "compiler/ir/graph.h"
#include "tests/support/temp_folder.h"

namespace fusiond::testing {

class TestDaemon {
 public:
  struct Options {
    std::vector<std::string> arguments;    // behind --sockets and --state
    std::vector<std::string> environment;  // "NAME=value", besides ours
    std::vector<int> listen_fds;           // given as by socket activation
  };

  TestDaemon() = default;
  ~TestDaemon();
  TestDaemon(const TestDaemon&) = delete;
  TestDaemon& operator=(const TestDaemon&) = delete;

  // From now on starts are by this command, with program and arguments behind it: {"/bin/sh", "-c",
  // "ulimit -n 64; exec \"$@\"", "sh"}.
  void Through(std::vector<std::string> command) { through_ = std::move(command); }
  // From now on starts are without --state.
  void NameNoState() { names_state_ = false; }
  // Starts the process on `sockets()` and `state()`, looking for NVRTC where tests look.
  void Start(const Options& options = {});
  // Starts it and waits until it serves.
  void Serve(const Options& options = {});
  void Signal(int signal) const;
  // Its exit code, or 128 and the signal that ended it.
  int Wait();
  int Stop(int signal) {
    Signal(signal);
    return Wait();
  }

  pid_t pid() const { return pid_; }
  // Its compile processes, whether ready or not.
  std::vector<pid_t> CompileProcesses() const;
  std::string folder() const { return folder_.path(); }
  std::string sockets() const { return folder_.path() + "/run"; }
  std::string state() const { return folder_.path() + "/state"; }
  std::string log() const;
  // Waits until this process has logged it.
  void WaitForLog(const std::string& words) const;

  // Throws, which fails the test, when nobody answers.
  std::unique_ptr<client::Client> Connect() const;

 private:
  TempFolder folder_;
  std::vector<std::string> through_;
  bool names_state_ = true;
  pid_t pid_ = -1;
  size_t log_begins_ = 0;  // of this process, in the log of all
};

// Returns once a compile process has a job.
void WaitUntilBusy(client::Client& client);

// A graph from text behind "fir 1".
ir::Graph Graph(const std::string& text);
// %c = %a + %b over `elements` floats; other `elements`, other key.
ir::Graph AddGraph(int64_t elements = 1024);

// Runs a program to its end: exit code (128 and signal), and what it printed.
struct Ran {
  int code = 0;
  std::string output;
};
Ran RunProgram(const std::vector<std::string>& command);

// Programs of this build.
std::string DaemonProgram();
std::string CtlProgram();

size_t OpenDescriptors(pid_t pid);

}  // namespace fusiond::testing

#endif  // FUSIOND_TESTS_E2E_TEST_DAEMON_H_
