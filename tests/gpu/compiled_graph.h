// A graph compiled in this process, as the daemon's compile processes do it: Plan, NVRTC, the next
// candidate where ptxas spills, Assemble.
//
// Thread-safety: pure. Cost: an NVRTC compile a kernel.
#ifndef FUSIOND_TESTS_GPU_COMPILED_GRAPH_H_
#define FUSIOND_TESTS_GPU_COMPILED_GRAPH_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/compiler.h"
#include "compiler/nvrtc/nvrtc.h"

namespace fusiond::testing {

struct CompiledGraph {
  executable::Executable executable;
  std::string canonical_ir;      // as text
  std::string explanation;       // canonical IR, segments, schedules
  int64_t most_registers = 0;    // of any kernel, per thread
  int64_t most_spill_bytes = 0;  // likewise
};

absl::StatusOr<CompiledGraph> CompileGraph(compiler::PlanRequest request,
                                           const nvrtc::Nvrtc& nvrtc);

}  // namespace fusiond::testing

#endif  // FUSIOND_TESTS_GPU_COMPILED_GRAPH_H_
