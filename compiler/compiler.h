// The compiler: three pure steps from a graph to an executable. No files, no clock, no environment,
// no threads.
//
//   Plan        graph + signature + device + options → canonical key, kernel sources, skeleton
//   executable CompileImage (nvrtc) source → cubin; one job an image, so that images compile in
//   parallel and are cached alone Assemble    skeleton + images → Executable
//
// Plan runs in a compile process; the supervisor looks up the canonical key and then each image key
// before it asks for compilation. A spill report leads to Plan again with the next candidate
// (`attempt`).
//
// Thread-safety: pure functions. Errors: as the graph verifier's; RESOURCE_EXHAUSTED for a
// graph over budget, or one op whose scalars exceed the arguments of a kernel. No graph is refused
// for want of a scheduler: what none takes is cut down to a kernel an op.
#ifndef FUSIOND_COMPILER_COMPILER_H_
#define FUSIOND_COMPILER_COMPILER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/ir/graph.h"
#include "compiler/options.h"
#include "proto/fusiond/v1/explanation.pb.h"
#include "runtime/base/sha256.h"
#include "runtime/executable/device_info.h"
#include "runtime/executable/executable.h"

namespace fusiond::compiler {

// SHA-256 over the sources under compiler/, made at build: part of every key.
std::string CompilerVersion();

// What the caller knows of one input beyond the graph; sizes may only refine symbolic extents.
struct InputLayout {
  ir::Dims shape;
  ir::Dims strides;        // elements
  int64_t alignment = 16;  // of the address, bytes: a power of two
};

struct PlanRequest {
  ir::Graph graph;                  // as sent
  std::vector<InputLayout> inputs;  // one an input; empty shape and strides for scalars
  executable::DeviceInfo device;
  Options options;
  int attempt = 0;       // 0 = the rule's candidate; the next after a spill report
  bool explain = false;  // fill PlanResult::explanation
};

struct KernelSource {
  std::string name;                        // "fd_k0_row_column"
  std::string text;                        // CUDA C++ that includes nothing
  std::vector<std::string> nvrtc_options;  // exact bytes passed to NVRTC, arch included
};

struct PlanResult {
  // The canonical graph (inputs and outputs in order), printed: what the canonical key is made of.
  std::string canonical_ir;
  base::Digest canonical_hash;
  std::vector<KernelSource> sources;  // one an image, in the skeleton's order of images
  executable::Executable skeleton;    // images without cubins; complete for arch "cpu"
  // Inputs, segments, schedules, kernels, what was refused and why; when asked for.
  v1::Explanation explanation;
  // Fallbacks taken, one a segment: "last resort, a kernel per op: 3 nodes"; the server counts
  // them.
  std::vector<std::string> notes;
};

absl::StatusOr<PlanResult> Plan(const PlanRequest& request);

// Puts the images into the skeleton. INVALID_ARGUMENT when counts differ.
absl::StatusOr<executable::Executable> Assemble(const executable::Executable& skeleton,
                                                absl::Span<const executable::Image> images);

}  // namespace fusiond::compiler

#endif  // FUSIOND_COMPILER_COMPILER_H_
