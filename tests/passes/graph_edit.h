// Small changes to graphs that tests compare: another order of arguments, an input replaced by an
// expression of it.
#ifndef FUSIOND_TESTS_PASSES_GRAPH_EDIT_H_
#define FUSIOND_TESTS_PASSES_GRAPH_EDIT_H_

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "compiler/ir/graph.h"

namespace fusiond::testing {

// Input i of the result is input inputs[i] of `graph`, output i output outputs[i]; aliases follow.
// Requires: permutations.
ir::Graph Reordered(const ir::Graph& graph, absl::Span<const size_t> inputs,
                    absl::Span<const size_t> outputs);

// Input `index` becomes op(input). Requires: op keeps the type.
ir::Graph WithInput(const ir::Graph& graph, size_t index, ir::Op op);

// tests/data/graphs/<name>.fir, bound to the extents of its inputs if any are given.
ir::Graph DataGraph(const std::string& name, absl::Span<const ir::Dims> extents = {});

}  // namespace fusiond::testing

#endif  // FUSIOND_TESTS_PASSES_GRAPH_EDIT_H_
