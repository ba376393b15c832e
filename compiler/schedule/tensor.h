// Tensor: a buffer as a kernel sees it, and where it comes from at launch.
//
// Thread-safety: values. Units: strides in elements, alignment in bytes.
#ifndef FUSIOND_COMPILER_SCHEDULE_TENSOR_H_
#define FUSIOND_COMPILER_SCHEDULE_TENSOR_H_

#include <cstdint>

#include "compiler/ir/types.h"

namespace fusiond::schedule {

struct Place {
  enum class Kind : uint8_t { kInput, kOutput, kWorkspace };
  Kind kind = Kind::kInput;
  uint32_t index = 0;  // of the graph's input or output, or of the plan's workspace tensors
  bool operator==(const Place&) const = default;
};

struct Tensor {
  Place place;
  ir::DType dtype = ir::DType::kFloat;
  ir::Dims shape;
  ir::Dims strides;
  int64_t offset = 0;      // of the first element from where the buffer begins, in elements
  int64_t alignment = 16;  // of the first element's address; a power of two
  // Some other tensor of the plan may share bytes with it while a kernel writes one of them.
  bool shared = false;
};

}  // namespace fusiond::schedule

#endif  // FUSIOND_COMPILER_SCHEDULE_TENSOR_H_
