// fusionctl against the real daemon: exit codes, and what it says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/cc/paths.h"
#include "runtime/channel/client_session.h"
#include "runtime/channel/socket.h"
#include "runtime/executable/device_info.h"
#include "tests/e2e/fusionctl_fixture.h"
#include "tests/e2e/test_daemon.h"
#include "tests/support/status_matchers.h"

namespace fusiond {
namespace {

using ::fusiond::testing::CtlProgram;
using ::fusiond::testing::FusionctlTest;
using ::fusiond::testing::IsOk;
using ::fusiond::testing::Ran;
using ::fusiond::testing::StatusIs;
using ::fusiond::testing::TestDaemon;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

// Says `greeting` to whoever connects, and hangs up where it is empty.
class Greeter {
 public:
  Greeter(const std::string& path, std::string greeting) : greeting_(std::move(greeting)) {
    absl::StatusOr<channel::UnixListener> listener =
        channel::UnixListener::Listen(path, SOCK_STREAM, 0600);
    EXPECT_THAT(listener, IsOk());
    if (!listener.ok()) return;
    listener_.emplace(*std::move(listener));
    thread_ = std::thread([this] { Serve(); });
  }
  ~Greeter() {
    done_ = true;
    if (thread_.joinable()) thread_.join();
  }

 private:
  void Serve() {
    std::vector<base::UniqueFd> open;
    while (!done_) {
      pollfd waiting = {listener_->fd(), POLLIN, 0};
      if (::poll(&waiting, 1, 10) == 0) continue;
      absl::StatusOr<channel::AcceptedConnection> accepted = listener_->Accept();
      if (!accepted.ok() || greeting_.empty()) continue;
      EXPECT_EQ(::send(accepted->fd.get(), greeting_.data(), greeting_.size(), MSG_NOSIGNAL),
                static_cast<ssize_t>(greeting_.size()));
      open.push_back(std::move(accepted->fd));
    }
  }

  const std::string greeting_;
  std::optional<channel::UnixListener> listener_;
  std::atomic<bool> done_ = false;
  std::thread thread_;
};

TEST_F(FusionctlTest, ExitCodesAreAsDocumentedInWordsAndAsJson) {
  daemon_.Serve();
  const std::string bad = File("bad", "%a=input:f32[8]\n%b=neg %a, %a\noutput %b");
  const std::string lossy = File("lossy",
                                 "%a=input:f32[8]\n%c=constant{value=1e8}\n%b=add %a, %c\n"
                                 "%d=sub %b, %c\noutput %d");
  struct Case {
    std::vector<std::string> arguments;
    int code;
    const char* status;
    const char* words;
  };
  const Case cases[] = {
      // Refused here, with rule and code; refused by the daemon.
      {{"compile", bad}, 1, "INVALID_ARGUMENT", "bad.fir:3:4: "},
      {{"compile", Good(), "--target", "sm_1"}, 1, "NOT_FOUND", "'sm_1' is unknown"},
      {{"run", bad}, 1, "INVALID_ARGUMENT", "IR-08"},
      {{"explain", bad}, 1, "INVALID_ARGUMENT", "IR-08"},
      {{"artifacts", bad}, 1, "INVALID_ARGUMENT", "IR-08"},
      {{"compile", Good(), "--option", "math=no"}, 1, "INVALID_ARGUMENT", "'no' is none of"},
      {{"artifacts", Good(), "--kind", "oil"}, 1, "INVALID_ARGUMENT", "'oil' is none of"},
      {{"run", File("large", "%a=input:f32[1099511627776]\n%b=neg %a\noutput %b")},
       1,
       "RESOURCE_EXHAUSTED",
       "input 0 takes 4398046511104 bytes"},
      {{"run", File("much", absl::StrCat("%a=input:f32[", Sixth(), "]\n%b=input:f32[", Sixth(),
                                         "]\n%c=add %a, %b\noutput %c"))},
       1,
       "RESOURCE_EXHAUSTED",
       "input 1 takes "},
      {{"run", File("wide",
                    "%a=input:f32[1]\n%b=expand %a {shape=[1099511627776]}\n%c=neg %b\n"
                    "output %c")},
       1,
       "RESOURCE_EXHAUSTED",
       "output 0 takes 4398046511104 bytes, the tensors before it 4; together a run's may take"},
      {{"compile", Open(), "--extents", "2x5"}, 1, "INVALID_ARGUMENT", "declared 4, 5 given"},
      // The command line, and files.
      {{"compile", Open()}, 2, "INVALID_ARGUMENT", "--extents: input 0 is f32[-1,4]{4,1}: say"},
      {{"compile", Open(), "--extents", "2y4"}, 2, "INVALID_ARGUMENT", "'2y4' is no extent"},
      {{"compile", "/nowhere"}, 2, "NOT_FOUND", "/nowhere"},
      {{"compile", "/tmp"}, 2, "FAILED_PRECONDITION", "read /tmp: Is a directory"},
      {{"compile", "-"}, 1, "INVALID_ARGUMENT", "standard input:1:1: "},
      {{"run", Good(), "--seed", "-1"}, 2, "INVALID_ARGUMENT", "--seed: 0 to 2^64 - 1, not '-1'"},
      {{"cache", "list", "--limit", "0"}, 2, "INVALID_ARGUMENT", "--limit"},
      {{"--sockets", "", "status"}, 2, "INVALID_ARGUMENT", "--sockets names no folder"},
      {{"--sockets", std::string(120, 'x'), "status"}, 2, "INVALID_ARGUMENT", "limit is 107 bytes"},
      {{"compile", Good(), "--output", "/nowhere/x"}, 2, "NOT_FOUND", "/nowhere"},
      {{"artifacts", Good(), "--folder", "/proc/x"}, 2, "NOT_FOUND", "/proc/x"},
      {{"run", Good(), "--input", "1=1"}, 2, "INVALID_ARGUMENT", "there is no input 1"},
      {{"run", Good(), "--local"}, 2, "INVALID_ARGUMENT", "--local launches on a GPU"},
      {{"run", Good(), "--driver", "x"}, 2, "INVALID_ARGUMENT", "--local"},
      {{"run", Good(), "--target", "sm_90a", "--local", "--driver", "/nowhere"},
       1,
       "FAILED_PRECONDITION",
       "--local launches in this process, which finds no GPU: "},
      {{"cache", "evict", "xyz"}, 2, "INVALID_ARGUMENT", "'xyz' is neither a key nor"},
      {{"cache", "evict"}, 2, "INVALID_ARGUMENT", "a key or its first digits, or --all"},
      {{"cache", "evict", std::string(65, 'a')}, 2, "INVALID_ARGUMENT", "65 characters given"},
      {{"cache", "evict", "ab", "--all"}, 2, "INVALID_ARGUMENT", "key excludes --all"},
      {{"cache", "evict", std::string(64, 'a')}, 1, "NOT_FOUND", "aaaa"},
      {{"cache", "evict", "0123456789"}, 1, "NOT_FOUND", "0123456789"},
      {{"cache", "sell"}, 2, "INVALID_ARGUMENT", "'sell' is not known here"},
      {{"sell"}, 2, "INVALID_ARGUMENT", "'sell' is not known here"},
      {{"status", "--loud"}, 2, "INVALID_ARGUMENT", "--loud"},
      {{}, 2, "INVALID_ARGUMENT", "--help"},
      // What the check compares is no failure of the run.
      {{"run", lossy, "--input", "0=0.3", "--check"}, 4, "", "0 of 8 elements within tolerance"},
      {{"run", lossy, "--input", "0=0", "--check"}, 0, "", "8 of 8 elements within tolerance"},
      {{"compile", Good()}, 0, "", "source"},
      {{"compile", Open(), "--extents", "2x4"}, 0, "", "source"},
      {{"status"}, 0, "", "SERVING"},
      {{"compile", Good(), "--target", "sm_1", "--target", "cpu"}, 0, "", "source"},  // last wins
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(absl::StrCat(::testing::PrintToString(c.arguments)));
    const Ran ran = Ctl(c.arguments);
    EXPECT_EQ(ran.code, c.code) << ran.output;
    EXPECT_THAT(ran.output, AllOf(HasSubstr(c.status), HasSubstr(c.words)));
    std::vector<std::string> as_json = c.arguments;
    as_json.insert(as_json.begin(), "--json");
    const Ran json = Ctl(as_json);
    EXPECT_EQ(json.code, c.code) << json.output;
    if (*c.status != '\0') {
      EXPECT_THAT(json.output,
                  HasSubstr(absl::StrCat("{\"error\": {\"code\": \"", c.status, "\"")));
      EXPECT_THAT(json.output, HasSubstr(absl::StrCat("\"exit_code\": ", c.code, "}}")));
    } else {
      EXPECT_THAT(json.output, Not(HasSubstr("error")));
    }
  }
}

TEST_F(FusionctlTest, HelpOfEveryCommandLeadsToTheExitCodes) {
  const Ran all = Ctl({"--help"});
  EXPECT_EQ(all.code, 0);
  EXPECT_THAT(all.output, AllOf(HasSubstr("  4  run --check: a result is off tolerance\n"),
                                HasSubstr("--json"), HasSubstr("--sockets FOLDER")));
  for (const char* command :
       {"compile", "run", "warm", "explain", "diff", "artifacts", "cache", "status", "devices"}) {
    EXPECT_THAT(all.output, HasSubstr(absl::StrCat("\n  ", command, "  "))) << command;
    const Ran ran = Ctl({command, "--help"});
    EXPECT_EQ(ran.code, 0);
    EXPECT_THAT(ran.output, HasSubstr("fusionctl --help has --sockets, --json and the exit codes"))
        << command;
  }
  EXPECT_THAT(Ctl({"artifacts", "--help"}).output, HasSubstr("cuda, ptx, sass"));
}

TEST_F(FusionctlTest, HelpNamesWhatTargetAndSocketsTake) {
  EXPECT_THAT(Ctl({"--help"}).output,
              AllOf(HasSubstr("$FUSIOND_SOCKETS"), HasSubstr("$XDG_RUNTIME_DIR/fusiond"),
                    HasSubstr("/run/fusiond")));
  for (const char* command : {"compile", "run", "warm", "explain", "artifacts"}) {
    const Ran ran = Ctl({command, "--help"});
    EXPECT_THAT(ran.output, HasSubstr("sm_80, sm_86, sm_89, sm_90a, sm_100a, sm_120a"));
    for (const executable::DeviceInfo& info : executable::Profiles())
      EXPECT_THAT(ran.output, HasSubstr(info.profile)) << command;
  }
}

TEST_F(FusionctlTest, RunShowsItsOutputs) {
  daemon_.Serve();
  const std::string graph = File("two",
                                 "%a=input:f32[2,4]\n%b=neg %a\n%s=sum %a {dims=[1]}\n"
                                 "output %b\noutput %s");
  const Ran ran = Ctl({"run", graph, "--input", "0=1.5", "--check"});
  EXPECT_EQ(ran.code, 0) << ran.output;
  EXPECT_THAT(
      ran.output,
      HasSubstr("output 0  f32[2,4] = -1.5 -1.5 -1.5 -1.5 -1.5 ...; min -1.5, max -1.5, mean -1.5\n"
                "          8 of 8 elements within tolerance, worst at 0.00 of it\n"
                "output 1  f32[2] = 6 6\n"
                "          2 of 2 elements within tolerance"));
  const Ran json = Ctl({"--json", "run", graph, "--input", "0=1.5"});
  EXPECT_THAT(json.output,
              HasSubstr("\"outputs\": [\n    {\"dtype\": \"f32\", \"shape\": [2, 4], \"first\": "
                        "[-1.5, -1.5, -1.5, -1.5, -1.5], \"min\": -1.5, \"max\": -1.5, \"mean\": "
                        "-1.5, \"not_finite\": 0},\n    {\"dtype\": \"f32\", \"shape\": [2]"));
  EXPECT_THAT(json.output, HasSubstr("\"checks\": []\n}"));
}

TEST_F(FusionctlTest, NoDaemonGives3AndSaysWhatToDo) {
  const Ran ran = Ctl({"--json", "status"});
  EXPECT_EQ(ran.code, 3);
  EXPECT_THAT(ran.output,
              AllOf(HasSubstr(absl::StrCat(
                        "fusionctl: UNAVAILABLE: no daemon answers at ", daemon_.sockets(),
                        "/control.sock within 5s: there is no such file; start fusiond, or name "
                        "its folder by --sockets or $FUSIOND_SOCKETS")),
                    HasSubstr("\"exit_code\": 3")));
}

TEST_F(FusionctlTest, WhyNobodyAnswersIsSaid) {
  const auto connect = [&] {
    return client::Client::Connect(daemon_.sockets(), absl::Milliseconds(300)).status();
  };
  daemon_.Serve();
  daemon_.Signal(SIGSTOP);
  EXPECT_THAT(connect(),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("300ms: who listens on it says nothing, as if stopped or hung")));
  daemon_.Stop(SIGKILL);
  EXPECT_THAT(connect(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("300ms: nobody listens on it")));
  std::filesystem::remove(client::ControlSocket(daemon_.sockets()));
  std::ofstream(client::ControlSocket(daemon_.sockets())) << "text";
  EXPECT_THAT(connect(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("300ms: it is no socket")));
  std::filesystem::remove(client::ControlSocket(daemon_.sockets()));
  for (const std::string greeting : {"", "220 mail"}) {
    Greeter greeter(client::ControlSocket(daemon_.sockets()), greeting);
    EXPECT_THAT(connect(), StatusIs(absl::StatusCode::kUnavailable,
                                    HasSubstr(greeting.empty() ? "private daemon admits its own"
                                                               : "is no fusiond")));
  }
}

TEST_F(FusionctlTest, EndlessInputEnds) {
  const Ran ran =
      testing::RunProgram({"/bin/sh", "-c", absl::StrCat(CtlProgram(), " compile - </dev/zero")});
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.output, HasSubstr("IR-03: 16777217 bytes, limit 16777216"));
}

TEST_F(FusionctlTest, LostOutputIsAFailure) {
  daemon_.Serve();
  const Ran ran = testing::RunProgram(
      {"/bin/sh", "-c",
       absl::StrCat(CtlProgram(), " --sockets ", daemon_.sockets(), " status >/dev/full")});
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.output, HasSubstr("standard output cannot be written"));
}

TEST_F(FusionctlTest, EpsilonOfANormRaisesNoFalseAlarm) {
  daemon_.Serve();
  const std::string norm = File("norm",
                                "%x=input:f32[8,64]\n%eps=input:f32\n%sq=mul %x, %x\n"
                                "%s=sum %sq {dims=[1], keepdim=true}\n%n=constant{value=64.0}\n"
                                "%m=div %s, %n\n%me=add %m, %eps\n%r=rsqrt %me\n%y=mul %x, %r\n"
                                "output %y");
  for (int seed = 1; seed <= 10; ++seed) {
    const Ran ran = Ctl({"run", norm, "--check", "--seed", absl::StrCat(seed)});
    EXPECT_EQ(ran.code, 0) << ran.output;
  }
  const Ran given = Ctl({"run", norm, "--check", "--input", "1=1e-5", "--input", "0=1"});
  EXPECT_EQ(given.code, 0) << given.output;
}

TEST_F(FusionctlTest, ArtifactThatCannotBeMadeSaysWhy) {
  daemon_.Serve();
  const Ran cpu = Ctl({"artifacts", Good()});
  EXPECT_EQ(cpu.code, 0) << cpu.output;
  EXPECT_THAT(cpu.output, HasSubstr("// ---- ir canonical\nfir 1\n"));
  for (const char* kind : {"schedule", "explanation", "cuda", "ptx", "sass"}) {
    EXPECT_THAT(cpu.output, HasSubstr(absl::StrCat("// ---- ", kind,
                                                   ": none: arch cpu has no kernels: its device "
                                                   "evaluates the graph\n")));
  }
  const Ran gpu = Ctl({"artifacts", Good(), "--target", "sm_90a"});
  EXPECT_EQ(gpu.code, 0) << gpu.output;
  EXPECT_THAT(gpu.output, AllOf(HasSubstr("__global__"), HasSubstr("// ---- sass: none: the"),
                                HasSubstr("// ---- explanation plan\ntarget      sm_90a")));
  const Ran named = Ctl({"artifacts", Good(), "--target", "sm_90a", "--kind", "ir,sass"});
  EXPECT_EQ(named.code, 1);
  EXPECT_THAT(named.output, HasSubstr("fusionctl: sass: none: the daemon runs no disassembler"));
  const std::string folder = daemon_.folder() + "/artifacts";
  const Ran files = Ctl({"--json", "artifacts", Good(), "--folder", folder});
  EXPECT_EQ(files.code, 0) << files.output;
  EXPECT_THAT(files.output, HasSubstr(absl::StrCat("\"file\": \"", folder, "/canonical.ir\"")));
  EXPECT_TRUE(std::ifstream(folder + "/canonical.ir").good());
}

TEST_F(FusionctlTest, EvictTakesWhatListPrints) {
  daemon_.Serve();
  ASSERT_EQ(Ctl({"compile", Good()}).code, 0);
  ASSERT_EQ(Ctl({"compile", Open(), "--extents", "2x4"}).code, 0);
  const std::vector<std::string> lines = absl::StrSplit(Ctl({"cache", "list"}).output, '\n');
  ASSERT_EQ(lines.size(), 3u) << ::testing::PrintToString(lines);
  const std::string first = lines[0].substr(0, lines[0].find(' ')),
                    second = lines[1].substr(0, lines[1].find(' '));
  const Ran evicted = Ctl({"cache", "evict", absl::AsciiStrToUpper(first)});
  EXPECT_EQ(evicted.code, 0);
  EXPECT_EQ(evicted.output, "1 evicted, 0 kept because leased\n");
  EXPECT_EQ(Ctl({"cache", "evict", first}).code, 1);  // no longer there
  EXPECT_THAT(Ctl({"cache", "list"}).output, AllOf(Not(HasSubstr(first)), HasSubstr(second)));
  EXPECT_EQ(Ctl({"cache", "evict", "--all"}).code, 0);
  EXPECT_EQ(Ctl({"cache", "evict", "--all"}).code, 0);
  EXPECT_EQ(Ctl({"cache", "list"}).output, "no entries\n");
}

TEST_F(FusionctlTest, ListTellsEntriesApartAndWhetherThereAreMore) {
  daemon_.Serve();
  for (const char* precision : {"native", "double"})
    ASSERT_EQ(Ctl({"compile", Good(), "-o", absl::StrCat("precision=", precision)}).code, 0);
  const Ran all = Ctl({"cache", "list", "--limit", "2"});
  EXPECT_THAT(all.output, ContainsRegex("cpu/cpu  graph [0-9a-f]{8}  f32\\[\\.\\]  .*1 request\n"));
  EXPECT_THAT(all.output, AllOf(HasSubstr("  precision=double  "), Not(HasSubstr("more"))));
  const Ran one = Ctl({"cache", "list", "--limit", "1"});
  EXPECT_THAT(one.output, HasSubstr("\nand more; --limit says how many to list\n"));
  EXPECT_EQ(std::count(one.output.begin(), one.output.end(), '\n'), 2);
  const Ran json = Ctl({"--json", "cache", "list", "--limit", "1"});
  EXPECT_EQ(json.output.find("\"key\""), json.output.rfind("\"key\"")) << json.output;
}

TEST_F(FusionctlTest, EvictKeepsWhatIsLeasedAndSaysSo) {
  daemon_.Serve();
  ASSERT_OK_AND_ASSIGN(const client::Fusion fusion,
                       daemon_.Connect()->Compile(testing::AddGraph(), "cpu"));
  const std::string key = fusion.key.Hex();
  ASSERT_OK_AND_ASSIGN(
      auto holder, channel::SupervisorClient::Connect(client::ChannelSocket(daemon_.sockets())));
  ASSERT_THAT(holder.Lease(fusion.executable_digest), IsOk());
  const Ran kept = Ctl({"cache", "evict", key});
  EXPECT_EQ(kept.code, 1);
  EXPECT_EQ(kept.output, "0 evicted, 1 kept because leased\n");
  const Ran all = Ctl({"--json", "cache", "evict", "--all"});  // of what is not leased
  EXPECT_EQ(all.code, 0);
  EXPECT_THAT(all.output, AllOf(HasSubstr("\"evicted\": 0"), HasSubstr("\"pinned\": 1")));
}

TEST_F(FusionctlTest, ExplainIsReadable) {
  daemon_.Serve();
  const Ran ran = Ctl({"explain", Open(), "--extents", "2x4"});
  EXPECT_EQ(ran.code, 0);
  EXPECT_THAT(ran.output, AllOf(HasSubstr("  signature = f32[2,.]\n"), Not(HasSubstr("\\"))));
}

TEST_F(FusionctlTest, WarmGoesOnBehindABadGraphAndListsIt) {
  daemon_.Serve();
  const std::string bad = File("bad", "%a=input:f32[8]\noutput %b");
  const Ran ran =
      Ctl({"warm", bad, Good(), "/nowhere.fir", Open(), Open() + ":3x4", "--target", "cpu"});
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.output,
              AllOf(HasSubstr(absl::StrCat("failed\tcpu\t", bad, "\t0 ns\tINVALID_ARGUMENT: ")),
                    HasSubstr(absl::StrCat("compiled\tcpu\t", Good(), "\t")),
                    HasSubstr("failed\tcpu\t/nowhere.fir\t0 ns\tNOT_FOUND: "),
                    HasSubstr("--extents: input 0 is f32[-1,4]{4,1}: say its extents"),
                    HasSubstr(absl::StrCat("compiled\tcpu\t", Open(), ":3x4\t")),
                    HasSubstr("5 items: 2 compiled, 0 cached, 3 failed")));
  // Extents of all that leave some open.
  const Ran all = Ctl({"warm", Good(), Open(), "--extents", "2x4", "--target", "cpu"});
  EXPECT_EQ(all.code, 0) << all.output;
  EXPECT_THAT(all.output, HasSubstr("2 items: 1 compiled, 1 cached, 0 failed"));
  const Ran json = Ctl({"--json", "warm", bad, Good(), "--target", "cpu"});
  EXPECT_EQ(json.code, 1);
  EXPECT_THAT(json.output, AllOf(HasSubstr("\"item\": 1"), HasSubstr("\"failed\": 1")));
}

// A warm-up of a cached graph and others, held up at the first of these.
class InterruptedWarmTest : public FusionctlTest {
 protected:
  // `drain`: seconds.
  void Begin(const std::string& drain) {
    daemon_.Serve({.arguments = {"--compile-processes", "1", "--drain", drain},
                   .environment = {},
                   .listen_fds = {}});
    cached_ = Good();
    ASSERT_EQ(Ctl({"compile", cached_, "--target", "cpu"}).code, 0);
    process_ = daemon_.CompileProcesses().at(0);
    ASSERT_EQ(::kill(process_, SIGSTOP), 0);
    command_ = {"warm", cached_, "--target", "cpu"};
    for (int i = 1; i <= kOthers; ++i) {
      command_.push_back(File(absl::StrCat("g", i),
                              absl::StrCat("%a=input:f32[", 100 + i, "]\n%b=neg %a\noutput %b")));
    }
    ran_ = std::async(std::launch::async, [this, command = command_]() mutable {
      const std::string output = daemon_.folder() + "/warm";
      std::string line = absl::StrCat("exec ", CtlProgram(), " --sockets ", daemon_.sockets());
      for (const std::string& word : command) absl::StrAppend(&line, " ", word);
      return testing::RunProgram({"/bin/sh", "-c", absl::StrCat(line, " > ", output)});
    });
    while (!absl::StrContains(Output(), "memory\tcpu\t" + cached_)) std::this_thread::yield();
    testing::WaitUntilBusy(*daemon_.Connect());
  }
  std::string Output() const {
    std::ifstream file(daemon_.folder() + "/warm");
    return {std::istreambuf_iterator<char>(file), {}};
  }

  static constexpr int kOthers = 12;  // more than are under way at once
  std::string cached_;
  pid_t process_ = -1;
  std::vector<std::string> command_;
  std::future<Ran> ran_;
};

TEST_F(InterruptedWarmTest, DaemonThatDiesIsToldAndTheNextRunGoesOn) {
  Begin("30");
  daemon_.Stop(SIGKILL);
  const Ran ran = ran_.get();
  EXPECT_EQ(ran.code, 3);
  EXPECT_THAT(ran.output, AllOf(HasSubstr("fusionctl: UNAVAILABLE: "), HasSubstr(daemon_.sockets()),
                                HasSubstr("after 1 of 13 items"), HasSubstr("run it again")));
  daemon_.Serve();
  const Ran next = Ctl(command_);
  EXPECT_EQ(next.code, 0) << next.output;
  EXPECT_THAT(next.output, AllOf(HasSubstr("disk\tcpu\t" + cached_),
                                 HasSubstr("13 items: 12 compiled, 1 cached, 0 failed")));
}

// One whose items end in time, and one that gives them up.
TEST_F(InterruptedWarmTest, DaemonThatDrainsIsToldAndTheNextRunGoesOn) {
  for (const bool in_time : {true, false}) {
    Begin(in_time ? "600" : "0.1");
    daemon_.Signal(SIGTERM);
    daemon_.WaitForLog("draining");
    if (in_time) {
      ASSERT_EQ(::kill(process_, SIGCONT), 0);
    }
    EXPECT_EQ(ran_.get().code, 3);
    EXPECT_THAT(Output(), HasSubstr("ended early because the daemon drains, run it again"));
    EXPECT_EQ(daemon_.Wait(), 0);
  }
  daemon_.Serve();
  const Ran next = Ctl(command_);
  EXPECT_EQ(next.code, 0) << next.output;
  EXPECT_THAT(next.output, AllOf(HasSubstr("disk\tcpu\t" + cached_), HasSubstr("13 items: "),
                                 HasSubstr(" 0 failed")));
}

}  // namespace
}  // namespace fusiond
