// What a launch costs: the 1K add, on one stream.
//
//   launch/raw/launch        cuLaunchKernel alone, host time of one call
//   launch/raw/launch_sync   and cuStreamSynchronize
//   launch/local/cc          LoadedExecutable::Launch of the same kernel, grid and arguments
//   launch/remote/completed  through a daemon's worker: entry written to completion seen
//
// Every call is timed by itself. The queue is drained outside the timer now and then, so that no
// call waits for room in it.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cc/client.h"
#include "runtime/base/clock.h"
#include "runtime/base/status_macros.h"
#include "tests/bench/daemon.h"
#include "tests/bench/kernel_run.h"
#include "tests/bench/latency.h"
#include "tests/bench/program.h"
#include "tests/gpu/graphs.h"

namespace fusiond::bench {
namespace {

constexpr int64_t kElements = 1024;
constexpr int kWarmUp = 1000;
constexpr int kCallsPerDrain = 64;
constexpr int kCalls = 20000;
constexpr uint64_t kBytes = kElements * 4;

// The kernel, grid and arguments of the executable's only step, as a bare caller would hold them.
struct RawLaunch {
  cuda::CUmodule module = nullptr;
  cuda::CUfunction function = nullptr;
  unsigned grid = 0, block = 0, smem = 0;
  std::vector<uint64_t> values;
  std::vector<void*> parameters;
};

absl::StatusOr<RawLaunch> MakeRaw(const testing::Gpu& gpu, const KernelRun& run) {
  const executable::Executable& executable = run.loaded().executable();
  if (executable.steps.size() != 1)
    return absl::InternalError("the add is expected to be one kernel");
  const auto& step = std::get<executable::KernelStep>(executable.steps[0]);
  const int sms = gpu.device().info.sm_count;
  RawLaunch raw;
  FUSIOND_RETURN_IF_ERROR(gpu.ToStatus(
      gpu.driver().ModuleLoadData(&raw.module, executable.images[step.image].cubin.data()),
      "load the image"));
  FUSIOND_RETURN_IF_ERROR(gpu.ToStatus(
      gpu.driver().ModuleGetFunction(&raw.function, raw.module, step.entry.c_str()), step.entry));
  raw.grid = static_cast<unsigned>(step.grid[0].Evaluate({}, sms).value_or(0));
  raw.block = static_cast<unsigned>(step.block[0].Evaluate({}, sms).value_or(0));
  raw.smem = static_cast<unsigned>(step.dynamic_smem.Evaluate({}, sms).value_or(0));
  using Kind = executable::KernelArgument::Kind;
  for (const executable::KernelArgument& argument : step.arguments) {
    if (argument.kind == Kind::kInput) {
      raw.values.push_back(run.inputs()[argument.index].address);
    } else if (argument.kind == Kind::kOutput) {
      raw.values.push_back(run.outputs()[argument.index].address);
    } else {
      raw.values.push_back(static_cast<uint64_t>(argument.formula.Evaluate({}, sms).value_or(0)));
    }
  }
  for (uint64_t& value : raw.values) raw.parameters.push_back(&value);
  return raw;
}

absl::Status LaunchRaw(const testing::Gpu& gpu, RawLaunch& raw) {
  return gpu.ToStatus(
      gpu.driver().LaunchKernel(raw.function, raw.grid, 1, 1, raw.block, 1, 1, raw.smem,
                                gpu.stream(), raw.parameters.data(), nullptr),
      "launch");
}

// Times each call of `call`; the stream is drained outside the timer.
template <typename Call>
void TimeCalls(benchmark::State& state, testing::Gpu& gpu, Call call) {
  for (int i = 0; i < kWarmUp; ++i) {
    if (SkipOnError(state, call())) return;
    if (i % kCallsPerDrain == 0 && SkipOnError(state, gpu.Synchronize())) return;
  }
  if (SkipOnError(state, gpu.Synchronize())) return;
  Latencies latencies(state);
  int until_drain = kCallsPerDrain;
  for (auto _ : state) {
    const int64_t start_ns = base::MonotonicNanos();
    const absl::Status status = call();
    latencies.Record(state, start_ns);
    if (!status.ok()) {
      state.SkipWithError(status.ToString().c_str());
      return;
    }
    if (--until_drain == 0) {
      until_drain = kCallsPerDrain;
      if (!gpu.Synchronize().ok()) break;
    }
  }
  latencies.Report(state);
}

// The add in this process's own context. Opened by the first row that needs it: a second context on
// the GPU would be in the way of the remote launches, which come first.
class Local {
 public:
  explicit Local(const ir::Graph& graph) : graph_(graph) {}

  absl::Status Open() {
    if (run_ != nullptr) return absl::OkStatus();
    machine_ = OpenMachine();
    FUSIOND_RETURN_IF_ERROR(machine_.status());
    FUSIOND_ASSIGN_OR_RETURN(std::unique_ptr<KernelRun> run,
                             KernelRun::Make(gpu(), **machine_.nvrtc, graph_));
    FUSIOND_ASSIGN_OR_RETURN(raw_, MakeRaw(gpu(), *run));
    run_ = std::move(run);
    return absl::OkStatus();
  }
  testing::Gpu& gpu() { return **machine_.gpu; }
  KernelRun& run() { return *run_; }
  RawLaunch& raw() { return raw_; }

 private:
  const ir::Graph graph_;
  Machine machine_;
  std::unique_ptr<KernelRun> run_;
  RawLaunch raw_;
};

void RawLaunchCost(benchmark::State& state, Local* local, bool sync) {
  if (SkipOnError(state, local->Open())) return;
  TimeCalls(state, local->gpu(), [&] {
    const absl::Status status = LaunchRaw(local->gpu(), local->raw());
    return status.ok() && sync ? local->gpu().Synchronize() : status;
  });
}

void LocalLaunchCost(benchmark::State& state, Local* local) {
  if (SkipOnError(state, local->Open())) return;
  TimeCalls(state, local->gpu(), [&] { return local->run().Launch(); });
  if (!state.error_occurred()) SkipOnError(state, local->run().Check());
}

// A session on the daemon's GPU with the add loaded and its three tensors placed.
struct Remote {
  std::unique_ptr<Daemon> daemon;
  std::unique_ptr<client::Session> session;
  client::RemoteExecutable add;
  std::vector<client::Buffer> buffers;
  std::vector<client::Place> places;
};

absl::StatusOr<std::unique_ptr<Remote>> OpenRemote(const std::string& program,
                                                   const ir::Graph& graph) {
  auto remote = std::make_unique<Remote>();
  FUSIOND_ASSIGN_OR_RETURN(remote->daemon, Daemon::Start(program));
  client::Client& client = remote->daemon->client();
  FUSIOND_ASSIGN_OR_RETURN(const client::Fusion fusion,
                           client.Compile(graph, remote->daemon->target()));
  FUSIOND_ASSIGN_OR_RETURN(remote->session, client.OpenDevice(remote->daemon->target()));
  FUSIOND_ASSIGN_OR_RETURN(remote->add, remote->session->Load(fusion.executable_digest));
  for (int i = 0; i < 3; ++i) {
    FUSIOND_ASSIGN_OR_RETURN(client::Buffer buffer,
                             remote->session->Allocate(kBytes, client::MemoryKind::kDevice));
    remote->buffers.push_back(std::move(buffer));
  }
  for (const client::Buffer& buffer : remote->buffers) remote->places.push_back({&buffer, 0});
  return remote;
}

void RemoteCompleted(benchmark::State& state, const std::string* program, const ir::Graph* graph) {
  absl::StatusOr<std::unique_ptr<Remote>> remote = OpenRemote(*program, *graph);
  if (SkipOnError(state, remote.status())) return;
  client::Session& session = *(*remote)->session;
  const auto call = [&] { return session.Run((*remote)->add, (*remote)->places, {}).status(); };
  for (int i = 0; i < kWarmUp; ++i) {
    if (SkipOnError(state, call())) return;
  }
  Latencies latencies(state);
  for (auto _ : state) {
    const int64_t start_ns = base::MonotonicNanos();
    const absl::Status status = call();
    latencies.Record(state, start_ns);
    if (!status.ok()) {
      state.SkipWithError(status.ToString().c_str());
      return;
    }
  }
  latencies.Report(state);
}

int Main(int argc, char** argv) {
  const Flags flags = ParseFlags(argc, argv);
  const absl::StatusOr<ir::Graph> graph = testing::GraphAtSize("graphs/add_1k", 1, kElements);
  if (!graph.ok()) {
    std::fprintf(stderr, "%s\n", graph.status().ToString().c_str());
    return 1;
  }
  Local local(*graph);
  const auto add = [](const char* name, auto... arguments) {
    benchmark::RegisterBenchmark(name, arguments...)
        ->UseManualTime()
        ->Iterations(kCalls)
        ->Unit(benchmark::kMicrosecond);
  };
  add("launch/remote/completed", RemoteCompleted, &flags.fusiond, &*graph);
  add("launch/raw/launch", RawLaunchCost, &local, false);
  add("launch/raw/launch_sync", RawLaunchCost, &local, true);
  add("launch/local/cc", LocalLaunchCost, &local);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

}  // namespace
}  // namespace fusiond::bench

int main(int argc, char** argv) { return fusiond::bench::Main(argc, argv); }
