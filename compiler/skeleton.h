// Skeleton: the executable of a plan before its images are compiled.
//
// Thread-safety: pure functions.
#ifndef FUSIOND_COMPILER_SKELETON_H_
#define FUSIOND_COMPILER_SKELETON_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/codegen/kernel.h"
#include "compiler/compiler.h"
#include "compiler/ir/graph.h"
#include "compiler/schedule/candidates.h"
#include "compiler/schedule/kernel_schedule.h"
#include "compiler/schedule/region.h"
#include "compiler/schedule/storage.h"
#include "runtime/executable/executable.h"

namespace fusiond::compiler {

// One segment (or final copy) with the kernels made of it.
struct ScheduledRegion {
  schedule::Region region;
  schedule::Candidates candidates;  // `schedule` is the one at `chosen`
  size_t chosen = 0;
  schedule::KernelSchedule schedule;
  codegen::Emission emission;
  bool last_resort = false;  // of one op, because no scheduler took it with others
};

// Arch, profile, inputs with the extents and strides of the request, outputs. `graph` is
// specialised. For CUDA archs a tensor in host memory is a scalar of the interface.
// INVALID_ARGUMENT names an input whose layout does not fit the graph.
absl::StatusOr<executable::Executable> Interface(const ir::Graph& graph,
                                                 const PlanRequest& request);

// Strides of the buffers that callers pass for the outputs, from Interface()'s result, over the
// dims that the outputs of `graph` have, which Prepare() made.
std::vector<schedule::BufferLayout> OutputLayouts(const executable::Executable& interface,
                                                  const ir::Graph& graph);

// Whether guards will exclude that outputs overlap inputs: their number is bounded.
bool ExcludesOverlap(const ir::Graph& graph);

// Adds guards, steps and workspace. Equal texts become one image; `sources` gets one entry an
// image.
void AddSteps(const ir::Graph& graph, const PlanRequest& request,
              absl::Span<const ScheduledRegion> regions, const schedule::Storage& storage,
              size_t segments, executable::Executable& executable,
              std::vector<KernelSource>& sources);

}  // namespace fusiond::compiler

#endif  // FUSIOND_COMPILER_SKELETON_H_
