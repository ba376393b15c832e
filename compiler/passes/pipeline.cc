#include "compiler/passes/pipeline.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "compiler/ir/verify.h"
#include "compiler/passes/deduplicate.h"
#include "compiler/passes/explicit_types.h"
#include "compiler/passes/fold_casts.h"
#include "compiler/passes/fold_constants.h"
#include "compiler/passes/fold_powers.h"
#include "compiler/passes/implicit_broadcasts.h"
#include "compiler/passes/lower_variance.h"
#include "compiler/passes/normalise_algebra.h"
#include "compiler/passes/trivial_reductions.h"
#include "runtime/base/status_macros.h"

namespace fusiond::passes {
namespace {

// The order of kernels' rules: types and constants, then views, then algebra on the small values
// that views hid, then what became equal. A rule that enables an earlier one waits for the next
// round.
constexpr PassInfo kPipeline[] = {
    {"explicit_types", ExplicitTypes, false},           // R4, R6c
    {"lower_variance", LowerVariance, false},           //
    {"fold_constants", FoldConstants, true},            // R4
    {"implicit_broadcasts", ImplicitBroadcasts, true},  // R13, R5, R6b
    {"fold_casts", FoldCasts, true},                    // R6
    {"fold_powers", FoldPowers, true},                  // R1
    {"trivial_reductions", TrivialReductions, true},    // R8
    {"normalise_algebra", NormaliseAlgebra, true},      // R2, R3, R9, R10
    {"deduplicate", Deduplicate, true},                 // R7, R11
};

absl::Status UnknownPass(absl::string_view name) {
  const auto append_name = [](std::string* out, const PassInfo& pass) {
    absl::StrAppend(out, pass.name);
  };
  return absl::InvalidArgumentError(absl::StrCat(
      "no pass is named '", name, "'; there are: ", absl::StrJoin(kPipeline, ", ", append_name)));
}

const PassInfo* FindPass(absl::string_view name) {
  const auto* at = std::find_if(std::begin(kPipeline), std::end(kPipeline),
                                [&](const PassInfo& pass) { return pass.name == name; });
  return at == std::end(kPipeline) ? nullptr : at;
}

absl::StatusOr<bool> RunPass(const PassInfo& pass, int round, ir::Graph& graph,
                             const PassContext& context) {
  if (context.checkpoint) FUSIOND_RETURN_IF_ERROR(context.checkpoint());
  FUSIOND_ASSIGN_OR_RETURN(const bool changed, pass.function(graph, context));
  if (changed) {
    const absl::Status status = ir::CheckNodeCount(graph.nodes().size(), context.limits);
    if (!status.ok()) {
      return absl::Status(status.code(),
                          absl::StrFormat("after %s: %s", pass.name, status.message()));
    }
  }
#ifndef NDEBUG
  const absl::Status status = ir::Verify(graph, ir::Stage::kSpecialised, context.limits);
  if (!status.ok()) {
    return absl::InternalError(absl::StrFormat("after %s: %s", pass.name, status.message()));
  }
#endif
  if (context.after_pass) context.after_pass(pass.name, round, changed, graph);
  return changed;
}

}  // namespace

absl::Span<const PassInfo> Pipeline() { return kPipeline; }

absl::StatusOr<bool> RunPipeline(ir::Graph& graph, const PassContext& context) {
  FUSIOND_RETURN_IF_ERROR(ir::Verify(graph, ir::Stage::kSpecialised, context.limits));
  const std::vector<std::string>& disabled = context.options.disabled;
  for (const std::string& name : disabled) {
    if (FindPass(name) == nullptr) return UnknownPass(name);
  }
  bool any = false;
  for (int round = 0; round < context.max_rounds; ++round) {
    bool changed = false;
    for (const PassInfo& pass : kPipeline) {
      if (round > 0 && !pass.repeated) continue;
      if (std::find(disabled.begin(), disabled.end(), pass.name) != disabled.end()) continue;
      FUSIOND_ASSIGN_OR_RETURN(const bool pass_changed, RunPass(pass, round, graph, context));
      changed = changed || pass_changed;
    }
    if (!changed) break;
    any = true;
  }
  return any;
}

absl::StatusOr<bool> RunPasses(ir::Graph& graph, absl::Span<const absl::string_view> names,
                               const PassContext& context) {
  FUSIOND_RETURN_IF_ERROR(ir::Verify(graph, ir::Stage::kSpecialised, context.limits));
  bool any = false;
  for (const absl::string_view name : names) {
    const PassInfo* pass = FindPass(name);
    if (pass == nullptr) return UnknownPass(name);
    FUSIOND_ASSIGN_OR_RETURN(const bool changed, RunPass(*pass, 0, graph, context));
    any = any || changed;
  }
  return any;
}

absl::StatusOr<ir::Graph> Canonicalise(const ir::Graph& specialised, const PassContext& context) {
  ir::Graph graph = specialised;
  FUSIOND_RETURN_IF_ERROR(RunPipeline(graph, context).status());
  graph.Compact();
  const bool complete = context.options.disabled.empty();
  const absl::Status status =
      ir::Verify(graph, complete ? ir::Stage::kCanonical : ir::Stage::kSpecialised, context.limits);
  if (!status.ok()) {
    return absl::InternalError(absl::StrCat("canonical graph: ", status.message()));
  }
  return graph;
}

}  // namespace fusiond::passes
