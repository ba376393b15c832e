// Plans a graph, runs the kernels in emulation and holds every output against the evaluator in
// double precision, within the bounds that it carries (tests/support/kernel_reference.h).
//
// Thread-safety: as Emulate. Cost: g++ once a text, then some milliseconds a launch.
#ifndef FUSIOND_TESTS_CODEGEN_PLAN_RUNNER_H_
#define FUSIOND_TESTS_CODEGEN_PLAN_RUNNER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "compiler/compiler.h"
#include "tests/emulation/emulation.h"
#include "tests/emulation/plant.h"

namespace fusiond::testing {

struct PlanRunOptions {
  std::string device = "h200";    // whose figures the schedulers get
  uint64_t seed = 1;              // of the inputs
  int64_t alignment = 16;         // of every input's address
  std::vector<ir::Dims> strides;  // by input; empty: as the graph says
  compiler::Options options;
  int attempt = 0;
  emulation::RunOptions emulation;
  emulation::KernelRunner runner;  // where to run; empty: Emulate, on 3 SMs
  emulation::Fault fault;          // planted into the first kernel that has such a place
};

// The request that a run plans.
absl::StatusOr<compiler::PlanRequest> RequestFor(const ir::Graph& graph,
                                                 const PlanRunOptions& options);
// OK when every element of every output is within its bound. ABORTED names output, element, value,
// reference and bound, or is emulation's; else Plan's error.
absl::Status RunPlan(const ir::Graph& graph, const PlanRunOptions& options = {});
absl::Status RunPlan(absl::string_view text, const PlanRunOptions& options = {});

}  // namespace fusiond::testing

#endif  // FUSIOND_TESTS_CODEGEN_PLAN_RUNNER_H_
