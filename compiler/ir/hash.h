// GraphHash: names a graph independent of value names, node order and dead nodes.
//
// SHA-256 over a versioned byte encoding of Compact()ed nodes (op name, operands, attributes),
// inputs and outputs in order. Two clients that build the same definition get the same hash; format
// in README.md.
#ifndef FUSIOND_COMPILER_IR_HASH_H_
#define FUSIOND_COMPILER_IR_HASH_H_

#include "compiler/ir/graph.h"
#include "runtime/base/sha256.h"

namespace fusiond::ir {

inline constexpr uint64_t kGraphHashVersion = 1;

base::Digest GraphHash(const Graph& graph);

}  // namespace fusiond::ir

#endif  // FUSIOND_COMPILER_IR_HASH_H_
