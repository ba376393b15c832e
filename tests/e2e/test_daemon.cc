#include "tests/e2e/test_daemon.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "compiler/ir/text.h"
#include "runtime/base/file.h"
#include "tests/support/status_matchers.h"

extern char** environ;

namespace fusiond::testing {
namespace {

const std::string kListenPid = "LISTEN_PID=";

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (const std::string& s : strings) pointers.push_back(const_cast<char*>(s.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

int WaitFor(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

TestDaemon::~TestDaemon() {
  if (::testing::Test::HasFailure()) std::fprintf(stderr, "the daemon's log:\n%s\n", log().c_str());
  if (pid_ > 0) Stop(SIGKILL);
}

void TestDaemon::Start(const Options& options) {
  std::vector<std::string> arguments = through_;
  for (const std::string& argument :
       {DaemonProgram(), std::string("--sockets"), sockets(), std::string("--nvrtc-any-owner"),
        std::string("--nvrtc-folder"), std::filesystem::absolute("build/nvrtc").string()}) {
    arguments.push_back(argument);
  }
  if (names_state_) arguments.insert(arguments.end(), {"--state", state()});
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody sets it
  if (const char* nvrtc = std::getenv("FUSIOND_TEST_NVRTC")) {
    arguments.push_back("--nvrtc");
    arguments.push_back(nvrtc);
  }
  arguments.insert(arguments.end(), options.arguments.begin(), options.arguments.end());
  std::vector<std::string> environment(options.environment);
  for (char** entry = environ; *entry != nullptr; ++entry) environment.push_back(*entry);
  if (!options.listen_fds.empty()) {
    environment.push_back(absl::StrCat("LISTEN_FDS=", options.listen_fds.size()));
    environment.push_back(kListenPid + std::string(12, '\0'));
  }
  const std::vector<char*> argv = Pointers(arguments);
  std::vector<char*> envp = Pointers(environment);
  const std::string log_path = folder() + "/log";
  log_begins_ = log().size();
  pid_ = ::fork();
  if (pid_ != 0) return;
  // Only what is safe after fork in a process with threads.
  const int log = ::open(log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  ::dup2(log, 1);
  ::dup2(log, 2);
  // By way of numbers that are no target, so that none is overwritten before its turn.
  constexpr int kFirst = 3, kElsewhere = 500;
  const int count = static_cast<int>(options.listen_fds.size());
  for (int i = 0; i < count; ++i) ::dup2(options.listen_fds[i], kElsewhere + i);
  for (int i = 0; i < count; ++i) ::dup2(kElsewhere + i, kFirst + i);
  for (int i = 0; i < count; ++i) ::close(kElsewhere + i);
  if (!options.listen_fds.empty()) {
    // "LISTEN_PID=" and the digits of our own process, which only we know.
    char* end = envp[envp.size() - 2] + kListenPid.size();
    const pid_t pid = ::getpid();
    pid_t divisor = 1;
    while (pid / divisor >= 10) divisor *= 10;
    for (; divisor > 0; divisor /= 10) *end++ = static_cast<char>('0' + pid / divisor % 10);
    *end = '\0';
  }
  ::execve(argv[0], argv.data(), envp.data());
  ::_exit(127);
}

void TestDaemon::Serve(const Options& options) {
  Start(options);
  WaitForLog(absl::StrCat("serving at ", sockets()));
}

void TestDaemon::Signal(int signal) const { ::kill(pid_, signal); }

int TestDaemon::Wait() {
  const int code = WaitFor(pid_);
  pid_ = -1;
  return code;
}

std::vector<pid_t> TestDaemon::CompileProcesses() const {
  std::vector<pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    pid_t pid = 0;
    if (!absl::SimpleAtoi(entry.path().filename().string(), &pid)) continue;
    const std::string path = entry.path().string();
    const std::string command = base::ReadFile(path + "/cmdline", 4096).value_or("");
    const std::string status = base::ReadFile(path + "/status", size_t{1} << 16).value_or("");
    if (absl::StrContains(command, "--role=compile") &&
        absl::StrContains(status, absl::StrCat("\nPPid:\t", pid_, "\n"))) {
      found.push_back(pid);
    }
  }
  return found;
}

std::string TestDaemon::log() const {
  return base::ReadFile(folder() + "/log", size_t{64} << 20).value_or("");
}

void TestDaemon::WaitForLog(const std::string& words) const {
  while (!absl::StrContains(log().substr(log_begins_), words)) {
    siginfo_t ended = {};
    ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(pid_), &ended, WEXITED | WNOHANG | WNOWAIT), 0);
    ASSERT_EQ(ended.si_pid, 0) << "the daemon ended:\n" << log();
    ::usleep(10'000);
  }
}

std::unique_ptr<client::Client> TestDaemon::Connect() const {
  auto client = client::Client::Connect(sockets(), absl::Seconds(60));
  if (!client.ok()) throw std::runtime_error(client.status().ToString());  // fails the test
  return *std::move(client);
}

void WaitUntilBusy(client::Client& client) {
  while (true) {
    ASSERT_OK_AND_ASSIGN(const v1::StatusResponse status, client.GetStatus());
    if (status.pool().busy() > 0) return;
  }
}

ir::Graph Graph(const std::string& text) {
  absl::StatusOr<ir::Graph> graph = ir::Parse(absl::StrCat("fir 1\n", text));
  EXPECT_THAT(graph, IsOk());
  return *std::move(graph);
}

ir::Graph AddGraph(int64_t elements) {
  return Graph(absl::StrCat("%a=input:f32[", elements, "]\n%b=input:f32[", elements,
                            "]\n%c=add %a, %b\noutput %c"));
}

Ran RunProgram(const std::vector<std::string>& command) {
  int ends[2];
  EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const std::vector<char*> argv = Pointers(command);
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::dup2(ends[1], 1);
    ::dup2(ends[1], 2);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  ::close(ends[1]);
  Ran ran;
  char buffer[4096];
  ssize_t n;
  while ((n = ::read(ends[0], buffer, sizeof(buffer))) > 0)
    ran.output.append(buffer, static_cast<size_t>(n));
  ::close(ends[0]);
  ran.code = WaitFor(pid);
  return ran;
}

std::string DaemonProgram() { return FUSIOND_DAEMON_PROGRAM; }
std::string CtlProgram() { return FUSIOND_CTL_PROGRAM; }

size_t OpenDescriptors(pid_t pid) {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry :
       std::filesystem::directory_iterator(absl::StrCat("/proc/", pid, "/fd")))
    ++count;
  return count;
}

}  // namespace fusiond::testing
