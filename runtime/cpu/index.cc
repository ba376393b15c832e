#include "runtime/cpu/index.h"

namespace fusiond::cpu {

ir::Dims BroadcastStrides(const ir::Dims& shape, const ir::Dims& space) {
  const ir::Dims own = ir::ContiguousStrides(shape);
  ir::Dims strides(space.size(), 0);
  const size_t shift = space.size() - shape.size();
  for (size_t d = 0; d < shape.size(); ++d) {
    strides[shift + d] = shape[d] == 1 ? 0 : own[d];
  }
  return strides;
}

}  // namespace fusiond::cpu
