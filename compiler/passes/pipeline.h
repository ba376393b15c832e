// The order of the passes, and the driver that runs them: the compiler's stage "canonicalise".
//
// Thread-safety: pure functions. Cost: linear in nodes, times the rounds that it takes until
// nothing changes (two for a graph that the first round settled).
#ifndef FUSIOND_COMPILER_PASSES_PIPELINE_H_
#define FUSIOND_COMPILER_PASSES_PIPELINE_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compiler/ir/graph.h"
#include "compiler/passes/pass.h"

namespace fusiond::passes {

struct PassInfo {
  absl::string_view name;
  PassFunction function;
  bool repeated;  // runs in every round, not only in the first
};

absl::Span<const PassInfo> Pipeline();

// Runs the table on a specialised graph until a round changes nothing. True: something changed.
//
// INVALID_ARGUMENT for a graph that Verify refuses at Stage::kSpecialised and for an unknown name
// in options.disabled; RESOURCE_EXHAUSTED (limit and actual) when a pass makes the graph larger
// than limits.max_nodes; the checkpoint's error. The graph is then unspecified. A graph that has
// not settled after max_rounds is kept: every pass leaves a valid graph.
absl::StatusOr<bool> RunPipeline(ir::Graph& graph, const PassContext& context);

// The named passes, once each, in the given order; for tools and golden tests. INVALID_ARGUMENT for
// an unknown name.
absl::StatusOr<bool> RunPasses(ir::Graph& graph, absl::Span<const absl::string_view> names,
                               const PassContext& context);

// RunPipeline on a copy, compacted and verified at Stage::kCanonical (README.md has the form).
// Inputs keep their order and types, outputs their order, types and aliases.
absl::StatusOr<ir::Graph> Canonicalise(const ir::Graph& specialised,
                                       const PassContext& context = {});

}  // namespace fusiond::passes

#endif  // FUSIOND_COMPILER_PASSES_PIPELINE_H_
