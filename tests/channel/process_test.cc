// Processes that die or stop: supervisor, worker and clients are forked from a parent that has no
// threads.
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/channel/client_ring.h"
#include "runtime/channel/client_session.h"
#include "tests/channel/fake_device.h"
#include "tests/channel/test_daemon.h"
#include "tests/support/status_matchers.h"

namespace fusiond::channel {
namespace {

using ::fusiond::testing::AddDigest;
using ::fusiond::testing::FakeDevice;
using ::fusiond::testing::IsOk;
using ::fusiond::testing::ServeSupervisor;
using ::fusiond::testing::SocketFolder;
using ::fusiond::testing::StatusIs;

constexpr absl::Duration kPatience = absl::Seconds(60);

// A child process that runs `body`; killed, if it still lives, at the end.
class Child {
 public:
  explicit Child(const std::function<void()>& body) : pid_(fork()) {
    if (pid_ == 0) {
      body();
      _exit(::testing::Test::HasFailure() ? 1 : 0);
    }
  }
  ~Child() { Kill(); }

  void Signal(int signal) { ASSERT_EQ(kill(pid_, signal), 0); }
  void Kill() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    Wait();
  }
  void Stop() {
    Signal(SIGSTOP);
    int status;
    ASSERT_EQ(waitpid(pid_, &status, WUNTRACED), pid_);
    ASSERT_TRUE(WIFSTOPPED(status));
  }
  // The exit status as waitpid gives it.
  int Wait() {
    int status = -1;
    waitpid(std::exchange(pid_, 0), &status, 0);
    return status;
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

// A pipe that tells "I am there".
class Signal {
 public:
  Signal() {
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) == 0) {
      read_.reset(fds[0]);
      write_.reset(fds[1]);
    }
  }
  void Give() { EXPECT_EQ(write(write_.get(), "x", 1), 1); }
  void Take() {
    char byte;
    EXPECT_EQ(read(read_.get(), &byte, 1), 1);
  }
  bool Poll() {
    pollfd fd{read_.get(), POLLIN, 0};
    return poll(&fd, 1, 0) == 1;
  }

 private:
  base::UniqueFd read_, write_;
};

class ProcessTest : public ::testing::Test {
 protected:
  ProcessTest()
      : listener_(*UnixListener::Listen(folder_.path(), SOCK_SEQPACKET, 0600)),
        sockets_(*SocketPair()),
        supervisor_([this] {
          auto never = SocketPair();
          ServeSupervisor(listener_, sockets_.first.get(), never->first.get());
        }) {}

  // A worker whose device keeps each launch for `hold_for`.
  std::unique_ptr<Child> StartWorker(absl::Duration hold_for) {
    return std::make_unique<Child>([this, hold_for] {
      FakeDevice device;
      device.hold = hold_for > absl::ZeroDuration();
      device.hold_for = hold_for;
      auto loop = WorkerLoop::Create(&device, {});
      ASSERT_THAT(loop, IsOk());
      const int from_supervisor = sockets_.second.get();
      ASSERT_THAT((*loop)->Watch(from_supervisor,
                                 [&] { (*loop)->AdoptFrom(from_supervisor).IgnoreError(); }),
                  IsOk());
      (*loop)->Run().IgnoreError();
    });
  }

  std::unique_ptr<ClientSession> Open() {
    auto client = SupervisorClient::Connect(folder_.path());
    EXPECT_THAT(client, IsOk());
    auto session = client->OpenDevice("cpu");
    EXPECT_THAT(session, IsOk());
    return *std::move(session);
  }

  SocketFolder folder_;
  UnixListener listener_;
  std::pair<base::UniqueFd, base::UniqueFd> sockets_;
  Child supervisor_;
};

// One ring with an executable and three buffers.
struct Client {
  explicit Client(std::unique_ptr<ClientSession> opened)
      : session(std::move(opened)),
        ring(*session->OpenRing()),
        add(session->Load(AddDigest())->handle) {
    for (TensorArgument& tensor : tensors) {
      tensor = {session->Allocate(64, MemoryKind::kHost)->handle, 0};
    }
  }
  absl::Status Launch(uint64_t cookie) {
    static constexpr int64_t kExtent[] = {64};
    return ring->Launch({add, tensors, kExtent, 0, cookie});
  }
  // Launches once and waits.
  absl::Status Run() {
    FUSIOND_RETURN_IF_ERROR(Launch(1));
    FUSIOND_RETURN_IF_ERROR(ring->Wait(kPatience));
    CompletionEntry out[1];
    ring->Reap(out);
    return ToStatus(out[0]);
  }

  std::unique_ptr<ClientSession> session;
  std::unique_ptr<ClientRing> ring;
  Handle add;
  TensorArgument tensors[3];
};

// Descriptors, and mappings of shared memory, that a process holds.
std::pair<size_t, size_t> Holds(pid_t pid) {
  const std::string proc = absl::StrCat("/proc/", pid);
  std::filesystem::directory_iterator fds(proc + "/fd");
  const auto open = static_cast<size_t>(std::distance(begin(fds), end(fds)));
  size_t mapped = 0;
  std::ifstream maps(proc + "/maps");
  for (std::string line; std::getline(maps, line);) {
    if (absl::StrContains(line, "/memfd:")) ++mapped;
  }
  return {open, mapped};
}

TEST_F(ProcessTest, F28_KilledClientsLeaveNothingBehind) {
  auto worker = StartWorker(absl::Milliseconds(2));
  Client witness(Open());
  ASSERT_THAT(witness.Run(), IsOk());
  const auto before = Holds(worker->pid());
  for (int i = 0; i < 60; ++i) {
    Signal launched;
    Child client([&] {
      Client client(Open());
      for (uint64_t j = 0; j < 100; ++j) EXPECT_THAT(client.Launch(j), IsOk());
      client.ring->Flush();
      launched.Give();
      for (uint64_t j = 100;; ++j) {
        client.Launch(j).IgnoreError();
        CompletionEntry out[8];
        client.ring->Reap(out);
        client.ring->Flush();
      }
    });
    launched.Take();
    ASSERT_THAT(witness.Run(), IsOk());
    client.Kill();
  }
  ASSERT_THAT(witness.Run(), IsOk());
  while (Holds(worker->pid()) != before) sched_yield();
}

TEST_F(ProcessTest, F29_StoppedClientKeepsItsSessionAndDisturbsNobody) {
  auto worker = StartWorker(absl::ZeroDuration());
  Signal started, finish;
  Child client([&] {
    Client client(Open());
    ASSERT_THAT(client.Run(), IsOk());
    started.Give();
    while (!finish.Poll()) ASSERT_THAT(client.Run(), IsOk());
  });
  started.Take();
  Client witness(Open());
  for (int i = 0; i < 20; ++i) {
    client.Stop();
    for (int j = 0; j < 50; ++j) ASSERT_THAT(witness.Run(), IsOk());
    client.Signal(SIGCONT);
    ASSERT_THAT(witness.Run(), IsOk());
  }
  finish.Give();
  EXPECT_EQ(client.Wait(), 0);
}

TEST_F(ProcessTest, F31_KilledWorkerCompletesOutstandingWorkWithContextLost) {
  auto worker = StartWorker(absl::InfiniteDuration());
  Client client(Open());
  for (uint64_t i = 0; i < 10; ++i) ASSERT_THAT(client.Launch(i), IsOk());
  client.ring->Flush();
  worker->Kill();
  for (uint64_t seen = 0; seen < 10;) {
    ASSERT_THAT(client.ring->Wait(kPatience), IsOk());
    CompletionEntry out[4];
    const size_t count = client.ring->Reap(out);
    for (size_t i = 0; i < count; ++i) {
      EXPECT_EQ(out[i].cookie, seen++);
      EXPECT_THAT(ToStatus(out[i]), StatusIs(absl::StatusCode::kAborted));
    }
  }
  EXPECT_TRUE(client.session->Lost());
  // A new worker on the same socket is a new epoch.
  const uint64_t old_epoch = client.session->epoch();
  auto next = StartWorker(absl::ZeroDuration());
  Client again(Open());
  EXPECT_THAT(again.Run(), IsOk());
  EXPECT_NE(again.session->epoch(), old_epoch);
}

TEST_F(ProcessTest, StoppedSupervisorDoesNotStopLaunches) {
  auto worker = StartWorker(absl::ZeroDuration());
  Client client(Open());
  supervisor_.Stop();
  for (int i = 0; i < 1000; ++i) ASSERT_THAT(client.Run(), IsOk());
}

TEST_F(ProcessTest, StoppedWorkerTimesOutAndRecovers) {
  auto worker = StartWorker(absl::ZeroDuration());
  Client client(Open());
  worker->Stop();
  ASSERT_THAT(client.Launch(1), IsOk());
  EXPECT_THAT(client.ring->Wait(absl::Milliseconds(1)),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
  EXPECT_FALSE(client.session->Lost());
  worker->Signal(SIGCONT);
  EXPECT_THAT(client.ring->Wait(kPatience), IsOk());
}

}  // namespace
}  // namespace fusiond::channel
