// Limits of a graph, checked on import and by the verifier; the daemon may be started with smaller
// ones.
#ifndef FUSIOND_COMPILER_IR_LIMITS_H_
#define FUSIOND_COMPILER_IR_LIMITS_H_

#include <cstdint>

namespace fusiond::ir {

struct Limits {
  int64_t max_nodes = 65536;
  int64_t max_bytes = int64_t{16} << 20;  // of the serialised graph or its text
  int64_t max_inputs_and_outputs = 1024;
  int64_t max_elements = int64_t{1} << 40;  // of one tensor
};

}  // namespace fusiond::ir

#endif  // FUSIOND_COMPILER_IR_LIMITS_H_
