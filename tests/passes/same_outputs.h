// Holds a graph and what a pass made of it against each other on random inputs.
#ifndef FUSIOND_TESTS_PASSES_SAME_OUTPUTS_H_
#define FUSIOND_TESTS_PASSES_SAME_OUTPUTS_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "compiler/ir/graph.h"
#include "compiler/ir/math.h"
#include "runtime/cpu/host_tensor.h"

namespace fusiond::testing {

struct SameOutputsOptions {
  // Native: every value rounded to its dtype, outputs equal bit by bit (any nan equals any nan).
  // Otherwise both are computed in double, and may differ by what rearranging may change, in
  // strict by what the evaluator allows a kernel for `before`.
  bool native = true;
  ir::Math math = ir::Math::kDefault;
  // An element that is nan or infinite before may be anything after.
  bool finite_only = false;
  // Inputs are drawn from (0.25, 2), not around 0: for graphs with roots and logarithms.
  bool positive_inputs = false;
};

std::vector<cpu::HostTensor> RandomInputs(const ir::Graph& graph, uint64_t seed, bool positive);

// Every element of every float tensor on these inputs, intermediate ones too, satisfies `holds`.
bool AllElements(const ir::Graph& graph, uint64_t seed, bool positive, bool (*holds)(double));

// Requires: both specialised, with equal inputs.
::testing::AssertionResult SameOutputs(const ir::Graph& before, const ir::Graph& after,
                                       uint64_t seed, const SameOutputsOptions& options = {});

}  // namespace fusiond::testing

#endif  // FUSIOND_TESTS_PASSES_SAME_OUTPUTS_H_
