// What every benchmark program that needs a GPU or a daemon begins with: flags and the run's
// context.
//
// Google Benchmark's own flags go first; run_gpu.sh passes commit, GPU, driver, CUDA and host
// through its --benchmark_context. A part that is missing makes error rows that say so, never a
// crash.
#ifndef FUSIOND_TESTS_BENCH_PROGRAM_H_
#define FUSIOND_TESTS_BENCH_PROGRAM_H_

#include <benchmark/benchmark.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/nvrtc/nvrtc.h"
#include "tests/gpu/gpu.h"

namespace fusiond::bench {

struct Flags {
  std::string fusiond;  // the daemon's program
  std::string cupti;    // libcupti; empty = search
};

// Parses, adds `command` to the context. Exits with a message on wrong usage.
Flags ParseFlags(int argc, char** argv);

// A GPU and NVRTC, or why there are none.
struct Machine {
  absl::StatusOr<std::unique_ptr<testing::Gpu>> gpu = absl::UnknownError("not opened");
  absl::StatusOr<std::unique_ptr<nvrtc::Nvrtc>> nvrtc = absl::UnknownError("not opened");

  absl::Status status() const { return gpu.ok() ? nvrtc.status() : gpu.status(); }
};
Machine OpenMachine();

// Turns a status into an error row. Returns whether it was one.
bool SkipOnError(benchmark::State& state, const absl::Status& status);

}  // namespace fusiond::bench

#endif  // FUSIOND_TESTS_BENCH_PROGRAM_H_
