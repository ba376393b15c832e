// The daemon under limits of its process, with closed streams, and with a log that nobody reads.
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cc/paths.h"
#include "runtime/base/file.h"
#include "runtime/channel/client_session.h"
#include "runtime/channel/socket.h"
#include "server/process/harden.h"
#include "tests/e2e/test_daemon.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_folder.h"

namespace fusiond {
namespace {

using ::fusiond::testing::AddGraph;
using ::fusiond::testing::IsOk;
using ::fusiond::testing::StatusIs;
using ::fusiond::testing::TestDaemon;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

// By way of a shell that does `line` first.
void StartThroughShell(TestDaemon& daemon, const std::string& line) {
  daemon.Through({"/bin/sh", "-c", line, "sh"});
  daemon.Start();
}

TEST(LimitsTest, ClosedStreamsAreNobodysNumbers) {
  TestDaemon daemon;
  StartThroughShell(daemon, "exec \"$@\" <&- >&- 2>&-");
  EXPECT_THAT(daemon.Connect()->Compile(AddGraph(), "cpu"), IsOk());
  for (int fd : {0, 1, 2}) {
    EXPECT_EQ(std::filesystem::read_symlink(absl::StrCat("/proc/", daemon.pid(), "/fd/", fd)),
              "/dev/null");
  }
  EXPECT_EQ(daemon.Stop(SIGTERM), 0);
}

TEST(LimitsTest, LogThatNobodyReadsStopsNobody) {
  TestDaemon daemon;
  const std::string path = daemon.folder() + "/fifo";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const base::UniqueFd fifo(::open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
  char bytes[4096] = {};
  while (::write(fifo.get(), bytes, sizeof(bytes)) > 0) {
  }
  StartThroughShell(daemon, absl::StrCat("exec \"$@\" 2>", path));
  std::unique_ptr<client::Client> client = daemon.Connect();
  EXPECT_THAT(client->Compile(AddGraph(), "cpu"), IsOk());
  while (::read(fifo.get(), bytes, sizeof(bytes)) > 0) {
  }
  EXPECT_THAT(client->Compile(AddGraph(64), "cpu"), IsOk());
  const ssize_t size = ::read(fifo.get(), bytes, sizeof(bytes));
  ASSERT_GT(size, 0);
  EXPECT_THAT(std::string(bytes, static_cast<size_t>(size)),
              AllOf(HasSubstr("rpc=Compile"), HasSubstr("lines of log before this were not read")));
  EXPECT_EQ(daemon.Stop(SIGTERM), 0);
}

TEST(LimitsTest, NoClientFillsTheLog) {
  TestDaemon daemon;
  daemon.Serve();
  std::unique_ptr<client::Client> client = daemon.Connect();
  const size_t before = daemon.log().size();
  EXPECT_THAT(client->Compile(AddGraph(), "cpu", {}, {{"math", std::string(1 << 20, '\x01')}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("option math")));
  EXPECT_LT(daemon.log().size(), before + 8192);
}

// The kernel would end the daemon and its workers by a signal.
TEST(LimitsTest, LimitOfAFileIsAFullDiskF19) {
  TestDaemon daemon;
  StartThroughShell(daemon, "ulimit -f 64; exec \"$@\"");  // of 512 bytes
  std::unique_ptr<client::Client> client = daemon.Connect();
  v1::StatusResponse status;
  for (int i = 0; i < 200 && status.degraded_size() < 2; ++i) {  // the other one: no GPU
    ASSERT_THAT(client->Compile(AddGraph(16 + i), "cpu"), IsOk());
    ASSERT_OK_AND_ASSIGN(status, client->GetStatus());
  }
  EXPECT_THAT(status.degraded(), Contains(HasSubstr("cache writes are off: IO error")));
  EXPECT_THAT(client->OpenDevice("cpu"),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("File too large; this process may write 32768 bytes")));
  EXPECT_EQ(daemon.Stop(SIGTERM), 0);
}

TEST(LimitsTest, ChannelThatIsFullSaysSo) {
  TestDaemon daemon;
  daemon.Serve();
  std::unique_ptr<client::Client> client = daemon.Connect();
  std::vector<channel::SupervisorClient> clients;
  for (int i = 0; i < 256; ++i) {
    auto connected = channel::SupervisorClient::Connect(client::ChannelSocket(daemon.sockets()));
    ASSERT_THAT(connected, IsOk());
    clients.push_back(*std::move(connected));
  }
  EXPECT_THAT(
      client->OpenDevice("cpu", absl::ZeroDuration()),
      StatusIs(absl::StatusCode::kUnavailable,
               HasSubstr("hangs up at once: it ends, or does not admit this user, or has")));
  daemon.WaitForLog("that no worker has yet: limit is 256, are 257");
  clients.clear();
  EXPECT_THAT(client->OpenDevice("cpu", absl::Minutes(1)), IsOk());
}

rlim_t AddressSpace(pid_t pid) {
  const std::string status =
      base::ReadFile(absl::StrCat("/proc/", pid, "/status"), 1 << 16).value_or("");
  const size_t at = status.find("VmSize:");
  return at == std::string::npos ? 0 : std::strtoull(&status[at + 7], nullptr, 10) << 10;
}

TEST(LimitsTest, WorkersAddressSpaceIsMemoryThatRunsOut) {
  if (!server::MemoryLimitWorks()) GTEST_SKIP() << "this build reserves address space (sanitizer)";
  constexpr int64_t kElements = int64_t{1} << 22;  // 8 bytes each while they are evaluated
  TestDaemon daemon;
  daemon.Serve();
  std::unique_ptr<client::Client> client = daemon.Connect();
  ASSERT_OK_AND_ASSIGN(auto session, client->OpenDevice("cpu"));
  ASSERT_OK_AND_ASSIGN(const client::Fusion fusion, client->Compile(AddGraph(kElements), "cpu"));
  ASSERT_OK_AND_ASSIGN(const client::RemoteExecutable add, session->Load(fusion.executable_digest));
  client::Buffer buffers[3];
  for (client::Buffer& buffer : buffers) {
    ASSERT_OK_AND_ASSIGN(buffer, session->Allocate(4 * kElements, client::MemoryKind::kHost));
  }
  const client::Place places[] = {{&buffers[0]}, {&buffers[1]}, {&buffers[2]}};
  ASSERT_OK_AND_ASSIGN(v1::StatusResponse status, client->GetStatus());
  ASSERT_EQ(status.workers_size(), 1);
  const auto worker = static_cast<pid_t>(status.workers(0).pid());
  const struct rlimit tight = {AddressSpace(worker) + (16 << 20), RLIM_INFINITY};
  const struct rlimit wide = {RLIM_INFINITY, RLIM_INFINITY};
  ASSERT_EQ(::prlimit(worker, RLIMIT_AS, &tight, nullptr), 0);
  EXPECT_THAT(session->Run(add, places, {}), StatusIs(absl::StatusCode::kResourceExhausted));
  ASSERT_EQ(::prlimit(worker, RLIMIT_AS, &wide, nullptr), 0);
  EXPECT_THAT(session->Run(add, places, {}), IsOk());
}

TEST(LimitsTest, RunBeyondTheLimitOfAddressSpaceIsRefused) {
  if (!server::MemoryLimitWorks()) GTEST_SKIP() << "this build reserves address space (sanitizer)";
  const testing::TempFolder folder;
  const std::string graph = folder.path() + "/big.fir";
  ASSERT_THAT(
      base::WriteFileAtomically(graph, "fir 1\n%a=input:f32[100000000]\n%b=neg %a\noutput %b\n"),
      IsOk());
  const testing::Ran ran = testing::RunProgram(
      {"/bin/sh", "-c",
       absl::StrCat("ulimit -v 600000; exec ", testing::CtlProgram(), " run ", graph)});  // KiB
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.output, HasSubstr("together a run's may take 153600000, a quarter of what this "
                                    "machine and ulimit -v give"));
}

size_t Threads(pid_t pid) {
  const std::filesystem::directory_iterator tasks(absl::StrCat("/proc/", pid, "/task"));
  return static_cast<size_t>(std::distance(begin(tasks), end(tasks)));
}

// A limit that is reached between our look at it and gRPC's start: gRPC goes on without the threads
// and waits for them when it is shut down.
TEST(LimitsTest, StopEndsWhateverWaitsForThreadsThatAreMissing) {
  TestDaemon daemon;
  daemon.Serve({.arguments = {"--drain=0"},
                .environment = {"LD_PRELOAD=" FUSIOND_GRPC_WITHOUT_THREADS},
                .listen_fds = {}});
  // A call may or may not be answered now; that gRPC has started shows in the threads that do
  // start.
  const size_t threads = Threads(daemon.pid());
  ASSERT_OK_AND_ASSIGN(
      const base::UniqueFd caller,
      channel::Connect(client::ControlSocket(daemon.sockets()), SOCK_STREAM, absl::Seconds(60)));
  while (Threads(daemon.pid()) <= threads) ::sched_yield();
  EXPECT_EQ(daemon.Stop(SIGTERM), 1);
  EXPECT_THAT(daemon.log(),
              HasSubstr("error told to stop, fusiond still waits after 10s for gRPC"));
}

// A reload may be asked for before there is anything to reload.
TEST(LimitsTest, HangUpWhileItStartsEndsNothing) {
  TestDaemon daemon;
  const std::string config = daemon.folder() + "/config";
  ASSERT_EQ(::mkfifo(config.c_str(), 0600), 0);
  daemon.Start({.arguments = {"--config", config}, .environment = {}, .listen_fds = {}});
  base::UniqueFd writer(::open(config.c_str(), O_WRONLY | O_CLOEXEC));  // waits for its reader
  daemon.Signal(SIGHUP);
  ASSERT_THAT(base::WriteAll(writer.get(), "drain=1\n"), IsOk());
  writer.reset();
  daemon.WaitForLog("serving at ");
  EXPECT_EQ(daemon.Stop(SIGTERM), 0);
}

}  // namespace
}  // namespace fusiond
