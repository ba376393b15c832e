// NOP entries through the ring between two processes: the channel's own cost, without a device.
//
//   launch/ring_roundtrip            both sides spin; submit to seen completion
//   launch/ring_roundtrip_asleep     the worker sleeps, the client spins
//   launch/raw/eventfd_wake          floor of the row before: a process wakes from an eventfd and
//                                    stores to shared memory
//   launch/remote/noop_throughput_N  batches of 32 from N client threads, both sides spin
#include <benchmark/benchmark.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/time/time.h"
#include "runtime/base/check.h"
#include "runtime/base/clock.h"
#include "runtime/channel/client_ring.h"
#include "runtime/channel/client_session.h"
#include "runtime/channel/supervisor_connection.h"
#include "runtime/channel/worker_loop.h"
#include "tests/bench/latency.h"

namespace fusiond::channel {
namespace {

constexpr absl::Duration kAlwaysSpin = absl::Seconds(3600);
constexpr absl::Duration kPatience = absl::Seconds(10);
constexpr uint32_t kBatch = 32;

// A device that is never asked.
class NoDevice : public Device {
 public:
  void Load(const base::Digest&, LoadCallback done) override { done(Refusal()); }
  absl::StatusOr<AllocatedBuffer> Allocate(uint64_t, MemoryKind) override { return Refusal(); }
  absl::StatusOr<std::shared_ptr<SessionBuffer>> Import(base::UniqueFd, uint64_t,
                                                        MemoryKind) override {
    return Refusal();
  }
  void Launch(const LaunchRequest&, Ticket) override {}
  void Copy(const CopyRequest&, Ticket) override {}
  absl::Duration Poll() override { return absl::InfiniteDuration(); }
  void ForgetRing(uint64_t) override {}

 private:
  static absl::Status Refusal() { return absl::UnimplementedError("no device"); }
};

// Forks a process that runs `body` and dies with its parent.
template <typename Body>
pid_t Fork(Body body) {
  const pid_t parent = getpid();
  const pid_t pid = fork();
  FUSIOND_CHECK(pid >= 0);
  if (pid > 0) return pid;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() == parent) body();
  _exit(0);
}

// A worker in a process of its own, and a session with it.
class Worker {
 public:
  explicit Worker(absl::Duration spin) {
    auto sockets = SocketPair();
    FUSIOND_CHECK(sockets.ok());
    pid_ = Fork([&] { Serve(std::move(sockets->second), spin); });
    sockets->second.reset();
    auto client = SupervisorClient::Greet(std::move(sockets->first));
    FUSIOND_CHECK(client.ok());
    auto session = client->OpenDevice("none");
    FUSIOND_CHECK(session.ok());
    session_ = *std::move(session);
  }
  ~Worker() { kill(pid_, SIGKILL); }

  ClientSession& session() { return *session_; }

 private:
  static void Serve(base::UniqueFd socket, absl::Duration spin) {
    NoDevice device;
    WorkerLoopOptions options;
    options.spin = spin;
    auto loop = WorkerLoop::Create(&device, options);
    FUSIOND_CHECK(loop.ok());
    // The supervisor's part, then the worker's, on one connection.
    auto to_self = SocketPair();
    SupervisorConnection connection(std::move(socket));
    while (true) {
      auto request = connection.Next();
      if (absl::IsDeadlineExceeded(request.status())) continue;
      FUSIOND_CHECK(request.ok());
      if (std::holds_alternative<SupervisorConnection::DeviceRequest>(*request)) break;
    }
    FUSIOND_CHECK(std::move(connection).PassTo(to_self->first.get(), kPatience).ok());
    FUSIOND_CHECK((*loop)->AdoptFrom(to_self->second.get()).ok());
    (*loop)->Run().IgnoreError();
  }

  pid_t pid_;
  std::unique_ptr<ClientSession> session_;
};

void RoundTrip(ClientRing& ring) {
  CompletionEntry out[1];
  FUSIOND_CHECK(ring.Nop(0).ok() && ring.Wait(kPatience).ok() && ring.Reap(out) == 1);
}

void RingRoundtrip(benchmark::State& state, Worker* worker) {
  auto ring = worker->session().OpenRing({}, kAlwaysSpin);
  FUSIOND_CHECK(ring.ok());
  for (int i = 0; i < 10000; ++i) RoundTrip(**ring);
  bench::Latencies latencies(state);
  for (auto _ : state) {
    const int64_t start_ns = base::MonotonicNanos();
    RoundTrip(**ring);
    latencies.Record(state, start_ns);
  }
  latencies.Report(state);
}

// Long enough for the other side to fall asleep.
void Pause() {
  const int64_t end_ns = base::MonotonicNanos() + 100'000;
  while (base::MonotonicNanos() < end_ns) CpuRelax();
}

void RingRoundtripAsleep(benchmark::State& state, Worker* worker) {
  auto ring = worker->session().OpenRing({}, kAlwaysSpin);
  FUSIOND_CHECK(ring.ok());
  bench::Latencies latencies(state);
  for (auto _ : state) {
    Pause();
    const int64_t start_ns = base::MonotonicNanos();
    RoundTrip(**ring);
    latencies.Record(state, start_ns);
  }
  latencies.Report(state);
}

// A sleeper in a process of its own: counts its wake-ups in shared memory.
struct Sleeper {
  Sleeper()
      : wake(eventfd(0, EFD_CLOEXEC)),
        count(new (mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))
                  std::atomic<uint64_t>(0)),
        pid(Fork([this] {
          uint64_t woken;
          while (read(wake.get(), &woken, sizeof(woken)) == sizeof(woken)) {
            count->fetch_add(1);
          }
        })) {}
  ~Sleeper() { kill(pid, SIGKILL); }

  base::UniqueFd wake;
  std::atomic<uint64_t>* count;
  pid_t pid;
};

void EventfdWake(benchmark::State& state, Sleeper* sleeper) {
  bench::Latencies latencies(state);
  for (auto _ : state) {
    Pause();
    const uint64_t before = sleeper->count->load();
    const int64_t start_ns = base::MonotonicNanos();
    const uint64_t one = 1;
    FUSIOND_CHECK(write(sleeper->wake.get(), &one, sizeof(one)) == sizeof(one));
    while (sleeper->count->load() == before) CpuRelax();
    latencies.Record(state, start_ns);
  }
  latencies.Report(state);
}

void NoopThroughput(benchmark::State& state, Worker* worker) {
  auto ring = worker->session().OpenRing({}, kAlwaysSpin);
  FUSIOND_CHECK(ring.ok());
  CompletionEntry out[kBatch];
  for (auto _ : state) {
    while ((*ring)->credits() < kBatch) {
      FUSIOND_CHECK((*ring)->Wait(kPatience).ok());
      (*ring)->Reap(out);
    }
    for (uint32_t i = 0; i < kBatch; ++i) FUSIOND_CHECK((*ring)->Nop(i).ok());
    (*ring)->Flush();
  }
  while ((*ring)->outstanding() > 0) {
    FUSIOND_CHECK((*ring)->Wait(kPatience).ok());
    (*ring)->Reap(out);
  }
  state.SetItemsProcessed(state.iterations() * kBatch);
}

}  // namespace

// Workers are forked before the library starts a thread.
int Main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  Worker awake(kAlwaysSpin);
  Worker asleep(absl::ZeroDuration());
  Sleeper sleeper;
  benchmark::RegisterBenchmark("launch/ring_roundtrip", RingRoundtrip, &awake)->UseManualTime();
  benchmark::RegisterBenchmark("launch/ring_roundtrip_asleep", RingRoundtripAsleep, &asleep)
      ->UseManualTime();
  benchmark::RegisterBenchmark("launch/raw/eventfd_wake", EventfdWake, &sleeper)->UseManualTime();
  for (int threads : {1, 4}) {
    const std::string name = "launch/remote/noop_throughput_" + std::to_string(threads);
    benchmark::RegisterBenchmark(name.c_str(), NoopThroughput, &awake)
        ->Threads(threads)
        ->UseRealTime();
  }
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

}  // namespace fusiond::channel

int main(int argc, char** argv) { return fusiond::channel::Main(argc, argv); }
