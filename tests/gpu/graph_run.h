// One graph on the GPU, held against the evaluator: compiled, loaded, launched twice on poisoned
// memory, and every output compared with double precision within the bound that the evaluator
// carries beside each value.
//
// Thread-safety: single-thread. Cost: NVRTC a kernel, and the evaluator's time.
#ifndef FUSIOND_TESTS_GPU_GRAPH_RUN_H_
#define FUSIOND_TESTS_GPU_GRAPH_RUN_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "compiler/ir/graph.h"
#include "compiler/nvrtc/nvrtc.h"
#include "compiler/options.h"
#include "tests/gpu/gpu.h"
#include "tests/support/within_bounds.h"

namespace fusiond::testing {

struct GraphRunOptions {
  uint64_t seed = 1;       // of the inputs
  int64_t alignment = 16;  // of every input's address, exactly, where its dtype allows
  bool special = false;    // inputs hold nan, inf, extremes
  BoundsOptions bounds = {};
  double max_undecided = 0.01;  // share of the elements
  compiler::Options options = {};
};

struct GraphRunReport {
  BoundsReport bounds;
  int kernels = 0;
};

// Requires: static extents. OK when every element is within its bound. ABORTED names output,
// element, value, reference and bound, or what else is wrong: bytes written outside an output,
// results that differ from launch to launch. Else the error of planning, compiling or launching.
absl::Status RunGraph(Gpu& gpu, const nvrtc::Nvrtc& nvrtc, const ir::Graph& graph,
                      const GraphRunOptions& options, GraphRunReport& report);

// Row-major or as the graph states; a stride it leaves open is larger than dense by one element.
ir::Dims LayOut(const ir::Type& type);
// From element 0 to the end of the last element.
int64_t SpanBytes(const ir::Dims& shape, const ir::Dims& strides, ir::DType dtype);

}  // namespace fusiond::testing

#endif  // FUSIOND_TESTS_GPU_GRAPH_RUN_H_
