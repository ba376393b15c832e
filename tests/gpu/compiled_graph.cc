#include "tests/gpu/compiled_graph.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/sha256.h"
#include "runtime/base/status_macros.h"
#include "runtime/executable/explanation.h"

namespace fusiond::testing {
namespace {

constexpr int kMaxAttempts = 3;  // as the daemon's engine

absl::StatusOr<CompiledGraph> CompileOnce(compiler::PlanRequest request,
                                          const nvrtc::Nvrtc& nvrtc) {
  request.explain = true;
  FUSIOND_ASSIGN_OR_RETURN(const compiler::PlanResult plan, compiler::Plan(request));
  CompiledGraph compiled;
  compiled.canonical_ir = plan.canonical_ir;
  compiled.explanation = executable::Print(plan.explanation);
  std::vector<executable::Image> images;
  for (const compiler::KernelSource& source : plan.sources) {
    FUSIOND_ASSIGN_OR_RETURN(nvrtc::CompileOutput output,
                             nvrtc.Compile({.source = source.text,
                                            .name = source.name + ".cu",
                                            .arch = plan.skeleton.arch,
                                            .options = source.nvrtc_options}));
    for (const nvrtc::EntryResources& entry : output.entries) {
      compiled.most_registers = std::max(compiled.most_registers, entry.registers);
      compiled.most_spill_bytes = std::max(compiled.most_spill_bytes, entry.spill_store_bytes);
    }
    images.push_back({base::Sha256(source.text), std::move(output.cubin)});
  }
  FUSIOND_ASSIGN_OR_RETURN(compiled.executable, compiler::Assemble(plan.skeleton, images));
  return compiled;
}

}  // namespace

absl::StatusOr<CompiledGraph> CompileGraph(compiler::PlanRequest request,
                                           const nvrtc::Nvrtc& nvrtc) {
  absl::StatusOr<CompiledGraph> compiled;
  for (request.attempt = 0; request.attempt < kMaxAttempts; ++request.attempt) {
    compiled = CompileOnce(request, nvrtc);
    if (!compiled.ok() || compiled->most_spill_bytes == 0) break;
  }
  return compiled;
}

}  // namespace fusiond::testing
