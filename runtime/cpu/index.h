// Walking several tensors of one iteration space in step.
#ifndef FUSIOND_RUNTIME_CPU_INDEX_H_
#define FUSIOND_RUNTIME_CPU_INDEX_H_

#include <array>
#include <cstdint>

#include "absl/types/span.h"
#include "compiler/ir/types.h"

namespace fusiond::cpu {

// Strides by which a row-major tensor of `shape` is read in a space of `space` dims: aligned on the
// right, 0 where its extent is 1 and where it has no dim.
ir::Dims BroadcastStrides(const ir::Dims& shape, const ir::Dims& space);

// Calls visit(linear, offsets) for every point of `space` in row-major order, with the element
// offset of each of the N tensors whose strides are given.
template <size_t N, typename Visit>
void ForEachPoint(const ir::Dims& space, const std::array<ir::Dims, N>& strides, Visit visit) {
  int64_t count = 1;
  for (int64_t extent : space) count *= extent;
  if (count == 0) return;
  const size_t rank = space.size();
  std::array<int64_t, N> offsets{};
  ir::Dims index(rank, 0);
  for (int64_t i = 0; i < count; ++i) {
    visit(static_cast<size_t>(i), offsets);
    for (size_t d = rank; d-- > 0;) {
      for (size_t n = 0; n < N; ++n) offsets[n] += strides[n][d];
      if (++index[d] < space[d]) break;
      for (size_t n = 0; n < N; ++n) offsets[n] -= strides[n][d] * space[d];
      index[d] = 0;
    }
  }
}

}  // namespace fusiond::cpu

#endif  // FUSIOND_RUNTIME_CPU_INDEX_H_
