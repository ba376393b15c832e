#include "tests/golden/pipelines.h"

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "compiler/ir/hash.h"
#include "compiler/ir/specialise.h"
#include "compiler/ir/text.h"
#include "compiler/ir/verify.h"
#include "runtime/base/status_macros.h"

namespace fusiond::golden {
namespace {

struct Step {
  absl::string_view name;
  absl::Status (*run)(State& state, absl::string_view argument);
};

absl::Status Print(State&, absl::string_view) { return absl::OkStatus(); }

absl::Status Compact(State& state, absl::string_view) {
  state.graph.Compact();
  return absl::OkStatus();
}

absl::Status Specialise(State& state, absl::string_view argument) {
  FUSIOND_ASSIGN_OR_RETURN(const std::vector<ir::Dims> extents,
                           ir::ParseExtents(argument, state.graph));
  FUSIOND_ASSIGN_OR_RETURN(state.graph, ir::Specialise(state.graph, extents));
  return ir::Verify(state.graph, ir::Stage::kSpecialised);
}

absl::Status Hash(State& state, absl::string_view) {
  state.text = ir::GraphHash(state.graph).Hex() + "\n";
  return absl::OkStatus();
}

// Options of the passes that follow.
absl::Status Strict(State& state, absl::string_view) {
  state.passes.options.math = passes::Math::kStrict;
  state.passes.options.excess_precision = false;
  return absl::OkStatus();
}

absl::Status KeepRoundings(State& state, absl::string_view) {
  state.passes.options.excess_precision = false;
  return absl::OkStatus();
}

// Passes by name, once each; without a name the whole pipeline.
absl::Status Passes(State& state, absl::string_view argument) {
  if (argument.empty()) {
    FUSIOND_ASSIGN_OR_RETURN(state.graph, passes::Canonicalise(state.graph, state.passes));
    return absl::OkStatus();
  }
  const std::vector<absl::string_view> names = absl::StrSplit(argument, ',');
  FUSIOND_RETURN_IF_ERROR(passes::RunPasses(state.graph, names, state.passes).status());
  state.graph.Compact();
  return absl::OkStatus();
}

constexpr Step kSteps[] = {
    {"print", Print},   {"compact", Compact}, {"specialise", Specialise},
    {"hash", Hash},     {"strict", Strict},   {"keep_roundings", KeepRoundings},
    {"passes", Passes},
};

absl::Status RunStep(absl::string_view step, State& state) {
  absl::string_view name = absl::StripAsciiWhitespace(step);
  absl::string_view argument;
  if (const size_t open = name.find('('); open != absl::string_view::npos) {
    argument = name.substr(open + 1);
    if (!absl::ConsumeSuffix(&argument, ")")) {
      return absl::InvalidArgumentError(absl::StrCat("no ')' in step '", step, "'"));
    }
    name = name.substr(0, open);
  }
  for (const Step& row : kSteps) {
    if (row.name == name) return row.run(state, argument);
  }
  return absl::InvalidArgumentError(absl::StrCat("unknown step '", name, "'"));
}

}  // namespace

absl::StatusOr<std::string> RunPipeline(absl::string_view pipeline, absl::string_view input) {
  State state;
  FUSIOND_ASSIGN_OR_RETURN(state.graph, ir::Parse(input));
  for (const absl::string_view step : absl::StrSplit(pipeline, '|')) {
    FUSIOND_RETURN_IF_ERROR(RunStep(step, state));
  }
  return state.text.empty() ? ir::Print(state.graph) : state.text;
}

}  // namespace fusiond::golden
