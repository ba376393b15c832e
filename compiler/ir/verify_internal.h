// Parts of the verifier.
#ifndef FUSIOND_COMPILER_IR_VERIFY_INTERNAL_H_
#define FUSIOND_COMPILER_IR_VERIFY_INTERNAL_H_

#include "absl/status/status.h"
#include "compiler/ir/graph.h"

namespace fusiond::ir {

// The rules of one node at Stage::kCanonical; compiler/passes/README.md has the form they guard.
absl::Status CheckCanonical(const Graph& graph, const Node& node);

}  // namespace fusiond::ir

#endif  // FUSIOND_COMPILER_IR_VERIFY_INTERNAL_H_
