// What every pass is: a function from a graph to a graph, and what it is told besides the graph.
//
// Thread-safety: thread-compatible values; a pass is a pure function of the graph and the context.
#ifndef FUSIOND_COMPILER_PASSES_PASS_H_
#define FUSIOND_COMPILER_PASSES_PASS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler/ir/graph.h"
#include "compiler/ir/limits.h"
#include "compiler/ir/math.h"

namespace fusiond::passes {

using ir::Math;  // kFast differs from kDefault in code generation alone

struct PassOptions {
  Math math = Math::kDefault;
  bool excess_precision = true;       // drop float→half→float round trips between nodes
  std::vector<std::string> disabled;  // names of the pipeline table
};

struct PassContext {
  PassOptions options;
  ir::Limits limits;
  int max_rounds = 8;  // of the pipeline's repeated part

  // Called between passes; an error ends the pipeline. For deadlines and cancellation.
  std::function<absl::Status()> checkpoint;
  // Called after each pass: its name, the round from 0 and whether it changed the graph.
  std::function<void(absl::string_view name, int round, bool changed, const ir::Graph& graph)>
      after_pass;
  // Counts the nodes and terms that passes look at: what tests hold against the size of a graph.
  int64_t* visited = nullptr;

  bool Reassociates() const { return options.math != Math::kStrict; }
  void Visit(int64_t count = 1) const {
    if (visited != nullptr) *visited += count;
  }
};

// True: the graph changed. Errors are those of ir::Verify, or RESOURCE_EXHAUSTED with limit and
// actual; the graph is then unspecified but valid to destroy.
using PassFunction = absl::StatusOr<bool> (*)(ir::Graph&, const PassContext&);

}  // namespace fusiond::passes

#endif  // FUSIOND_COMPILER_PASSES_PASS_H_
