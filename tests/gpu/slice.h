// A sample of one output's elements as a graph of its own, so that an output of a size that the
// evaluator cannot take is still held against it.
//
// Dims along which nothing that the output depends on is reduced may be sampled: a softmax has few
// of its rows evaluated, a column sum few of its columns. Of maps, reshapes are sampled along the
// dims in front that they leave, take_along_axis along all but its own, others not at all.
// Thread-safety: pure. Cost: linear in nodes.
#ifndef FUSIOND_TESTS_GPU_SLICE_H_
#define FUSIOND_TESTS_GPU_SLICE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/graph.h"
#include "runtime/cpu/host_tensor.h"

namespace fusiond::testing {

// Of one dim: the indices that are kept, ascending; empty = all of them.
using Kept = std::vector<int64_t>;

struct Slice {
  ir::Graph graph;  // all inputs, row-major, then `coordinates`; the one output
  std::vector<cpu::HostTensor> coordinates;  // what iota was at the indices that are kept
  std::vector<std::vector<Kept>> inputs;     // by input and dim
  std::vector<Kept> output;                  // by dim
};

// Keeps about `elements` elements of the output where it has more and its dims allow; ends of a dim
// always, the rest by `seed`. Requires: a graph of static extents.
absl::StatusOr<Slice> SliceOutput(const ir::Graph& graph, size_t output, int64_t elements,
                                  uint64_t seed);

// Calls visit(offset in elements) for each kept element of a tensor that lies by `strides`, in
// row-major order.
template <typename Visit>
void ForEachKept(const ir::Dims& shape, const ir::Dims& strides, const std::vector<Kept>& kept,
                 Visit visit) {
  ir::Dims counts;
  int64_t total = 1;
  for (size_t d = 0; d < shape.size(); ++d) {
    counts.push_back(kept[d].empty() ? shape[d] : static_cast<int64_t>(kept[d].size()));
    total *= counts.back();
  }
  for (int64_t i = 0; i < total; ++i) {
    int64_t rest = i, offset = 0;
    for (size_t d = shape.size(); d-- > 0;) {
      const int64_t at = rest % counts[d];
      rest /= counts[d];
      offset += (kept[d].empty() ? at : kept[d][static_cast<size_t>(at)]) * strides[d];
    }
    visit(offset);
  }
}

}  // namespace fusiond::testing

#endif  // FUSIOND_TESTS_GPU_SLICE_H_
