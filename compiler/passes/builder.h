// Builder: makes a graph with the inputs of another one; with Sharing::kEqualNodes one in which
// equal nodes are one node and operands of commutative ops stand in one order, so that what two
// definitions have in common prints alike.
//
// That order and the hashes behind it follow from the structure alone (op, attributes, operands, an
// input's index): never from ids, addresses or the order of calls.
//
// Thread-safety: thread-compatible. Cost: O(operands) a node.
#ifndef FUSIOND_COMPILER_PASSES_BUILDER_H_
#define FUSIOND_COMPILER_PASSES_BUILDER_H_

#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/ir/graph.h"

namespace fusiond::passes {

uint64_t Mix(uint64_t hash, uint64_t value);
uint64_t HashAttributes(const ir::Attributes& attributes);
// As ==, but tells 0.0 from -0.0.
bool SameAttributes(const ir::Attributes& a, const ir::Attributes& b);
// > and >= as < and <= of swapped operands, the one form that builders hold comparisons in.
template <typename Operands>
void MirrorComparison(ir::Op& op, Operands& operands) {
  if (op != ir::Op::kGt && op != ir::Op::kGe) return;
  op = op == ir::Op::kGt ? ir::Op::kLt : ir::Op::kLe;
  std::swap(operands[0], operands[1]);
}
// Bit a: the value's extent at axis a, counted from the right, is not 1.
uint8_t AxesOf(const ir::Type& type);
// Equal nodes, inputs and outputs, id by id. Requires: both compacted.
bool SameGraph(const ir::Graph& a, const ir::Graph& b);

enum class Sharing { kNone, kEqualNodes };

class Builder {
 public:
  // Empty, with the inputs of `like` in order.
  Builder(const ir::Graph& like, Sharing sharing);

  ir::ValueId Constant(ir::Number value, ir::DType dtype);
  absl::StatusOr<ir::NodeId> AddNode(ir::Op op, absl::Span<const ir::ValueId> operands,
                                     const ir::Attributes& attributes = {});
  absl::StatusOr<ir::ValueId> Add(ir::Op op, absl::Span<const ir::ValueId> operands,
                                  const ir::Attributes& attributes = {});

  const ir::Graph& graph() const { return graph_; }
  // Adds the outputs of `like`, through `renamed`, and gives the compacted graph away. An output
  // that was computed and has become an input, or a view of one, is a copy of it: it keeps its own
  // memory and strides.
  ir::Graph Finish(const ir::Graph& like, absl::Span<const ir::ValueId> renamed) &&;

 private:
  // Larger values first, constants last, shallow before deep.
  struct Key {
    bool constant = false;
    int8_t minus_axes = 0;
    uint32_t height = 0;
    uint64_t hash = 0;
    bool operator<(const Key& other) const {
      return std::tie(constant, minus_axes, height, hash) <
             std::tie(other.constant, other.minus_axes, other.height, other.hash);
    }
  };
  void SetKeys(ir::NodeId node, uint64_t hash);
  // `view`, views of an input, with a set behind the input.
  ir::ValueId Copied(ir::ValueId view);

  const Sharing sharing_;
  ir::Graph graph_;
  std::vector<Key> keys_;                                                    // by ValueId
  absl::flat_hash_map<uint64_t, absl::InlinedVector<ir::NodeId, 1>> nodes_;  // by hash
};

}  // namespace fusiond::passes

#endif  // FUSIOND_COMPILER_PASSES_BUILDER_H_
