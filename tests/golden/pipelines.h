// The steps that a golden file's RUN line may name. A new pass adds a row to the table in
// pipelines.cc.
#ifndef FUSIOND_TESTS_GOLDEN_PIPELINES_H_
#define FUSIOND_TESTS_GOLDEN_PIPELINES_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler/ir/graph.h"
#include "compiler/passes/pipeline.h"

namespace fusiond::golden {

struct State {
  ir::Graph graph;
  passes::PassContext passes;
  // What a step prints in place of the graph (a schedule, CUDA text); empty: the graph is printed.
  std::string text;
};

// Runs `pipeline` ("specialise(2048x8192,8192) | compact") on the graph in `input` and returns
// what the last step leaves. INVALID_ARGUMENT names an unknown step.
absl::StatusOr<std::string> RunPipeline(absl::string_view pipeline, absl::string_view input);

}  // namespace fusiond::golden

#endif  // FUSIOND_TESTS_GOLDEN_PIPELINES_H_
