// Axes: one coordinate system for all dims of a graph, counted from the right, in which a view that
// only inserts or removes extents of 1 moves nothing.
//
// Dims of extent other than 1 that meet in a pointwise op, or that a view or a reduction carries
// over, are one axis. Within a value axes fall from left to right, by at least the distance of the
// dims. The smallest such numbering gives [R] of a row sum the axis of x[R,C]'s rows, which is why
// it can stay [R,1]. Where no numbering exists (a vector used along rows and along columns of a
// square), the views involved become barriers: their two sides are numbered apart. So are the two
// sides of every map.
//
// Thread-safety: immutable after construction. Cost: near-linear in dims.
#ifndef FUSIOND_COMPILER_PASSES_AXES_H_
#define FUSIOND_COMPILER_PASSES_AXES_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/ir/graph.h"

namespace fusiond::passes {

class Axes {
 public:
  explicit Axes(const ir::Graph& graph);

  static constexpr int kNone = -1;

  // Axis of each dim of a value, falling; kNone for extents of 1.
  absl::InlinedVector<int, 4> Of(ir::ValueId id) const;
  bool IsBarrier(ir::NodeId id) const { return barrier_[id]; }

 private:
  // Joins dims into axes, except across barriers, and numbers them; returns whether that worked,
  // and otherwise which elements stand on a cycle.
  bool Solve(std::vector<bool>& cyclic);
  void JoinNode(ir::NodeId id);
  void Join(size_t a, size_t b);
  bool Counts(size_t element) const { return counts_[element]; }
  void FindComputed();
  size_t Find(size_t element);
  size_t Element(ir::ValueId id, size_t dim) const { return first_[id] + dim; }

  const ir::Graph& graph_;
  std::vector<size_t> first_;   // of each value: its first dim's element
  std::vector<bool> counts_;    // of each element: its extent is not 1
  std::vector<bool> computed_;  // by ValueId: not only viewed
  std::vector<size_t> parent_;  // union-find over elements
  std::vector<int> axis_;       // of each element
  std::vector<bool> barrier_;   // by NodeId
};

// For each dim of a view's or reduction's operand: the dim of the result that it becomes, or -1.
std::vector<int> CarriedDims(const ir::Node& node, int operand_rank, int result_rank);

}  // namespace fusiond::passes

#endif  // FUSIOND_COMPILER_PASSES_AXES_H_
