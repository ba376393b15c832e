// Latencies of single calls, reported as the counters p50_us, p99_us and p999_us.
//
// Use with UseManualTime(): each iteration calls Record(state, start_ns), which also sets the
// iteration's time. Thread-compatible: one recorder a benchmark thread.
#ifndef FUSIOND_TESTS_BENCH_LATENCY_H_
#define FUSIOND_TESTS_BENCH_LATENCY_H_

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "runtime/base/clock.h"

namespace fusiond::bench {

class Latencies {
 public:
  explicit Latencies(benchmark::State& state) { samples_ns_.reserve(state.max_iterations); }

  void Record(benchmark::State& state, int64_t start_ns) {
    Add(state, base::MonotonicNanos() - start_ns);
  }
  // Of a time that the caller has taken.
  void Add(benchmark::State& state, int64_t elapsed_ns) {
    samples_ns_.push_back(elapsed_ns);
    state.SetIterationTime(static_cast<double>(elapsed_ns) * 1e-9);
  }

  // After the last iteration.
  void Report(benchmark::State& state) {
    if (samples_ns_.empty()) return;
    std::sort(samples_ns_.begin(), samples_ns_.end());
    const auto at_us = [&](double quantile) {
      const auto index = static_cast<size_t>(quantile * static_cast<double>(samples_ns_.size()));
      return static_cast<double>(samples_ns_[std::min(index, samples_ns_.size() - 1)]) * 1e-3;
    };
    state.counters["p50_us"] = at_us(0.5);
    state.counters["p99_us"] = at_us(0.99);
    state.counters["p999_us"] = at_us(0.999);
  }

 private:
  std::vector<int64_t> samples_ns_;
};

}  // namespace fusiond::bench

#endif  // FUSIOND_TESTS_BENCH_LATENCY_H_
