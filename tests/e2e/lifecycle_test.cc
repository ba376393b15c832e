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

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
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
using ::testing::AllOf;
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
  EXPECT_THAT(second.output, HasSubstr("; stop that process, or name another folder by --sockets"));
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
  EXPECT_THAT(second.output, HasSubstr("; stop that process, or name another folder by --state"));
  EXPECT_THAT(daemon.Connect()->Compile(AddGraph(), "cpu"), IsOk());
}

// On folders that can be used.
testing::Ran CheckConfig(const std::vector<std::string>& arguments) {
  static const testing::TempFolder folder;
  std::vector<std::string> command = {DaemonProgram(), "--sockets=" + folder.path() + "/run",
                                      "--memory-only", "--check-config"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return RunProgram(command);
}

TEST(LifecycleTest, WrongUsageIsTold) {
  EXPECT_EQ(RunProgram({DaemonProgram(), "--frobnicate"}).code, 2);
  EXPECT_EQ(RunProgram({DaemonProgram(), "--role=boss"}).code, 2);
  EXPECT_EQ(CheckConfig({}).code, 0);
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

// Values that parse as numbers and mean nothing, and values that nobody can mean: each is refused
// by name, with the rule and the value.
TEST(LifecycleTest, ImpossibleValuesAreRefusedWithTheirRule) {
  struct Row {
    std::string flag;
    std::vector<std::string> wrong, right;
    std::string rule;
  };
  const Row rows[] = {
      {"--log-level", {"loud"}, {"debug"}, ""},
      {"--drain", {"-1", "nan", "inf", "soon", "1e9"}, {"0", "2.5", "86400"}, "0 to 86400"},
      {"--compile-limit",
       {"0", "-5", "nan", "inf", "1e-9", "1e300", "x"},
       {"0.1", "600"},
       "0.1 to 86400"},
      {"--compile-processes", {"-1", "nan", "1.5", "100000", "many"}, {"0", "64"}, "0 to 1024"},
      {"--compile-memory",
       {"1", "0", "-1", "nan", "some", "63M", "2T", "1GG", "9223372036854775808"},
       {"64M", "1GiB", "1.5g", "1073741824", "512mb"},
       "64M to 1T"},
      {"--cache-memory", {"-1", "nan", "lots", "1e30", "1P"}, {"0", "64k", "1T"}, "0 to 1T"},
  };
  for (const Row& row : rows) {
    for (const std::string& value : row.wrong) {
      const testing::Ran ran = CheckConfig({absl::StrCat(row.flag, "=", value)});
      EXPECT_EQ(ran.code, 2) << row.flag << "=" << value;
      EXPECT_THAT(ran.output, AllOf(HasSubstr(row.flag), HasSubstr(row.rule), HasSubstr(value)));
      EXPECT_THAT(ran.output, Not(HasSubstr("e+308")));
      EXPECT_THAT(ran.output, Not(HasSubstr("99999999999")));
    }
    for (const std::string& value : row.right) {
      const testing::Ran ran = CheckConfig({absl::StrCat(row.flag, "=", value)});
      EXPECT_EQ(ran.code, 0) << row.flag << "=" << value << ": " << ran.output;
    }
  }
}

// What a start would refuse, or go without, on this host.
TEST(LifecycleTest, CheckConfigLooksAtTheHost) {
  TestDaemon daemon;  // for its folder
  const std::string folder = daemon.folder();
  std::ofstream(folder + "/file") << "x";
  std::ofstream(folder + "/libnvrtc.so") << "no library";
  std::filesystem::create_directory(folder + "/taken");
  std::ofstream(folder + "/taken/channel.sock") << "x";
  const std::pair<std::vector<std::string>, std::vector<std::string>> rows[] = {
      {{"--nvrtc", folder + "/none.so"}, {"--nvrtc: ", "/none.so"}},
      {{"--nvrtc-any-owner", "--nvrtc", folder + "/libnvrtc.so"}, {"--nvrtc: ", "/libnvrtc.so"}},
      {{"--nvrtc-folder", folder + "/none"}, {"--nvrtc-folder: ", "/none: No such file"}},
      {{"--nvrtc-folder", folder + "/file"}, {"--nvrtc-folder: ", "is no folder"}},
      {{"--driver", folder + "/libcuda.so"}, {"--driver: ", "No such file"}},
      {{"--driver", folder}, {"--driver: ", "is a folder"}},
      {{"--sockets", folder + "/file/run"}, {"--sockets: ", "/file is no folder"}},
      {{"--sockets", folder + "/taken"}, {"--sockets: ", "channel.sock exists and is no socket"}},
      {{"--sockets", folder + "/" + std::string(120, 'x')}, {"--sockets: ", "is 107 bytes"}},
  };
  for (const auto& [arguments, words] : rows) {
    const testing::Ran ran = CheckConfig(arguments);
    EXPECT_EQ(ran.code, 2) << arguments.back();
    for (const std::string& word : words) EXPECT_THAT(ran.output, HasSubstr(word));
  }
  for (const char* state : {"/dev/null", "/dev/null/state"}) {
    const testing::Ran ran =
        RunProgram({DaemonProgram(), "--sockets=" + folder, "--check-config", "--state", state});
    EXPECT_EQ(ran.code, 2) << state;
    EXPECT_THAT(ran.output, AllOf(HasSubstr("--state: "), HasSubstr("/dev/null is no folder")));
  }
  // All problems at once.
  const testing::Ran both = CheckConfig({"--nvrtc", "/none", "--driver", "/none"});
  EXPECT_THAT(both.output, AllOf(HasSubstr("--nvrtc: "), HasSubstr("--driver: ")));
  EXPECT_FALSE(std::filesystem::exists(daemon.sockets()));  // and nothing is made
}

TEST(LifecycleTest, FlagFileIsReadAndItsErrorsNameFileAndLine) {
  TestDaemon daemon;
  const std::string file = daemon.folder() + "/fusiond.conf";
  std::ofstream(file) << "# all of it\n\nlog-level = \"debug\"\ndrain=1\n; one a line\n"
                      << "compile-memory=512M\nmemory-only=true\n"
                      << "nvrtc-folder=/tmp\nnvrtc-folder='/usr'\n";
  const testing::Ran good = CheckConfig({"--config", file});
  EXPECT_EQ(good.code, 0) << good.output;
  const std::pair<std::string, std::string> rows[] = {
      {"frobnicate=1", "no flag 'frobnicate'"}, {"drain=nan", "--drain: seconds, 0 to 86400"},
      {"drain", "NAME=VALUE expected"},         {"[section]", "NAME=VALUE expected"},
      {"memory-only=maybe", "memory-only"},     {"role=worker", "no flag 'role'"},
      {"config=/other", "no flag 'config'"},
  };
  for (const auto& [line, words] : rows) {
    std::ofstream(file) << "# first\nlog-level=info\n" << line << "\n";
    const testing::Ran ran = CheckConfig({"--config", file});
    EXPECT_EQ(ran.code, 2) << line;
    EXPECT_THAT(ran.output, AllOf(HasSubstr(absl::StrCat(file, ":3: ")), HasSubstr(words)));
  }
  const testing::Ran none = CheckConfig({"--config", daemon.folder() + "/none.conf"});
  EXPECT_EQ(none.code, 2);
  EXPECT_THAT(none.output, HasSubstr("none.conf: No such file"));
  // The command line wins.
  std::ofstream(file) << "drain=7\n";
  daemon.Serve(
      {.arguments = {"--config", file, "--drain", "0.5"}, .environment = {}, .listen_fds = {}});
  EXPECT_EQ(daemon.Stop(SIGTERM), 0);
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

TEST(LifecycleTest, StateBehindALinkToNowhereIsServedFromMemoryF19) {
  TestDaemon daemon;
  std::filesystem::create_directory(daemon.state());
  std::filesystem::create_symlink(daemon.folder() + "/nowhere", daemon.state() + "/cache");
  daemon.Serve();
  std::unique_ptr<client::Client> client = daemon.Connect();
  ASSERT_OK_AND_ASSIGN(const v1::StatusResponse status, client->GetStatus());
  EXPECT_THAT(status.degraded(), Contains(HasSubstr("cache")));
}

// What a start could not keep is kept later, also where no probe's end brings it up again.
TEST(LifecycleTest, NvrtcThatWasFoundIsKeptOnceThereIsAPlaceF19) {
  if (!nvrtc::OpenNvrtc(testing::NvrtcLocationForTests()).ok()) GTEST_SKIP() << "no NVRTC here";
  TestDaemon daemon;
  const std::string place = daemon.folder() + "/file", state = place + "/state";
  std::ofstream(place) << "x";
  daemon.Start({.arguments = {"--state", state, "--driver", FUSIOND_HANGING_DRIVER},
                .environment = {},
                .listen_fds = {}});
  daemon.WaitForLog("NVRTC's identity is not kept");
  std::filesystem::remove(place);
  bool probed = false;
  while (!probed && !std::filesystem::exists(state + "/nvrtc")) {
    ::usleep(10'000);
    probed = absl::StrContains(daemon.log(), "no GPU: ");  // after 20 s
  }
  EXPECT_FALSE(probed);
}

// Errors quote what the disk holds.
TEST(LifecycleTest, BytesOfTheDiskBeginNoLineInTheLogF03) {
  TestDaemon daemon;
  daemon.Serve();
  EXPECT_EQ(daemon.Stop(SIGTERM), 0);
  std::ofstream(daemon.state() + "/cache/db/CURRENT") << "MANIFEST-\033[2J\nforged\n";
  daemon.Serve();
  EXPECT_THAT(daemon.log(), AllOf(HasSubstr("\\033[2J\\nforged"), Not(HasSubstr("\nforged"))));
}

TEST(LifecycleTest, DamagedLogOfTheCacheIsInLogAndStatusF03) {
  TestDaemon daemon;
  daemon.Serve();
  ASSERT_THAT(daemon.Connect()->Compile(AddGraph(), "cpu"), IsOk());
  daemon.Stop(SIGKILL);
  const std::string db = daemon.state() + "/cache/db";
  for (const auto& entry : std::filesystem::directory_iterator(db)) {
    if (entry.path().extension() != ".log" || entry.file_size() == 0) continue;
    std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(20).write("damage", 6);
  }
  daemon.Serve();
  daemon.WaitForLog(".log: dropping ");
  ASSERT_OK_AND_ASSIGN(const v1::StatusResponse status, daemon.Connect()->GetStatus());
  EXPECT_GT(status.cache_dropped_bytes(), 0u);
  EXPECT_THAT(RunProgram({testing::CtlProgram(), "--sockets", daemon.sockets(), "status"}).output,
              HasSubstr("of a damaged log\n"));
}

// What is said of the cache is what is so, and not only what was asked for.
TEST(LifecycleTest, CacheInMemoryIsNotSaidToBeOnDisk) {
  TestDaemon daemon;
  daemon.Serve({.arguments = {"--state", "/dev/null"}, .environment = {}, .listen_fds = {}});
  EXPECT_THAT(daemon.log(), HasSubstr("cache in memory for now, not in /dev/null"));
  daemon.Stop(SIGTERM);
  daemon.Serve({.arguments = {"--memory-only"}, .environment = {}, .listen_fds = {}});
  EXPECT_THAT(daemon.log(), ::testing::ContainsRegex("cache in memory\n"));
}

TEST(LifecycleTest, RemovedFoldersAreNoticedAndMadeAnew) {
  TestDaemon daemon;
  daemon.Serve();
  std::unique_ptr<client::Client> client = daemon.Connect();
  ASSERT_THAT(client->Compile(AddGraph(16), "cpu"), IsOk());
  std::filesystem::remove_all(daemon.sockets());
  std::filesystem::remove_all(daemon.state());
  for (const char* name : {"control.sock", "channel.sock"})
    daemon.WaitForLog(absl::StrCat(daemon.sockets(), "/", name, " was removed; it is there again"));
  daemon.WaitForLog("/cache was removed or replaced");
  daemon.WaitForLog("writes are on again");
  // Old connections go on, new ones are made, and what is compiled is kept.
  EXPECT_THAT(client->Compile(AddGraph(16), "cpu"), IsOk());
  std::unique_ptr<client::Client> anew = daemon.Connect();
  ASSERT_OK_AND_ASSIGN(const client::Fusion fusion, anew->Compile(AddGraph(32), "cpu"));
  EXPECT_THAT(anew->OpenDevice("cpu"), IsOk());
  ASSERT_OK_AND_ASSIGN(const v1::StatusResponse status, anew->GetStatus());
  EXPECT_THAT(status.degraded(), Not(Contains(HasSubstr("removed"))));
  EXPECT_EQ(daemon.Stop(SIGTERM), 0);
  daemon.Serve();
  ASSERT_OK_AND_ASSIGN(const client::Fusion kept, daemon.Connect()->Compile(AddGraph(32), "cpu"));
  EXPECT_EQ(kept.response.source(), v1::DISK);
}

TEST(LifecycleTest, SocketThatCannotBeMadeAnewIsInStatus) {
  TestDaemon daemon;
  daemon.Serve();
  std::unique_ptr<client::Client> client = daemon.Connect();
  std::filesystem::remove_all(daemon.sockets());
  std::ofstream(daemon.sockets()) << "a file where the folder was";
  daemon.WaitForLog("control.sock was removed, and nobody can connect");
  daemon.WaitForLog("channel.sock was removed, and nobody can connect");
  ASSERT_OK_AND_ASSIGN(v1::StatusResponse status, client->GetStatus());
  EXPECT_THAT(status.degraded(), Contains(HasSubstr("control.sock was removed")));
  EXPECT_THAT(status.degraded(), Contains(HasSubstr("channel.sock was removed")));
  std::filesystem::remove(daemon.sockets());
  daemon.WaitForLog("control.sock leads here again");
  daemon.WaitForLog("channel.sock leads here again");
  ASSERT_OK_AND_ASSIGN(status, daemon.Connect()->GetStatus());
  EXPECT_THAT(status.degraded(), Not(Contains(HasSubstr("removed"))));
}

// Every role's lines have time and level.
TEST(LifecycleTest, LinesOfWorkersLookLikeTheDaemons) {
  TestDaemon daemon;
  daemon.Serve({.arguments = {"--log-level", "debug"}, .environment = {}, .listen_fds = {}});
  { ASSERT_THAT(daemon.Connect()->OpenDevice("cpu"), IsOk()); }
  daemon.WaitForLog("session ended");
  EXPECT_EQ(daemon.Stop(SIGTERM), 0);
  for (absl::string_view line : absl::StrSplit(daemon.log(), '\n', absl::SkipEmpty())) {
    EXPECT_THAT(
        std::string(line),
        ::testing::ContainsRegex("^[0-9]{4}-[0-9]{2}-[0-9]{2}T[^ ]+ (debug|info|warning|error) "));
  }
}

// The GPU's driver is somebody else's code: its crash is told as what it is.
TEST(LifecycleTest, ProbeThatCrashesIsToldWithItsSignal) {
  TestDaemon daemon;
  daemon.Serve(
      {.arguments = {"--driver", FUSIOND_CRASHING_DRIVER}, .environment = {}, .listen_fds = {}});
  ASSERT_OK_AND_ASSIGN(const v1::DevicesResponse devices, daemon.Connect()->Devices());
  EXPECT_THAT(devices.problem(), AllOf(HasSubstr("the device probe gave no answer"),
                                       HasSubstr("killed by signal 6 (ABRT)")));
}

// Each end of a child that nobody asked for is in the status, with its reason.
TEST(LifecycleTest, CompileProcessThatEndsIdleIsToldWithItsSignal) {
  TestDaemon daemon;
  daemon.Serve();
  std::unique_ptr<client::Client> client = daemon.Connect();
  const std::vector<pid_t> processes = daemon.CompileProcesses();
  ASSERT_FALSE(processes.empty());
  ASSERT_EQ(::kill(processes[0], SIGTERM), 0);
  const std::string how =
      absl::StrCat("compile process ", processes[0], " killed by signal 15 (TERM) ");
  daemon.WaitForLog(how);
  v1::StatusResponse status;
  do {
    ASSERT_OK_AND_ASSIGN(status, client->GetStatus());
  } while (!absl::StartsWith(status.pool().last_end(), how));
  EXPECT_EQ(status.pool().crashes(), 0u);
  EXPECT_THAT(client->Compile(AddGraph(), "cpu"), IsOk());
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
