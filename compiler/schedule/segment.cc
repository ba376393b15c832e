#include "compiler/schedule/segment.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "compiler/schedule/cost.h"

namespace fusiond::schedule {

bool Stores(const Segment& segment, ir::ValueId id) {
  return std::binary_search(segment.stores.begin(), segment.stores.end(), id);
}

std::vector<Read> Uses(const ir::Graph& graph, const SegmentNode& node) {
  std::vector<Read> uses;
  const ir::Node& ir_node = graph.node(node.node);
  if (IsMap(ir_node.op)) {
    Read use;
    use.mapped = true;
    for (const ir::ValueId base : node.bases) {
      use.value = base;
      uses.push_back(use);
    }
    return uses;
  }
  for (size_t slot = 0; slot < ir_node.operands.size(); ++slot) {
    const ir::ValueId operand = ir_node.operands[slot];
    if (graph.type(operand).scalar) continue;
    uses.push_back({operand, OperandAxes(graph, ir_node, node.axes, slot)});
  }
  return uses;
}

std::vector<Read> Reads(const ir::Graph& graph, const Segment& segment) {
  std::vector<Read> reads;
  absl::flat_hash_set<std::pair<ir::ValueId, DimMap>> known;
  absl::flat_hash_set<ir::ValueId> mapped;
  for (const SegmentNode& node : segment.nodes) {
    for (Read& use : Uses(graph, node)) {
      const bool added =
          use.mapped ? mapped.insert(use.value).second : known.insert({use.value, use.axes}).second;
      if (added) reads.push_back(std::move(use));
    }
    const ir::Node& ir_node = graph.node(node.node);
    known.insert({ir_node.results[0], ResultAxes(graph, ir_node, node.axes)});
  }
  return reads;
}

}  // namespace fusiond::schedule
