#include "compiler/schedule/frame.h"

#include <algorithm>
#include <vector>

#include "compiler/ir/op_table.h"

namespace fusiond::schedule {
namespace {

using ir::AttributeKey;
using ir::Op;

bool IsReduction(const ir::Node& node) {
  return ir::Info(node.op).op_class == ir::OpClass::kReduction;
}

// Forgets the dims of extent 1.
DimMap Varying(DimMap map, const ir::Dims& shape) {
  for (size_t d = 0; d < map.size(); ++d)
    if (shape[d] == 1) map[d] = kNone;
  return map;
}

DimMap AlignedRight(int rank, int frame_rank) {
  DimMap map(rank, kNone);
  for (int d = 0; d < rank; ++d) map[d] = static_cast<int8_t>(d + frame_rank - rank);
  return map;
}

// The kept dims, in order, of a tensor from which `drop` names some.
template <class Drop>
DimMap KeptDims(int rank, Drop drop) {
  DimMap kept;
  for (int d = 0; d < rank; ++d)
    if (!drop(d)) kept.push_back(static_cast<int8_t>(d));
  return kept;
}

}  // namespace

const ir::Dims& FrameExtents(const ir::Graph& graph, const ir::Node& node) {
  return IsReduction(node) ? graph.type(node.operands[0]).shape : graph.type(node.results[0]).shape;
}

DimMap OperandToFrame(const ir::Graph& graph, const ir::Node& node, size_t slot) {
  const ir::Dims& shape = graph.type(node.operands[slot]).shape;
  const int rank = static_cast<int>(shape.size());
  const int frame_rank = static_cast<int>(FrameExtents(graph, node).size());
  switch (node.op) {
    case Op::kBroadcast: {
      const std::vector<bool>& inserted = node.attributes.Bools(AttributeKey::kIsBroadcastDim);
      return Varying(KeptDims(frame_rank, [&](int d) { return inserted[d]; }), shape);
    }
    case Op::kBroadcastInDim: {
      DimMap map;
      for (int64_t dim : node.attributes.Ints(AttributeKey::kBroadcastDims))
        map.push_back(static_cast<int8_t>(dim));
      return Varying(map, shape);
    }
    case Op::kPermute: {
      DimMap map(rank, kNone);
      int8_t next = 0;
      for (int64_t dim : node.attributes.Ints(AttributeKey::kDims)) map[dim] = next++;
      return Varying(map, shape);
    }
    case Op::kSqueeze: {
      const std::vector<int64_t>& dims = node.attributes.Ints(AttributeKey::kDims);
      DimMap map(rank, kNone);
      int8_t next = 0;
      for (int d = 0; d < rank; ++d)
        if (!std::binary_search(dims.begin(), dims.end(), d)) map[d] = next++;
      return Varying(map, shape);
    }
    default:
      return Varying(AlignedRight(rank, frame_rank), shape);
  }
}

DimMap ResultToFrame(const ir::Graph& graph, const ir::Node& node) {
  const ir::Dims& shape = graph.type(node.results[0]).shape;
  const int rank = static_cast<int>(shape.size());
  const int frame_rank = static_cast<int>(FrameExtents(graph, node).size());
  if (!IsReduction(node) || node.attributes.Bool(AttributeKey::kKeepdim))
    return Varying(AlignedRight(rank, frame_rank), shape);
  const std::vector<int64_t>& dims = node.attributes.Ints(AttributeKey::kDims);
  return Varying(
      KeptDims(frame_rank, [&](int d) { return std::binary_search(dims.begin(), dims.end(), d); }),
      shape);
}

namespace {

DimMap Along(const DimMap& to_frame, const DimMap& frame) {
  DimMap axes(to_frame.size(), kNone);
  for (size_t d = 0; d < to_frame.size(); ++d)
    if (to_frame[d] != kNone) axes[d] = frame[to_frame[d]];
  return axes;
}

}  // namespace

DimMap OperandAxes(const ir::Graph& graph, const ir::Node& node, const DimMap& frame, size_t slot) {
  return Along(OperandToFrame(graph, node, slot), frame);
}

DimMap ResultAxes(const ir::Graph& graph, const ir::Node& node, const DimMap& frame) {
  return Along(ResultToFrame(graph, node), frame);
}

DimMap FrameFromResult(const ir::Graph& graph, const ir::Node& node, const DimMap& axes) {
  DimMap frame(FrameExtents(graph, node).size(), kNone);
  const DimMap to_frame = ResultToFrame(graph, node);
  for (size_t d = 0; d < to_frame.size(); ++d)
    if (to_frame[d] != kNone) frame[to_frame[d]] = axes[d];
  return frame;
}

DimMap ReducedDims(const ir::Graph& graph, const ir::Node& node) {
  DimMap reduced;
  if (!IsReduction(node)) return reduced;
  const ir::Dims& extents = FrameExtents(graph, node);
  for (int64_t dim : node.attributes.Ints(AttributeKey::kDims))
    if (extents[dim] != 1) reduced.push_back(static_cast<int8_t>(dim));
  return reduced;
}

}  // namespace fusiond::schedule
