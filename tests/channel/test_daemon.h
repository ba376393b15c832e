// The smallest daemon: a supervisor that greets, leases and passes connections on, and one worker
// with a FakeDevice. ServeSupervisor and ServeWorker block; tests run them in threads or in forked
// processes.
#ifndef FUSIOND_TESTS_CHANNEL_TEST_DAEMON_H_
#define FUSIOND_TESTS_CHANNEL_TEST_DAEMON_H_

#include <poll.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/base/memfd.h"
#include "runtime/channel/client_session.h"
#include "runtime/channel/socket.h"
#include "runtime/channel/supervisor_connection.h"
#include "runtime/channel/worker_loop.h"
#include "tests/channel/fake_device.h"
#include "tests/support/status_matchers.h"

namespace fusiond::testing {

inline constexpr char kLeased[] = "a serialised executable";

// Answers one request; false when the connection is done with.
inline bool ServeConnection(channel::SupervisorConnection& connection, int worker) {
  auto request = connection.Next();
  if (!request.ok()) return absl::IsDeadlineExceeded(request.status());
  if (auto* lease = std::get_if<channel::SupervisorConnection::LeaseRequest>(&*request)) {
    if (lease->digest != AddDigest()) {
      return connection.RefuseLease(absl::NotFoundError(lease->digest.Hex())).ok();
    }
    auto memfd = base::CreateImmutable("lease", kLeased);
    return memfd.ok() && connection.SendLease(memfd->get(), sizeof(kLeased) - 1).ok();
  }
  if (auto* open = std::get_if<channel::SupervisorConnection::DeviceRequest>(&*request)) {
    if (open->device != "cpu") {
      return connection.RefuseDevice(absl::NotFoundError("no device " + open->device)).ok();
    }
    std::move(connection).PassTo(worker, absl::Seconds(10)).IgnoreError();
    return false;
  }
  return true;
}

// Until `stop` is readable or hangs up.
inline void ServeSupervisor(channel::UnixListener& listener, int worker, int stop) {
  std::vector<std::unique_ptr<channel::SupervisorConnection>> connections;
  while (true) {
    std::vector<pollfd> fds = {{stop, POLLIN, 0}, {listener.fd(), POLLIN, 0}};
    for (const auto& connection : connections) fds.push_back({connection->fd(), POLLIN, 0});
    poll(fds.data(), fds.size(), -1);
    if (fds[0].revents != 0) return;
    for (size_t i = connections.size(); i > 0; --i) {
      if (fds[i + 1].revents == 0) continue;
      if (!ServeConnection(*connections[i - 1], worker)) {
        connections.erase(connections.begin() + static_cast<ptrdiff_t>(i - 1));
      }
    }
    if (fds[1].revents == 0) continue;
    if (auto accepted = listener.Accept(); accepted.ok()) {
      connections.push_back(
          std::make_unique<channel::SupervisorConnection>(std::move(accepted->fd)));
    }
  }
}

// A temporary folder with the channel's socket in it.
class SocketFolder {
 public:
  SocketFolder() {
    char folder[] = "/tmp/fusiond-channel-test-XXXXXX";
    folder_ = mkdtemp(folder);
  }
  ~SocketFolder() { std::filesystem::remove_all(folder_); }
  std::string path() const { return folder_ + "/channel.sock"; }

 private:
  std::string folder_;
};

// Supervisor and worker as threads of this process.
class ThreadDaemon {
 public:
  explicit ThreadDaemon(channel::WorkerLoopOptions options = {}) {
    auto listener = channel::UnixListener::Listen(folder_.path(), SOCK_SEQPACKET, 0600);
    EXPECT_THAT(listener, IsOk());
    auto sockets = channel::SocketPair();
    EXPECT_THAT(sockets, IsOk());
    auto stop = channel::SocketPair();
    EXPECT_THAT(stop, IsOk());
    stop_ = std::move(stop->first);
    auto loop = channel::WorkerLoop::Create(&device, std::move(options));
    EXPECT_THAT(loop, IsOk());
    loop_ = *std::move(loop);
    supervisor_ =
        std::thread([listener = *std::move(listener), to_worker = std::move(sockets->first),
                     stop = std::move(stop->second)]() mutable {
          ServeSupervisor(listener, to_worker.get(), stop.get());
        });
    auto commands = channel::SocketPair();
    EXPECT_THAT(commands, IsOk());
    commands_ = std::move(commands->first);
    device.on_lose = [this] { loop_->Lose(absl::InternalError("illegal address")); };
    worker_ = std::thread([this, from_supervisor = std::move(sockets->second),
                           commands = std::move(commands->second)] {
      EXPECT_THAT(loop_->Watch(from_supervisor.get(),
                               [&] { loop_->AdoptFrom(from_supervisor.get()).IgnoreError(); }),
                  IsOk());
      EXPECT_THAT(loop_->Watch(commands.get(),
                               [&] {
                                 char grace_ms;
                                 if (read(commands.get(), &grace_ms, 1) == 1) {
                                   loop_->Drain(absl::Milliseconds(grace_ms));
                                 }
                               }),
                  IsOk());
      run_status = loop_->Run();
    });
  }
  ~ThreadDaemon() {
    StopSupervisor();
    StopWorker();
  }

  // Asks the worker to drain, from its own thread.
  void Drain(char grace_ms) { EXPECT_EQ(write(commands_.get(), &grace_ms, 1), 1); }
  void StopSupervisor() {
    stop_.reset();
    if (supervisor_.joinable()) supervisor_.join();
  }
  // Ends the worker's life: its connections hang up.
  void StopWorker() {
    if (loop_ == nullptr) return;
    loop_->Stop();
    JoinWorker();
  }
  // The same for a worker that ends by itself (drain, loss).
  void JoinWorker() {
    worker_.join();
    loop_.reset();
  }

  std::unique_ptr<channel::ClientSession> Open() {
    auto client = channel::SupervisorClient::Connect(folder_.path());
    EXPECT_THAT(client, IsOk());
    if (!client.ok()) return nullptr;
    auto session = client->OpenDevice("cpu");
    EXPECT_THAT(session, IsOk());
    return session.ok() ? *std::move(session) : nullptr;
  }
  std::string path() const { return folder_.path(); }

  FakeDevice device;
  absl::Status run_status;  // after JoinWorker or StopWorker

 private:
  SocketFolder folder_;
  base::UniqueFd stop_;
  base::UniqueFd commands_;
  std::unique_ptr<channel::WorkerLoop> loop_;
  std::thread supervisor_;
  std::thread worker_;
};

}  // namespace fusiond::testing

#endif  // FUSIOND_TESTS_CHANNEL_TEST_DAEMON_H_
