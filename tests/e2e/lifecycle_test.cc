// How the daemon starts, degrades and stops.
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>
#include <set>

#include "absl/strings/str_cat.h"
#include "client/cc/paths.h"
#include "compiler/import/graph_proto.h"
#include "compiler/nvrtc/locate.h"
#include "runtime/base/file.h"
#include "runtime/channel/socket.h"
#include "tests/e2e/test_daemon.h"
#include "tests/support/nvrtc_for_tests.h"
#include "tests/support/status_matchers.h"

namespace fusiond {
namespace {

using ::fusiond::testing::AddGraph;
using ::fusiond::testing::DaemonProgram;
using ::fusiond::testing::IsOk;
using ::fusiond::testing::RunProgram;
using ::fusiond::testing::StatusIs;
using ::fusiond::testing::TestDaemon;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kAddressInUse = 3, kStateInUse = 4;

TEST(LifecycleTest, LiveSocketIsNotStolenF52) {
  TestDaemon daemon;
  daemon.Serve();
  std::unique_ptr<client::Client> client = daemon.Connect();
  const auto second = RunProgram({DaemonProgram(), "--sockets", daemon.sockets(), "--memory-only"});
  EXPECT_EQ(second.code, kAddressInUse) << second.output;
  EXPECT_THAT(client->Compile(AddGraph(), "cpu"), IsOk());
  EXPECT_THAT(daemon.Connect()->GetStatus(), IsOk());
}

TEST(LifecycleTest, StateInUseIsRefusedF20) {
  TestDaemon daemon;
  daemon.Serve();
  const auto second = RunProgram(
      {DaemonProgram(), "--sockets", daemon.folder() + "/other", "--state", daemon.state()});
  EXPECT_EQ(second.code, kStateInUse);
  EXPECT_THAT(second.output, HasSubstr(absl::StrCat(daemon.pid())));  // who holds it
  EXPECT_THAT(daemon.Connect()->Compile(AddGraph(), "cpu"), IsOk());
}

TEST(LifecycleTest, WrongUsageIsTold) {
  EXPECT_EQ(RunProgram({DaemonProgram(), "--frobnicate"}).code, 2);
  EXPECT_EQ(RunProgram({DaemonProgram(), "--role=boss"}).code, 2);
  for (const char* wrong : {"--log-level=loud", "--drain=-1", "--compile-limit=0", "--drain=soon",
                            "--compile-processes=-1", "--compile-memory=some"}) {
    EXPECT_EQ(RunProgram({DaemonProgram(), "--sockets", "/tmp/x", wrong, "--check-config"}).code, 2)
        << wrong;
  }
  EXPECT_EQ(RunProgram({DaemonProgram(), "--sockets", "/tmp/x", "--check-config"}).code, 0);
  const auto help = RunProgram({DaemonProgram(), "--help"});
  EXPECT_EQ(help.code, 0);
  for (const char* flag : {"--help",
                           "--version",
                           "--config",
                           "--check-config",
                           "--sockets",
                           "--state",
                           "--memory-only",
                           "--service",
                           "--allow-network-fs",
                           "--nvrtc",
                           "--nvrtc-folder",
                           "--nvrtc-any-owner",
                           "--compile-processes",
                           "--compile-memory",
                           "--compile-limit",
                           "--driver",
                           "--cache-memory",
                           "--drain",
                           "--log-level",
                           "--role",
                           "--device",
                           "--probe"}) {
    // With words behind it, not the name alone.
    EXPECT_THAT(help.output, ::testing::ContainsRegex(absl::StrCat(flag, "[ ,=][^-]*[a-z]{3}")));
  }
}

TEST(LifecycleTest, FlagFileIsRead) {
  TestDaemon daemon;
  const std::string file = daemon.folder() + "/fusiond.conf";
  std::ofstream(file) << "log-level=\"debug\"\ndrain=1\n";
  EXPECT_EQ(
      RunProgram({DaemonProgram(), "--sockets", "/tmp/x", "--config", file, "--check-config"}).code,
      0);
  std::ofstream(file) << "frobnicate=1\n";
  EXPECT_EQ(
      RunProgram({DaemonProgram(), "--sockets", "/tmp/x", "--config", file, "--check-config"}).code,
      2);
}

TEST(LifecycleTest, SigtermDrainsF51) {
  TestDaemon daemon;
  daemon.Serve();
  std::unique_ptr<client::Client> client = daemon.Connect();
  ASSERT_OK_AND_ASSIGN(auto session, client->OpenDevice("cpu"));
  ASSERT_THAT(client->Compile(AddGraph(), "cpu"), IsOk());
  EXPECT_EQ(daemon.Stop(SIGTERM), 0);
  EXPECT_THAT(daemon.log(), HasSubstr("stopped"));
  EXPECT_THAT(client->Compile(AddGraph(), "cpu", {}, {}, absl::Seconds(1)), Not(IsOk()));
  EXPECT_TRUE(session->channel_session().Lost());
  EXPECT_FALSE(std::filesystem::exists(client::ControlSocket(daemon.sockets())));
  // What was committed is there.
  daemon.Serve();
  ASSERT_OK_AND_ASSIGN(const client::Fusion kept, daemon.Connect()->Compile(AddGraph(), "cpu"));
  EXPECT_EQ(kept.response.source(), v1::DISK);
}

// A compile stays under way as long as its process is stopped.
TEST(LifecycleTest, SigtermLetsRunningCompilesEndAndRefusesNewOnesF51) {
  TestDaemon daemon;
  daemon.Serve({.arguments = {"--drain", "600", "--compile-processes", "1"},
                .environment = {},
                .listen_fds = {}});
  std::unique_ptr<client::Client> client = daemon.Connect();
  const std::vector<pid_t> processes = daemon.CompileProcesses();
  ASSERT_EQ(processes.size(), 1u);
  for (pid_t process : processes) ::kill(process, SIGSTOP);
  std::future<absl::StatusOr<client::Fusion>> running =
      std::async(std::launch::async, [&] { return client->Compile(AddGraph(16), "cpu"); });
  testing::WaitUntilBusy(*client);
  daemon.Signal(SIGTERM);
  daemon.WaitForLog("draining");
  EXPECT_THAT(client->Compile(AddGraph(32), "cpu"),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("draining")));
  for (pid_t process : processes) ::kill(process, SIGCONT);
  EXPECT_THAT(running.get(), IsOk());
  EXPECT_EQ(daemon.Wait(), 0);
}

TEST(LifecycleTest, StateThatCannotBeUsedIsServedFromMemoryF19) {
  TestDaemon daemon;
  // A file where a folder should be; as root, permissions would not stop us.
  std::ofstream(daemon.folder() + "/file") << "x";
  daemon.Serve({.arguments = {"--state", daemon.folder() + "/file/state"},
                .environment = {},
                .listen_fds = {}});
  std::unique_ptr<client::Client> client = daemon.Connect();
  ASSERT_OK_AND_ASSIGN(const client::Fusion compiled, client->Compile(AddGraph(), "cpu"));
  EXPECT_EQ(compiled.response.source(), v1::COMPILED);
  ASSERT_OK_AND_ASSIGN(const client::Fusion hit, client->Compile(AddGraph(), "cpu"));
  EXPECT_EQ(hit.response.source(), v1::MEMORY);
  ASSERT_OK_AND_ASSIGN(const v1::StatusResponse status, client->GetStatus());
  EXPECT_THAT(status.degraded(), Contains(HasSubstr("cache")));
}

TEST(LifecycleTest, NvrtcThatComesLaterIsFoundOnSighup) {
  absl::StatusOr<nvrtc::OpenLibrary> found = nvrtc::OpenNvrtc(testing::NvrtcLocationForTests());
  if (!found.ok()) GTEST_SKIP() << found.status();
  TestDaemon daemon;
  const std::string link = daemon.folder() + "/nvrtc";
  daemon.Serve({.arguments = {"--nvrtc", link}, .environment = {}, .listen_fds = {}});
  std::unique_ptr<client::Client> client = daemon.Connect();
  EXPECT_THAT(client->Compile(AddGraph(), "sm_90a"),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  std::filesystem::create_symlink(found->path, link);
  daemon.Signal(SIGHUP);
  daemon.WaitForLog("NVRTC 1");
  EXPECT_THAT(client->Compile(AddGraph(), "sm_90a"), IsOk());
}

// The other end of $NOTIFY_SOCKET.
class Notifications {
 public:
  explicit Notifications(const std::string& path)
      : fd_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
    EXPECT_EQ(::bind(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  }
  std::string Next() {
    char buffer[256];
    const ssize_t n = ::recv(fd_.get(), buffer, sizeof(buffer), 0);
    return std::string(buffer, n > 0 ? static_cast<size_t>(n) : 0);
  }

 private:
  base::UniqueFd fd_;
};

TEST(LifecycleTest, SystemdIsToldF53) {
  TestDaemon daemon;
  const std::string path = daemon.folder() + "/notify";
  Notifications notifications(path);
  daemon.Start({.arguments = {},
                .environment = {"NOTIFY_SOCKET=" + path, "WATCHDOG_USEC=1000000"},
                .listen_fds = {}});
  // The watchdog is fed from the start on, ready or not.
  std::set<std::string> heard;
  while (heard.size() < 2) heard.insert(notifications.Next());
  EXPECT_EQ(heard, (std::set<std::string>{"READY=1", "WATCHDOG=1"}));
  daemon.Signal(SIGTERM);
  std::string last = notifications.Next();
  while (last == "WATCHDOG=1") last = notifications.Next();
  EXPECT_EQ(last, "STOPPING=1");
  EXPECT_EQ(daemon.Wait(), 0);
}

TEST(LifecycleTest, SocketsOfSystemdAreUsedByName) {
  TestDaemon daemon;
  ASSERT_THAT(base::MakeFolders(daemon.sockets()), IsOk());
  const auto listen = [&](const std::string& name, int type) {
    base::UniqueFd fd(::socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, name.c_str(), sizeof(address.sun_path) - 1);
    EXPECT_EQ(::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(::listen(fd.get(), 128), 0);
    return fd;
  };
  const base::UniqueFd control = listen(client::ControlSocket(daemon.sockets()), SOCK_STREAM);
  const base::UniqueFd channel = listen(client::ChannelSocket(daemon.sockets()), SOCK_SEQPACKET);
  daemon.Serve({.arguments = {},
                .environment = {"LISTEN_FDNAMES=channel:control"},
                .listen_fds = {channel.get(), control.get()}});
  std::unique_ptr<client::Client> client = daemon.Connect();
  ASSERT_OK_AND_ASSIGN(const client::Fusion fusion, client->Compile(AddGraph(), "cpu"));
  EXPECT_THAT(client->Lease(fusion.executable_digest), IsOk());
  EXPECT_EQ(daemon.Stop(SIGTERM), 0);
  EXPECT_TRUE(std::filesystem::exists(client::ControlSocket(daemon.sockets())));  // systemd's
}

}  // namespace
}  // namespace fusiond
