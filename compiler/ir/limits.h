// Limits of a graph, checked by the parser, the importer and the verifier; the daemon may be
// started with smaller ones.
//
// Errors: RESOURCE_EXHAUSTED with rule, limit and actual value.
#ifndef FUSIOND_COMPILER_IR_LIMITS_H_
#define FUSIOND_COMPILER_IR_LIMITS_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "compiler/ir/op_table.h"
#include "compiler/ir/types.h"

namespace fusiond::ir {

struct Limits {
  int64_t max_nodes = 65536;
  int64_t max_bytes = int64_t{16} << 20;  // of the serialised graph or its text
  int64_t max_inputs_and_outputs = 1024;
  int64_t max_elements = int64_t{1} << 40;  // of one tensor; extents of 0 count as 1
};

absl::Status CheckNodeCount(size_t nodes, const Limits& limits);
absl::Status CheckInterface(size_t inputs_and_outputs, const Limits& limits);
absl::Status CheckByteSize(size_t bytes, const Limits& limits);
// Of a result of `op`.
absl::Status CheckElements(Op op, const Type& type, const Limits& limits);

}  // namespace fusiond::ir

#endif  // FUSIOND_COMPILER_IR_LIMITS_H_
