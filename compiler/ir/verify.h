// Verify: the numbered rules that every graph keeps (table in README.md). Messages read "IR-07:
// node %5 (add): …".
#ifndef FUSIOND_COMPILER_IR_VERIFY_H_
#define FUSIOND_COMPILER_IR_VERIFY_H_

#include "absl/status/status.h"
#include "compiler/ir/graph.h"
#include "compiler/ir/limits.h"

namespace fusiond::ir {

// kImported: as sent. kSpecialised: no symbolic extent, no size op left. kCanonical: besides, what
// the pass pipeline establishes (operands of a pointwise op have its compute type; see
// compiler/passes/README.md).
enum class Stage { kImported, kSpecialised, kCanonical };

// INVALID_ARGUMENT with rule, node and values; RESOURCE_EXHAUSTED with limit and actual. Linear in
// the graph.
absl::Status Verify(const Graph& graph, Stage stage, const Limits& limits = {});

}  // namespace fusiond::ir

#endif  // FUSIOND_COMPILER_IR_VERIFY_H_
