// Launching through the real daemon, and what becomes of clients, workers and the daemon when one
// of them stops, dies or misbehaves.
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <future>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cc/paths.h"
#include "runtime/base/file.h"
#include "runtime/base/status_macros.h"
#include "runtime/channel/client_session.h"
#include "runtime/channel/messages.h"
#include "runtime/channel/socket.h"
#include "tests/e2e/test_daemon.h"
#include "tests/support/status_matchers.h"

namespace fusiond {
namespace {

using ::fusiond::testing::AddGraph;
using ::fusiond::testing::IsOk;
using ::fusiond::testing::OpenDescriptors;
using ::fusiond::testing::RunProgram;
using ::fusiond::testing::StatusIs;
using ::fusiond::testing::TestDaemon;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kElements = 1024;

// An add that is ready to run on the CPU device.
struct Ready {
  std::unique_ptr<client::Session> session;
  client::RemoteExecutable add;
  client::Buffer a, b, c;

  std::vector<client::Place> places() const { return {{&a, 0}, {&b, 0}, {&c, 0}}; }
};

absl::StatusOr<Ready> MakeReady(client::Client& client) {
  FUSIOND_ASSIGN_OR_RETURN(client::Fusion fusion, client.Compile(AddGraph(kElements), "cpu"));
  Ready ready;
  FUSIOND_ASSIGN_OR_RETURN(ready.session, client.OpenDevice("cpu"));
  FUSIOND_ASSIGN_OR_RETURN(ready.add, ready.session->Load(fusion.executable_digest));
  for (client::Buffer* buffer : {&ready.a, &ready.b, &ready.c}) {
    FUSIOND_ASSIGN_OR_RETURN(*buffer,
                             ready.session->Allocate(4 * kElements, client::MemoryKind::kHost));
  }
  return ready;
}

float* Floats(const client::Buffer& buffer) { return reinterpret_cast<float*>(buffer.data()); }

pid_t WorkerPid(client::Client& client) {
  auto status = client.GetStatus();
  return status.ok() && status->workers_size() == 1 ? static_cast<pid_t>(status->workers(0).pid())
                                                    : -1;
}

TEST(ChannelTest, LaunchesGoOnWhileTheSupervisorIsStopped) {
  TestDaemon daemon;
  daemon.Serve();
  ASSERT_OK_AND_ASSIGN(Ready ready, MakeReady(*daemon.Connect()));
  daemon.Signal(SIGSTOP);
  for (int i = 0; i < 1000; ++i) {
    Floats(ready.a)[0] = static_cast<float>(i);
    Floats(ready.b)[0] = 0.5f;
    ASSERT_THAT(ready.session->Run(ready.add, ready.places(), {}), IsOk());
    ASSERT_EQ(Floats(ready.c)[0], static_cast<float>(i) + 0.5f);
  }
  daemon.Signal(SIGCONT);
  // A client launches without compiler and without CUDA.
  ASSERT_OK_AND_ASSIGN(const std::string maps, base::ReadFile("/proc/self/maps"));
  EXPECT_THAT(maps, Not(HasSubstr("libnvrtc")));
  EXPECT_THAT(maps, Not(HasSubstr("libcuda")));
}

TEST(ChannelTest, KilledWorkerIsContextLostAndAnotherTakesOver) {
  TestDaemon daemon;
  daemon.Serve();
  std::unique_ptr<client::Client> client = daemon.Connect();
  ASSERT_OK_AND_ASSIGN(Ready ready, MakeReady(*client));
  const pid_t worker = WorkerPid(*client);
  ASSERT_GT(worker, 0);
  ASSERT_EQ(::kill(worker, SIGSTOP), 0);
  ASSERT_OK_AND_ASSIGN(const uint64_t number, ready.session->Launch(ready.add, ready.places(), {}));
  ASSERT_EQ(::kill(worker, SIGKILL), 0);
  EXPECT_THAT(ready.session->Wait(number),
              StatusIs(absl::StatusCode::kAborted,
                       AllOf(HasSubstr(absl::StrCat("launch ", number, " of executable ",
                                                    ready.add.digest.Hex().substr(0, 16))),
                             HasSubstr(absl::StrCat("the worker of cpu, process ", worker)),
                             HasSubstr("killed by signal 9 (KILL), not by the daemon"),
                             HasSubstr("may have run"),
                             HasSubstr("open another, which gets a new worker and epoch"))));
  EXPECT_THAT(ready.session->Load(base::Digest()),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("killed by signal 9 (KILL)")));
  EXPECT_THAT(ready.session->Launch(ready.add, ready.places(), {}),
              StatusIs(absl::StatusCode::kAborted,
                       AllOf(HasSubstr("killed by signal 9 (KILL)"), HasSubstr("not started"))));
  ASSERT_OK_AND_ASSIGN(const v1::StatusResponse status, client->GetStatus());
  ASSERT_EQ(status.ended_workers_size(), 1);
  EXPECT_EQ(status.ended_workers(0).pid(), worker);
  EXPECT_THAT(status.ended_workers(0).how(), HasSubstr("killed by signal 9 (KILL)"));
  ASSERT_OK_AND_ASSIGN(Ready next, MakeReady(*client));
  EXPECT_NE(next.session->epoch(), ready.session->epoch());
  EXPECT_THAT(next.session->Run(next.add, next.places(), {}), IsOk());
  EXPECT_NE(WorkerPid(*client), worker);
}

// The supervisor's end, without the client library's way to it.
TEST(ChannelTest, EndOfAWorkerIsToldToItsIdentityOnceItIsKnown) {
  TestDaemon daemon;
  daemon.Serve();
  std::unique_ptr<client::Client> client = daemon.Connect();
  ASSERT_OK_AND_ASSIGN(Ready ready, MakeReady(*client));
  const auto worker = static_cast<uint32_t>(WorkerPid(*client));
  const auto ask = [&](uint32_t process) -> absl::StatusOr<std::string> {
    FUSIOND_ASSIGN_OR_RETURN(
        channel::SupervisorClient supervisor,
        channel::SupervisorClient::Connect(client::ChannelSocket(daemon.sockets())));
    return supervisor.WhyEnded(process);
  };
  EXPECT_THAT(ask(1), StatusIs(absl::StatusCode::kNotFound));
  auto waiting = std::async(std::launch::async, [&] { return ask(worker); });
  // Answered later than what came after it, since the worker runs.
  ASSERT_THAT(ready.session->Run(ready.add, ready.places(), {}), IsOk());
  EXPECT_EQ(waiting.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  // Not SIGSEGV, which AddressSanitizer would turn into an exit.
  ASSERT_EQ(::kill(static_cast<pid_t>(worker), SIGABRT), 0);
  const absl::StatusOr<std::string> told = waiting.get();
  ASSERT_THAT(told, IsOk());
  EXPECT_THAT(*told, HasSubstr("killed by signal 6 (ABRT)"));
  EXPECT_EQ(*ask(worker), *told);
}

// A worker that is stopped, as by a debugger, is waited for as long as the caller says; then the
// error says who it is, and the session goes on when the worker does.
TEST(ChannelTest, StoppedWorkerIsGivenUpAfterTheLimit) {
  TestDaemon daemon;
  daemon.Serve();
  std::unique_ptr<client::Client> client = daemon.Connect();
  ASSERT_OK_AND_ASSIGN(Ready ready, MakeReady(*client));
  const pid_t worker = WorkerPid(*client);
  ASSERT_EQ(::kill(worker, SIGSTOP), 0);
  const std::string who = absl::StrCat("the worker of cpu, process ", worker, ", epoch ");
  ASSERT_OK_AND_ASSIGN(const uint64_t number, ready.session->Launch(ready.add, ready.places(), {}));
  EXPECT_THAT(
      ready.session->Wait(number, absl::Milliseconds(50)),
      StatusIs(absl::StatusCode::kDeadlineExceeded,
               AllOf(HasSubstr(absl::StrCat("launch ", number)), HasSubstr("not done after 50ms"),
                     HasSubstr(who), HasSubstr("the session stays usable"))));
  // A request that is not answered ends its session.
  client::SessionOptions options;
  options.answer_limit = absl::Milliseconds(50);
  EXPECT_THAT(client->OpenDevice("cpu", absl::ZeroDuration(), options),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       AllOf(HasSubstr("the worker of cpu"), HasSubstr("within 50ms"))));
  const auto ran = RunProgram({testing::CtlProgram(), "--sockets", daemon.sockets(), "run",
                               "tests/data/graphs/add_1k.fir", "--wait-limit", "0.05"});
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.output, AllOf(HasSubstr("DEADLINE_EXCEEDED"), HasSubstr("the worker of cpu")));
  ASSERT_EQ(::kill(worker, SIGCONT), 0);
  EXPECT_THAT(ready.session->Wait(number), IsOk());
  EXPECT_THAT(ready.session->Run(ready.add, ready.places(), {}), IsOk());
}

TEST(ChannelTest, ImpossibleWaitLimitsAreRefused) {
  for (const char* wrong : {"nan", "inf", "0", "-1", "soon", "1e9"}) {
    const auto ran = RunProgram({testing::CtlProgram(), "run", "tests/data/graphs/add_1k.fir",
                                 absl::StrCat("--wait-limit=", wrong)});
    EXPECT_EQ(ran.code, 2) << wrong;
    EXPECT_THAT(ran.output, AllOf(HasSubstr("--wait-limit"), HasSubstr(wrong)));
  }
}

TEST(ChannelTest, StoppedWorkerHoldsUpNobodyElse) {
  TestDaemon daemon;
  daemon.Serve();
  std::unique_ptr<client::Client> client = daemon.Connect();
  ASSERT_OK_AND_ASSIGN(Ready ready, MakeReady(*client));
  ASSERT_OK_AND_ASSIGN(const client::Fusion fusion, client->Compile(AddGraph(kElements), "cpu"));
  const pid_t worker = WorkerPid(*client);
  ::kill(worker, SIGSTOP);
  // More connections than its socket holds: passed on or refused, never waited for.
  std::vector<base::UniqueFd> waiting;
  std::vector<pollfd> answers;
  while (::poll(answers.data(), answers.size(), 0) == 0) {
    ASSERT_LT(waiting.size(), 900u) << "none is refused";
    ASSERT_OK_AND_ASSIGN(base::UniqueFd fd,
                         channel::Connect(client::ChannelSocket(daemon.sockets()), SOCK_SEQPACKET,
                                          absl::Seconds(60)));
    ASSERT_THAT(channel::Send(fd.get(), channel::MakeHello(), {}, absl::Seconds(60)), IsOk());
    ASSERT_THAT(channel::ReceiveMessage(fd.get(), absl::Seconds(60)), IsOk());
    ASSERT_THAT(channel::Send(fd.get(), *channel::MakeOpenDevice("cpu"), {}, absl::Seconds(60)),
                IsOk());
    answers.push_back({fd.get(), POLLIN, 0});
    waiting.push_back(std::move(fd));
  }
  for (const pollfd& answer : answers) {
    if (answer.revents == 0) continue;
    ASSERT_OK_AND_ASSIGN(const channel::ReceivedMessage message,
                         channel::ReceiveMessage(answer.fd, absl::Seconds(60)));
    EXPECT_THAT(channel::DecodeReply<channel::OpenDeviceReply>(message),
                StatusIs(absl::StatusCode::kUnavailable, HasSubstr("takes no connections now")));
  }
  EXPECT_THAT(client->Lease(fusion.executable_digest), IsOk());
  ::kill(worker, SIGCONT);
  EXPECT_THAT(ready.session->Run(ready.add, ready.places(), {}), IsOk());
}

TEST(ChannelTest, RestartedDaemonIsReconnectedToF31) {
  TestDaemon daemon;
  daemon.Serve();
  std::unique_ptr<client::Client> client = daemon.Connect();
  ASSERT_OK_AND_ASSIGN(Ready ready, MakeReady(*client));
  ASSERT_OK_AND_ASSIGN(const client::Fusion fusion, client->Compile(AddGraph(kElements), "cpu"));
  ASSERT_OK_AND_ASSIGN(const executable::Executable leased,
                       client->Lease(fusion.executable_digest));
  daemon.Stop(SIGKILL);
  EXPECT_THAT(ready.session->Run(ready.add, ready.places(), {}), Not(IsOk()));
  EXPECT_TRUE(ready.session->channel_session().Lost());
  EXPECT_EQ(leased.steps.size(), 1u);  // still there
  daemon.Serve();
  ASSERT_OK_AND_ASSIGN(Ready next, MakeReady(*client));
  EXPECT_THAT(next.session->Run(next.add, next.places(), {}), IsOk());
}

TEST(ChannelTest, ForeignAndStaleHandlesAreUnknownF37) {
  TestDaemon daemon;
  daemon.Serve();
  std::unique_ptr<client::Client> client = daemon.Connect();
  ASSERT_OK_AND_ASSIGN(Ready one, MakeReady(*client));
  ASSERT_OK_AND_ASSIGN(auto other, client->OpenDevice("cpu"));
  // Handles of one session mean nothing in another.
  EXPECT_THAT(other->Run(one.add, one.places(), {}), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(other->Free(one.a), StatusIs(absl::StatusCode::kNotFound));
  ASSERT_THAT(one.session->Free(one.c), IsOk());
  EXPECT_THAT(one.session->Run(one.add, one.places(), {}), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(one.session->Load(base::Sha256("nothing")), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(client->Lease(base::Sha256("nothing")), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(client->OpenDevice("GPU-nowhere"), StatusIs(absl::StatusCode::kNotFound));
}

TEST(ChannelTest, OtherAbiIsToldBothVersionsF38) {
  TestDaemon daemon;
  daemon.Serve();
  ASSERT_OK_AND_ASSIGN(
      const base::UniqueFd fd,
      channel::Connect(client::ChannelSocket(daemon.sockets()), SOCK_SEQPACKET, absl::Seconds(60)));
  channel::Hello hello = channel::MakeHello();
  ++hello.abi_major;
  ASSERT_THAT(channel::Send(fd.get(), hello, {}, absl::Seconds(60)), IsOk());
  ASSERT_OK_AND_ASSIGN(const channel::ReceivedMessage message,
                       channel::ReceiveMessage(fd.get(), absl::Seconds(60)));
  EXPECT_THAT(
      channel::DecodeReply<channel::HelloReply>(message),
      StatusIs(absl::StatusCode::kFailedPrecondition,
               AllOf(HasSubstr(absl::StrCat(hello.abi_major, ".", hello.abi_minor)),
                     HasSubstr(absl::StrCat(channel::kAbiMajor, ".", channel::kAbiMinor)))));
  EXPECT_THAT(MakeReady(*daemon.Connect()), IsOk());
}

TEST(ChannelTest, BadLaunchesAreAnsweredOneByOneF32) {
  TestDaemon daemon;
  daemon.Serve();
  ASSERT_OK_AND_ASSIGN(Ready ready, MakeReady(*daemon.Connect()));
  std::vector<client::Place> places = ready.places();
  EXPECT_THAT(ready.session->Run(ready.add, {places[0]}, {}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("expected 3 tensors")));
  places[1].offset = 4;  // one element too far
  EXPECT_THAT(ready.session->Run(ready.add, places, {}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("4096")));
  places[1].offset = 2;
  EXPECT_THAT(ready.session->Run(ready.add, places, {}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  places[1].offset = uint64_t{1} << 63;
  EXPECT_THAT(ready.session->Run(ready.add, places, {}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(ready.session->Run(ready.add, ready.places(), {}), IsOk());
}

TEST(ChannelTest, JunkConnectionsLeaveNothingBehindF25) {
  TestDaemon daemon;
  daemon.Serve();
  std::unique_ptr<client::Client> client = daemon.Connect();
  ASSERT_THAT(client->Compile(AddGraph(), "cpu"), IsOk());
  const size_t fds = OpenDescriptors(daemon.pid());
  const std::string junk = "PRI * HTTP/2.0\r\n\r\nGET / HTTP/1.1\r\n\r\n\x01\x02\xff";
  for (int i = 0; i < 3000; ++i) {
    const bool control = i % 2 == 0;
    absl::StatusOr<base::UniqueFd> fd = channel::Connect(
        control ? client::ControlSocket(daemon.sockets()) : client::ChannelSocket(daemon.sockets()),
        control ? SOCK_STREAM : SOCK_SEQPACKET, absl::Seconds(60));
    ASSERT_THAT(fd, IsOk());
    [[maybe_unused]] const ssize_t sent =
        ::send(fd->get(), junk.data(), i % junk.size(), MSG_NOSIGNAL);
  }
  EXPECT_THAT(client->Compile(AddGraph(), "cpu"), IsOk());
  // Hang-ups are seen a moment later.
  while (OpenDescriptors(daemon.pid()) > fds + 2) ::usleep(10'000);
  EXPECT_THAT(MakeReady(*client), IsOk());
}

// Connections that say nothing: the first 200 leave room for others of their identity, then its
// share is taken, and after a few seconds each is closed.
TEST(ChannelTest, SilentConnectionsAreBoundedAndClosedF25) {
  TestDaemon daemon;
  daemon.Serve();
  std::unique_ptr<client::Client> client = daemon.Connect();
  std::vector<base::UniqueFd> silent;
  const auto connect = [&](size_t count) {
    while (silent.size() < count) {
      ASSERT_OK_AND_ASSIGN(base::UniqueFd fd,
                           channel::Connect(client::ChannelSocket(daemon.sockets()), SOCK_SEQPACKET,
                                            absl::Seconds(60)));
      silent.push_back(std::move(fd));
    }
  };
  connect(200);
  EXPECT_THAT(MakeReady(*client), IsOk());
  connect(400);
  for (const base::UniqueFd& fd : silent)
    EXPECT_THAT(channel::ReceiveMessage(fd.get(), absl::Minutes(5)),
                StatusIs(absl::StatusCode::kUnavailable));  // hung up
  EXPECT_THAT(MakeReady(*client), IsOk());
}

// As another user, which takes root to become. `other_user` prints one "what: code" a line.
TEST(IdentityTest, AnotherUserSharesNothingButTheCacheF37) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to become another user";
  constexpr char kNobody[] = "65534";
  TestDaemon daemon;
  daemon.Serve({.arguments = {"--service"}, .environment = {}, .listen_fds = {}});
  namespace fs = std::filesystem;
  fs::permissions(daemon.folder(), fs::perms::others_exec, fs::perm_options::add);
  fs::permissions(daemon.sockets(), fs::perms::others_exec, fs::perm_options::add);
  for (const std::string& socket :
       {client::ControlSocket(daemon.sockets()), client::ChannelSocket(daemon.sockets())})
    fs::permissions(socket, fs::perms::others_write | fs::perms::others_read,
                    fs::perm_options::add);
  ASSERT_OK_AND_ASSIGN(const client::Fusion roots, daemon.Connect()->Compile(AddGraph(), "cpu"));
  const auto ran = RunProgram(
      {FUSIOND_OTHER_USER_PROGRAM, kNobody, daemon.sockets(), roots.executable_digest.Hex()});
  ASSERT_EQ(ran.code, 0) << ran.output;
  EXPECT_EQ(ran.output,
            "connect: OK\n"
            "lease: NOT_FOUND\n"
            "load: NOT_FOUND\n"
            "evict: PERMISSION_DENIED\n"
            "compile: OK\n"
            "source: MEMORY\n"  // the cache is shared
            "lease: OK\n"
            "load: OK\n"
            "run: OK\n");
  ASSERT_OK_AND_ASSIGN(const v1::StatusResponse status, daemon.Connect()->GetStatus());
  EXPECT_EQ(status.workers_size(), 1);  // the other user's own
}

TEST(IdentityTest, WhoMayNotOpenTheSocketIsToldSo) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to become another user";
  TestDaemon daemon;
  daemon.Serve({.arguments = {"--service"}, .environment = {}, .listen_fds = {}});
  namespace fs = std::filesystem;
  const auto ask = [&] {
    return RunProgram(
               {FUSIOND_OTHER_USER_PROGRAM, "65534", daemon.sockets(), base::Sha256("any").Hex()})
        .output;
  };
  EXPECT_EQ(ask(), "connect: PERMISSION_DENIED\n");  // by the folder
  fs::permissions(daemon.folder(), fs::perms::others_exec, fs::perm_options::add);
  fs::permissions(daemon.sockets(), fs::perms::others_exec, fs::perm_options::add);
  EXPECT_EQ(ask(), "connect: PERMISSION_DENIED\n");  // by the socket
  EXPECT_EQ(daemon.Stop(SIGKILL), 128 + SIGKILL);
  fs::permissions(client::ControlSocket(daemon.sockets()), fs::perms::all);
  EXPECT_EQ(ask(), "connect: UNAVAILABLE\n");  // nobody is there
}

TEST(IdentityTest, PrivateDaemonAdmitsNobodyElseF37) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to become another user";
  TestDaemon daemon;
  daemon.Serve();
  namespace fs = std::filesystem;
  fs::permissions(daemon.folder(), fs::perms::others_exec, fs::perm_options::add);
  fs::permissions(daemon.sockets(), fs::perms::others_exec, fs::perm_options::add);
  fs::permissions(client::ControlSocket(daemon.sockets()), fs::perms::all);
  const auto ran = RunProgram(
      {FUSIOND_OTHER_USER_PROGRAM, "65534", daemon.sockets(), base::Sha256("any").Hex()});
  EXPECT_THAT(ran.output, HasSubstr("connect: UNAVAILABLE"));
  EXPECT_THAT(daemon.log(), Not(HasSubstr("/65534")));
}

}  // namespace
}  // namespace fusiond
