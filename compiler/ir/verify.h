// Verify: the numbered rules that every graph keeps (table in README.md). Messages read
// "node %5: IR-18: add: …", where %5 is the node's first result.
#ifndef FUSIOND_COMPILER_IR_VERIFY_H_
#define FUSIOND_COMPILER_IR_VERIFY_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "compiler/ir/graph.h"
#include "compiler/ir/limits.h"

namespace fusiond::ir {

// kImported: as sent. kSpecialised: no symbolic extent, no size op left. kCanonical: besides, what
// the pass pipeline establishes (operands of a pointwise op have its compute type; see
// compiler/passes/README.md).
enum class Stage { kImported, kSpecialised, kCanonical };

// INVALID_ARGUMENT with rule, node and values; RESOURCE_EXHAUSTED with limit and actual. Linear in
// the graph.
//
// Never fails a FUSIOND_CHECK, whatever a pass has done to the graph.
absl::Status Verify(const Graph& graph, Stage stage, const Limits& limits = {});

// Rules of one output, before it is added: it is a tensor, and its alias names an input into whose
// buffer it can be written and that none of the `earlier` outputs aliases. INVALID_ARGUMENT.
absl::Status CheckOutput(const Graph& graph, const Output& output, absl::Span<const Output> earlier,
                         const ValueNames* names = nullptr);

}  // namespace fusiond::ir

#endif  // FUSIOND_COMPILER_IR_VERIFY_H_
