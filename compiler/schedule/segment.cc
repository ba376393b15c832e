#include "compiler/schedule/segment.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"

namespace fusiond::schedule {

bool Stores(const Segment& segment, ir::ValueId id) {
  return std::binary_search(segment.stores.begin(), segment.stores.end(), id);
}

std::vector<Read> Reads(const ir::Graph& graph, const Segment& segment) {
  std::vector<Read> reads;
  absl::flat_hash_set<std::pair<ir::ValueId, DimMap>> known;
  for (const SegmentNode& node : segment.nodes) {
    const ir::Node& ir_node = graph.node(node.node);
    for (size_t slot = 0; slot < ir_node.operands.size(); ++slot) {
      const ir::ValueId operand = ir_node.operands[slot];
      if (graph.type(operand).scalar) continue;
      DimMap axes = OperandAxes(graph, ir_node, node.axes, slot);
      if (known.insert({operand, axes}).second) reads.push_back({operand, std::move(axes)});
    }
    known.insert({ir_node.results[0], ResultAxes(graph, ir_node, node.axes)});
  }
  return reads;
}

}  // namespace fusiond::schedule
