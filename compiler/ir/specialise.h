// Specialise: a graph with symbolic extents, bound to the extents of one request.
#ifndef FUSIOND_COMPILER_IR_SPECIALISE_H_
#define FUSIOND_COMPILER_IR_SPECIALISE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/ir/graph.h"

namespace fusiond::ir {

// Which extents of the inputs an executable may depend on. Version 1 takes every symbolic extent; a
// later version may keep some of them symbolic. Part of every key.
inline constexpr uint64_t kSpecialisationVersion = 1;

// Rebuilds `graph` with input i's shape replaced by extents[i] (empty for scalars), folds size ops
// and symbolic shape operands, and infers all types anew. INVALID_ARGUMENT when an extent
// contradicts the definition (names input, dim, declared and given extent) or when extents that
// meet in a node differ; UNIMPLEMENTED when a shape operand is made of anything but constants and
// sizes. Limits are the caller's to check again (Verify).
absl::StatusOr<Graph> Specialise(const Graph& graph, absl::Span<const Dims> extents,
                                 const ValueNames* names = nullptr);

}  // namespace fusiond::ir

#endif  // FUSIOND_COMPILER_IR_SPECIALISE_H_
