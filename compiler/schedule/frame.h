// Frame: the dims over which a node is evaluated, and how its operands' and result's dims lie in
// them.
//
// A pointwise or shape op is framed by its result, a reduction by its operand. Extents of 1 take no
// part: an operand dim of extent 1 maps to no frame dim, so that broadcasting, inserted and removed
// dims need no further thought.
//
// Thread-safety: pure functions. Requires: a verified graph whose extents are static.
#ifndef FUSIOND_COMPILER_SCHEDULE_FRAME_H_
#define FUSIOND_COMPILER_SCHEDULE_FRAME_H_

#include "absl/container/inlined_vector.h"
#include "compiler/ir/graph.h"

namespace fusiond::schedule {

inline constexpr int8_t kNone = -1;
// Dim → dim of something else, or kNone.
using DimMap = absl::InlinedVector<int8_t, 4>;

// Extents of the node's frame.
const ir::Dims& FrameExtents(const ir::Graph& graph, const ir::Node& node);
// Each dim of operand `slot` → frame dim. Requires: the operand is a tensor, the node no map
// (IsMap, cost.h).
DimMap OperandToFrame(const ir::Graph& graph, const ir::Node& node, size_t slot);
// Each dim of the (first) result → frame dim.
DimMap ResultToFrame(const ir::Graph& graph, const ir::Node& node);
// What a node framed along `frame` (frame dim → axis) has along each dim of operand `slot`, or of
// its result.
DimMap OperandAxes(const ir::Graph& graph, const ir::Node& node, const DimMap& frame, size_t slot);
DimMap ResultAxes(const ir::Graph& graph, const ir::Node& node, const DimMap& frame);
// The frame of a node other than a reduction whose result lies along `axes`.
DimMap FrameFromResult(const ir::Graph& graph, const ir::Node& node, const DimMap& axes);
// Frame dims that a reduction sums over and whose extent is not 1; empty for other ops.
DimMap ReducedDims(const ir::Graph& graph, const ir::Node& node);

}  // namespace fusiond::schedule

#endif  // FUSIOND_COMPILER_SCHEDULE_FRAME_H_
