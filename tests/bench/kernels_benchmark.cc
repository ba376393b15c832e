// Kernels by themselves: GPU time of one call as CUPTI sees it, on an emptied L2 cache, against the
// time that the graph's inputs and outputs take at the copy rate of the same run.
//
//   kernel/<case>/<dtype>/<extents of the main activation>
//     gpu_us       median over the calls, which are spread over placements of the tensors in
//                  memory; the time of an iteration is that of one call
//     floor_us     bytes / copy rate
//     bytes        of inputs and outputs, each once
//     kernels      launches a call
//     registers, local_bytes   of its hungriest kernel, per thread
//
// Compiled in this process, without a daemon. The output is checked after the timing; a wrong one
// makes an error row.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "tests/bench/gpu_timer.h"
#include "tests/bench/kernel_run.h"
#include "tests/bench/program.h"
#include "tests/gpu/graphs.h"

namespace fusiond::bench {
namespace {

constexpr int kWarmUp = 3;
constexpr int kPlacements = 5;
constexpr int kCallsAPlacement = 9;
constexpr int kCalls = kPlacements * kCallsAPlacement;

struct KernelCase {
  const char* name;   // as in results
  const char* graph;  // in tests/data
  const char* dtype;  // of the activations
  int64_t rows, columns;
  // For graphs of other shapes: the inputs' extents, and those of the main activation.
  const char* extents = nullptr;
  const char* shape = nullptr;
};

constexpr KernelCase kCases[] = {
    {"add", "graphs/add", "f32", 8192, 8192},
    {"rms_norm_backward_thunder", "graphs/rms_norm_backward_thunder", "bf16", 2048, 8192},
    {"rms_norm_backward_manual", "graphs/rms_norm_backward_manual", "bf16", 2048, 8192},
    {"rms_norm_backward_prims", "graphs/rms_norm_backward_prims", "bf16", 2048, 8192},
    {"rms_norm_backward_llama2c", "graphs/rms_norm_backward_llama2c", "bf16", 2048, 8192},
    {"rms_norm_backward_thunder", "graphs/rms_norm_backward_thunder", "bf16", 32768, 1024},
    {"rms_norm_backward_manual", "graphs/rms_norm_backward_manual", "bf16", 32768, 1024},
    {"rms_norm_backward_prims", "graphs/rms_norm_backward_prims", "bf16", 32768, 1024},
    {"rms_norm_backward_llama2c", "graphs/rms_norm_backward_llama2c", "bf16", 32768, 1024},
    {"rms_norm_backward_thunder", "graphs/rms_norm_backward_thunder", "bf16", 8192, 32768},
    {"rms_norm_backward_manual", "graphs/rms_norm_backward_manual", "bf16", 8192, 32768},
    {"rms_norm_backward_prims", "graphs/rms_norm_backward_prims", "bf16", 8192, 32768},
    {"rms_norm_backward_llama2c", "graphs/rms_norm_backward_llama2c", "bf16", 8192, 32768},
    {"rms_norm_backward_thunder", "graphs/rms_norm_backward_thunder", "f32", 2048, 8192},
    {"rms_norm_forward", "graphs/rms_norm_forward", "bf16", 2048, 8192},
    {"rms_norm_forward", "graphs/rms_norm_forward", "bf16", 32768, 1024},
    {"rms_norm_forward", "graphs/rms_norm_forward", "bf16", 8192, 32768},
    {"layer_norm_backward", "graphs/layer_norm_backward", "bf16", 2048, 8192},
    {"layer_norm_backward", "graphs/layer_norm_backward", "bf16", 32768, 1024},
    {"layer_norm_backward", "graphs/layer_norm_backward", "bf16", 8192, 32768},
    {"layer_norm_forward", "graphs/layer_norm_forward", "bf16", 2048, 8192},
    {"layer_norm_forward", "graphs/layer_norm_forward", "bf16", 32768, 1024},
    {"layer_norm_forward", "graphs/layer_norm_forward", "bf16", 8192, 32768},
    {"softmax_forward", "graphs/softmax", "bf16", 8192, 8192},
    {"softmax_backward", "kernel_counts/softmax_backward", "bf16", 8192, 8192},
    {"swiglu_forward", "graphs/swiglu", "bf16", 8192, 4096},
    {"swiglu_backward", "kernel_counts/swiglu_backward", "bf16", 8192, 4096},
    {"gelu_bias_forward", "graphs/gelu_bias", "bf16", 8192, 8192},
    {"gelu_bias_backward", "graphs/gelu_bias_backward", "bf16", 8192, 8192},
    {"transpose_add", "graphs/transpose_add", "bf16", 8192, 8192},
    {"column_sum", "graphs/column_sum", "bf16", 8192, 8192},
    {"dropout_add_layer_norm_forward", "graphs/dropout_add_layer_norm", "bf16", 8192, 8192},
    {"dropout_add_layer_norm_backward", "graphs/dropout_add_layer_norm_backward", "bf16", 8192,
     8192},
    {"dropout_rms_norm_forward", "graphs/dropout_rms_norm", "bf16", 8192, 8192},
    {"dropout_rms_norm_backward", "graphs/dropout_rms_norm_backward", "bf16", 8192, 8192},
    {"dropout_layer_norm_forward", "graphs/dropout_layer_norm", "bf16", 8192, 8192},
    {"dropout_layer_norm_backward", "graphs/dropout_layer_norm_backward", "bf16", 8192, 8192},
    {"cross_entropy_forward", "kernel_counts/cross_entropy", "bf16", 0, 0, "8192x128256,8192",
     "8192x128256"},
    {"cross_entropy_backward", "kernel_counts/cross_entropy_backward", "bf16", 0, 0,
     "8192x128256,8192,8192x1,8192x1", "8192x128256"},
    {"group_norm_silu", "graphs/group_norm_silu", "bf16", 0, 0, "8x64x64x320,320,320",
     "8x64x64x320"},
    {"batch_norm_backward", "graphs/batch_norm_backward", "bf16", 0, 0,
     "64x56x56x256,64x56x56x256,256,256,256", "64x56x56x256"},
};

// What all rows share.
struct Bench {
  Machine machine;
  absl::StatusOr<std::unique_ptr<GpuTimer>> timer = absl::UnknownError("not opened");
  double copy_gbps = 0;
};

absl::StatusOr<std::vector<TimedCall>> Measure(KernelRun& run, GpuTimer& timer) {
  std::vector<TimedCall> all;
  for (int placement = 0; placement < kPlacements; ++placement) {
    if (placement > 0) FUSIOND_RETURN_IF_ERROR(run.Relocate());
    FUSIOND_ASSIGN_OR_RETURN(
        const std::vector<TimedCall> calls,
        timer.Measure([&] { return run.Launch(); }, kWarmUp, kCallsAPlacement));
    all.insert(all.end(), calls.begin(), calls.end());
  }
  return all;
}

void Kernel(benchmark::State& state, const KernelCase* row, Bench* bench) {
  if (SkipOnError(state, bench->machine.status()) || SkipOnError(state, bench->timer.status()))
    return;
  const absl::StatusOr<ir::Graph> graph =
      row->extents == nullptr
          ? testing::GraphAtSize(row->graph, row->rows, row->columns, row->dtype)
          : testing::GraphOfExtents(row->graph, row->extents);
  if (SkipOnError(state, graph.status())) return;
  absl::StatusOr<std::unique_ptr<KernelRun>> run =
      KernelRun::Make(**bench->machine.gpu, **bench->machine.nvrtc, *graph);
  if (SkipOnError(state, run.status())) return;
  absl::StatusOr<std::vector<TimedCall>> calls = Measure(**run, **bench->timer);
  if (SkipOnError(state, calls.status()) || SkipOnError(state, (*run)->Check())) return;

  size_t at = 0;
  for (auto _ : state) state.SetIterationTime((*calls)[at++ % calls->size()].gpu_us * 1e-6);
  std::sort(calls->begin(), calls->end(),
            [](const TimedCall& a, const TimedCall& b) { return a.gpu_us < b.gpu_us; });
  const auto bytes = static_cast<double>((*run)->bytes());
  state.counters["gpu_us"] = (*calls)[calls->size() / 2].gpu_us;
  state.counters["floor_us"] = bytes / (bench->copy_gbps * 1e3);
  state.counters["bytes"] = bytes;
  state.counters["kernels"] = (*calls)[calls->size() / 2].kernels;
  state.counters["registers"] = static_cast<double>((*run)->registers());
  state.counters["local_bytes"] = static_cast<double>((*run)->local_bytes());
}

Bench OpenBench(const Flags& flags) {
  Bench bench;
  bench.machine = OpenMachine();
  if (!bench.machine.status().ok()) return bench;
  bench.timer = GpuTimer::Open(**bench.machine.gpu, **bench.machine.nvrtc, flags.cupti);
  if (bench.timer.ok()) {
    const absl::StatusOr<double> rate = (*bench.timer)->CopyRate();
    if (!rate.ok()) {
      bench.timer = rate.status();
    } else {
      bench.copy_gbps = *rate;
      benchmark::AddCustomContext("copy_gbps", absl::StrCat(*rate));
    }
  }
  if (!bench.timer.ok())
    std::fprintf(stderr, "no measurements: %s\n", bench.timer.status().ToString().c_str());
  return bench;
}

int Main(int argc, char** argv) {
  const Flags flags = ParseFlags(argc, argv);
  Bench bench = OpenBench(flags);
  for (const KernelCase& row : kCases) {
    const std::string name =
        absl::StrCat("kernel/", row.name, "/", row.dtype, "/",
                     row.shape == nullptr ? absl::StrCat(row.rows, "x", row.columns) : row.shape);
    benchmark::RegisterBenchmark(name.c_str(), Kernel, &row, &bench)
        ->UseManualTime()
        ->Iterations(kCalls)
        ->Unit(benchmark::kMicrosecond);
  }
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

}  // namespace
}  // namespace fusiond::bench

int main(int argc, char** argv) { return fusiond::bench::Main(argc, argv); }
