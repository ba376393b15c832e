// What a compile costs a client, through a daemon of the benchmark's own.
//
//   compile/cold/<graph>     request to executable; nothing of it known: a fresh daemon and an
//   empty
//                            cache each time, its pool warmed. nvrtc_calls: the fewest of any time.
//                            cos_sin_add_x<n>: n times x = cos x + sin x of 2^20 elements
//   compile/parallel         distinct norm graphs on N physical cores: speedup_per_core is the
//                            throughput of N compile processes over N times that of one; cores: N
//   rpc/bare                 grpc.health.v1.Health/Check on the same daemon as the next
//   rpc/compile_hit_memory   the thunder graph sent whole, the executable inline; from memory
//   rpc/compile_hit_disk     likewise, from a daemon whose memory tier holds nothing
//
// The rpc rows are measured in turn, in short rounds, so that what drifts in the host meets all.
//
// Needs NVRTC, no GPU: without one the target is the h200 profile.
#include <benchmark/benchmark.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/client_unary_call.h>
#include <grpcpp/support/byte_buffer.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cc/client.h"
#include "client/cc/paths.h"
#include "client/cc/status_convert.h"
#include "compiler/ir/text.h"
#include "proto/fusiond/v1/service.grpc.pb.h"
#include "runtime/base/clock.h"
#include "runtime/base/file.h"
#include "runtime/base/status_macros.h"
#include "tests/bench/daemon.h"
#include "tests/bench/latency.h"
#include "tests/bench/program.h"
#include "tests/gpu/graphs.h"

namespace fusiond::bench {
namespace {

constexpr int kColdCompiles = 15;
constexpr int kRounds = 50;
constexpr int kWarmUp = 20;  // of a round
constexpr int kCallsARound = 200;
constexpr int kCalls = kRounds * kCallsARound;

struct ColdCase {
  const char* name;
  const char* graph;  // nullptr: the chain
  int64_t rows = 0, columns = 0;
  int links = 0;
};
constexpr ColdCase kColdCases[] = {
    {"compile/cold/add", "graphs/add", 8192, 8192},
    {"compile/cold/rms_norm_backward", "graphs/rms_norm_backward_thunder", 2048, 8192},
    {.name = "compile/cold/cos_sin_add_x100", .graph = nullptr, .links = 100},
    {.name = "compile/cold/cos_sin_add_x1000", .graph = nullptr, .links = 1000},
};

// A channel and stub of one's own: what the Client adds is not part of the figure.
struct Rpc {
  explicit Rpc(const std::string& sockets)
      : channel(grpc::CreateChannel("unix:" + client::ControlSocket(sockets),
                                    grpc::InsecureChannelCredentials())),
        stub(v1::Fusiond::NewStub(channel)) {}

  absl::Status Compile(const v1::CompileRequest& request, v1::CompileResponse& response) {
    grpc::ClientContext context;
    return client::FromGrpc(stub->Compile(&context, request, &response));
  }
  // An empty HealthCheckRequest asks for the whole server; its message has no bytes.
  absl::Status CheckHealth() {
    grpc::ClientContext context;
    const grpc::Slice nothing;
    const grpc::ByteBuffer request(&nothing, 1);
    grpc::ByteBuffer response;
    return client::FromGrpc(grpc::internal::BlockingUnaryCall<grpc::ByteBuffer, grpc::ByteBuffer>(
        channel.get(), health, &context, request, &response));
  }

  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<v1::Fusiond::Stub> stub;
  grpc::internal::RpcMethod health{"/grpc.health.v1.Health/Check",
                                   grpc::internal::RpcMethod::NORMAL_RPC};
};

v1::CompileRequest RequestFor(const ir::Graph& graph, const std::string& target) {
  v1::CompileRequest request = client::Client::MakeRequest(graph, target, {}, {});
  request.set_include_executable(true);
  return request;
}

absl::StatusOr<v1::CompileRequest> RequestFor(const char* graph, int64_t rows, int64_t columns,
                                              const std::string& target) {
  FUSIOND_ASSIGN_OR_RETURN(const ir::Graph at_size, testing::GraphAtSize(graph, rows, columns));
  return RequestFor(at_size, target);
}

absl::StatusOr<ir::Graph> Chain(int links) {
  std::string text = "fir 1\n%x0 = input : f32[1048576]\n";
  for (int i = 0; i < links; ++i)
    absl::StrAppend(&text, "%c", i, " = cos %x", i, "\n%s", i, " = sin %x", i, "\n%x", i + 1,
                    " = add %c", i, ", %s", i, "\n");
  return ir::Parse(absl::StrCat(text, "output %x", links, "\n"));
}

absl::StatusOr<ir::Graph> GraphOf(const ColdCase& row) {
  return row.graph == nullptr ? Chain(row.links)
                              : testing::GraphAtSize(row.graph, row.rows, row.columns);
}

absl::Status CompileCold(const std::string& program, const ColdCase& row, int64_t& elapsed_ns,
                         uint32_t& nvrtc_calls) {
  FUSIOND_ASSIGN_OR_RETURN(const std::unique_ptr<Daemon> daemon, Daemon::Start(program));
  FUSIOND_ASSIGN_OR_RETURN(const ir::Graph graph, GraphOf(row));
  const v1::CompileRequest request = RequestFor(graph, daemon->target());
  Rpc rpc(daemon->sockets());
  FUSIOND_RETURN_IF_ERROR(rpc.CheckHealth());  // connects
  v1::CompileResponse response;
  const int64_t start_ns = base::MonotonicNanos();
  FUSIOND_RETURN_IF_ERROR(rpc.Compile(request, response));
  elapsed_ns = base::MonotonicNanos() - start_ns;
  nvrtc_calls = response.nvrtc_calls();
  if (response.source() == v1::COMPILED && !response.executable().empty()) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat("not compiled, but found: ", v1::Source_Name(response.source())));
}

void Cold(benchmark::State& state, const ColdCase* row, const std::string* program) {
  Latencies latencies(state);
  uint32_t fewest_calls = std::numeric_limits<uint32_t>::max();
  for (auto _ : state) {
    int64_t elapsed_ns = 0;
    uint32_t calls = 0;
    const absl::Status status = CompileCold(*program, *row, elapsed_ns, calls);
    if (!status.ok()) {
      state.SkipWithError(status.ToString().c_str());
      return;
    }
    fewest_calls = std::min(fewest_calls, calls);
    latencies.Add(state, elapsed_ns);
  }
  latencies.Report(state);
  state.counters["nvrtc_calls"] = fewest_calls;
}

// Cores that this process may use; two hyperthreads are one.
int PhysicalCores() {
  cpu_set_t usable;
  if (sched_getaffinity(0, sizeof usable, &usable) != 0) return 1;
  std::set<std::string> cores;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &usable)) continue;
    const std::string topology = absl::StrCat("/sys/devices/system/cpu/cpu", cpu, "/topology/");
    cores.insert(absl::StrCat(base::ReadFile(topology + "physical_package_id").value_or("?"),
                              base::ReadFile(topology + "core_id").value_or(absl::StrCat(cpu))));
  }
  return static_cast<int>(cores.size());
}

// Distinct norms, `count` of them.
absl::StatusOr<std::vector<v1::CompileRequest>> Norms(int count, int64_t most_columns,
                                                      const std::string& target) {
  constexpr const char* kGraphs[] = {"graphs/rms_norm_forward", "graphs/rms_norm_backward_thunder",
                                     "graphs/layer_norm_forward", "graphs/layer_norm_backward"};
  std::vector<v1::CompileRequest> requests;
  for (int64_t columns = most_columns; static_cast<int>(requests.size()) < count; columns -= 64) {
    for (const char* graph : kGraphs) {
      FUSIOND_ASSIGN_OR_RETURN(requests.emplace_back(), RequestFor(graph, 2048, columns, target));
    }
  }
  return requests;
}

// All requests, as many at once as keep `processes` compile processes busy.
absl::Status CompileAll(const std::string& sockets, const std::vector<v1::CompileRequest>& requests,
                        int processes) {
  std::atomic<size_t> next = 0;
  std::vector<absl::Status> results(static_cast<size_t>(processes) + 1);
  std::vector<std::thread> clients;
  for (absl::Status& result : results) {
    clients.emplace_back([&] {
      Rpc rpc(sockets);
      for (size_t i = next++; i < requests.size() && result.ok(); i = next++) {
        v1::CompileResponse response;
        result = rpc.Compile(requests[i], response);
        if (result.ok() && response.source() != v1::COMPILED)
          result = absl::InternalError("a graph that nobody sent was found");
      }
    });
  }
  for (std::thread& client : clients) client.join();
  for (const absl::Status& result : results) FUSIOND_RETURN_IF_ERROR(result);
  return absl::OkStatus();
}

absl::StatusOr<int64_t> TimeNorms(const std::string& program, int count, int processes) {
  FUSIOND_ASSIGN_OR_RETURN(
      const std::unique_ptr<Daemon> daemon,
      Daemon::Start(program, {absl::StrCat("--compile-processes=", processes)}));
  // Every process compiles something first.
  FUSIOND_ASSIGN_OR_RETURN(const auto first, Norms(4 * processes, 3072, daemon->target()));
  FUSIOND_RETURN_IF_ERROR(CompileAll(daemon->sockets(), first, processes));
  FUSIOND_ASSIGN_OR_RETURN(const auto norms, Norms(count, 8192, daemon->target()));
  const int64_t start_ns = base::MonotonicNanos();
  FUSIOND_RETURN_IF_ERROR(CompileAll(daemon->sockets(), norms, processes));
  return base::MonotonicNanos() - start_ns;
}

absl::Status MeasureParallel(benchmark::State& state, const std::string& program) {
  const int cores = PhysicalCores();
  for (auto _ : state) {
    FUSIOND_ASSIGN_OR_RETURN(const int64_t one_ns, TimeNorms(program, 4 * cores, 1));
    FUSIOND_ASSIGN_OR_RETURN(const int64_t all_ns, TimeNorms(program, 4 * cores, cores));
    state.SetIterationTime(static_cast<double>(all_ns) * 1e-9);
    state.counters["speedup_per_core"] =
        static_cast<double>(one_ns) / static_cast<double>(all_ns) / cores;
    state.counters["cores"] = cores;
  }
  return absl::OkStatus();
}

void Parallel(benchmark::State& state, const std::string* program) {
  SkipOnError(state, MeasureParallel(state, *program));
}

// A daemon that has the thunder graph, started at the first row that needs it.
class Cached {
 public:
  Cached(std::string program, std::vector<std::string> flags, v1::Source source)
      : program_(std::move(program)), flags_(std::move(flags)), source_(source) {}

  absl::Status Open() {
    if (rpc_ != nullptr) return absl::OkStatus();
    FUSIOND_ASSIGN_OR_RETURN(daemon_, Daemon::Start(program_, flags_));
    FUSIOND_ASSIGN_OR_RETURN(
        request_, RequestFor("graphs/rms_norm_backward_thunder", 2048, 8192, daemon_->target()));
    auto rpc = std::make_unique<Rpc>(daemon_->sockets());
    v1::CompileResponse response;
    FUSIOND_RETURN_IF_ERROR(rpc->Compile(request_, response));
    FUSIOND_RETURN_IF_ERROR(rpc->Compile(request_, response));
    if (response.source() != source_) {
      return absl::InternalError(absl::StrCat("expected ", v1::Source_Name(source_), ", answered ",
                                              v1::Source_Name(response.source())));
    }
    rpc_ = std::move(rpc);
    return absl::OkStatus();
  }

  absl::Status CheckHealth() { return rpc_->CheckHealth(); }
  absl::Status Hit() {
    v1::CompileResponse response;
    FUSIOND_RETURN_IF_ERROR(rpc_->Compile(request_, response));
    return response.source() == source_ && !response.executable().empty()
               ? absl::OkStatus()
               : absl::InternalError("answered from elsewhere, or without the executable");
  }

 private:
  const std::string program_;
  const std::vector<std::string> flags_;
  const v1::Source source_;
  std::unique_ptr<Daemon> daemon_;
  v1::CompileRequest request_;
  std::unique_ptr<Rpc> rpc_;
};

using CachedCall = absl::Status (Cached::*)();

struct RpcRow {
  const char* name;
  Cached* cached;
  CachedCall call;
  std::vector<int64_t> elapsed_ns;  // of kCalls calls, once measured
};

absl::Status RunRound(RpcRow& row) {
  for (int i = -kWarmUp; i < kCallsARound; ++i) {
    const int64_t start_ns = base::MonotonicNanos();
    FUSIOND_RETURN_IF_ERROR((row.cached->*row.call)());
    if (i >= 0) row.elapsed_ns.push_back(base::MonotonicNanos() - start_ns);
  }
  return absl::OkStatus();
}

absl::Status RunRounds(std::vector<RpcRow>& rows) {
  for (RpcRow& row : rows) FUSIOND_RETURN_IF_ERROR(row.cached->Open());
  for (int round = 0; round < kRounds; ++round) {
    for (RpcRow& row : rows) FUSIOND_RETURN_IF_ERROR(RunRound(row));
  }
  return absl::OkStatus();
}

// The first row that runs measures all of them.
void Call(benchmark::State& state, size_t index, std::vector<RpcRow>* rows) {
  const RpcRow& row = (*rows)[index];
  if (row.elapsed_ns.empty() && SkipOnError(state, RunRounds(*rows))) return;
  if (row.elapsed_ns.size() != kCalls) {
    state.SkipWithError("not measured, since a row before it failed");
    return;
  }
  Latencies latencies(state);
  size_t at = 0;
  for (auto _ : state) latencies.Add(state, row.elapsed_ns[at++]);
  latencies.Report(state);
}

int Main(int argc, char** argv) {
  const Flags flags = ParseFlags(argc, argv);
  Cached memory(flags.fusiond, {}, v1::MEMORY);
  Cached disk(flags.fusiond, {"--cache-memory=0"}, v1::DISK);
  const auto add = [](const char* name, int iterations, auto... arguments) {
    benchmark::RegisterBenchmark(name, arguments...)
        ->UseManualTime()
        ->Iterations(iterations)
        ->Unit(benchmark::kMicrosecond);
  };
  for (const ColdCase& row : kColdCases) add(row.name, kColdCompiles, Cold, &row, &flags.fusiond);
  add("compile/parallel", 1, Parallel, &flags.fusiond);
  std::vector<RpcRow> rows = {{"rpc/bare", &memory, &Cached::CheckHealth, {}},
                              {"rpc/compile_hit_memory", &memory, &Cached::Hit, {}},
                              {"rpc/compile_hit_disk", &disk, &Cached::Hit, {}}};
  for (size_t i = 0; i < rows.size(); ++i) add(rows[i].name, kCalls, Call, i, &rows);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

}  // namespace
}  // namespace fusiond::bench

int main(int argc, char** argv) { return fusiond::bench::Main(argc, argv); }
