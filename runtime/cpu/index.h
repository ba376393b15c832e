// Walking elements, and several tensors of one iteration space in step. Walks of any length end
// soon after nobody waits for them.
#ifndef FUSIOND_RUNTIME_CPU_INDEX_H_
#define FUSIOND_RUNTIME_CPU_INDEX_H_

#include <algorithm>
#include <array>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "compiler/ir/types.h"
#include "runtime/cpu/host_tensor.h"

namespace fusiond::cpu {

// Strides by which a row-major tensor of `shape` is read in a space of `space` dims: aligned on the
// right, 0 where its extent is 1 and where it has no dim.
ir::Dims BroadcastStrides(const ir::Dims& shape, const ir::Dims& space);

// Calls visit(i) for every i below `count`. CANCELLED: in between.
template <typename Visit>
absl::Status ForEachIndex(size_t count, const Cancelled& cancelled, Visit visit) {
  for (size_t i = 0; i < count;) {
    if (cancelled && cancelled()) return absl::CancelledError("cancelled between elements");
    const size_t end = std::min<size_t>(count, i + kElementsBetweenLooks);
    for (; i < end; ++i) visit(i);
  }
  return absl::OkStatus();
}

// Calls visit(linear, offsets) for every point of `space` in row-major order, with the element
// offset of each of the N tensors whose strides are given. CANCELLED: in between.
template <size_t N, typename Visit>
absl::Status ForEachPoint(const ir::Dims& space, const std::array<ir::Dims, N>& strides,
                          const Cancelled& cancelled, Visit visit) {
  size_t count = 1;
  for (int64_t extent : space) count *= static_cast<size_t>(extent);
  const size_t rank = space.size();
  std::array<int64_t, N> offsets{};
  ir::Dims index(rank, 0);
  return ForEachIndex(count, cancelled, [&](size_t i) {
    visit(i, offsets);
    for (size_t d = rank; d-- > 0;) {
      for (size_t n = 0; n < N; ++n) offsets[n] += strides[n][d];
      if (++index[d] < space[d]) break;
      for (size_t n = 0; n < N; ++n) offsets[n] -= strides[n][d] * space[d];
      index[d] = 0;
    }
  });
}

}  // namespace fusiond::cpu

#endif  // FUSIOND_RUNTIME_CPU_INDEX_H_
