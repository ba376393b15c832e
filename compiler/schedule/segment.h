// Segment: the part of a graph that one schedule covers, with the axes of its iteration space.
//
// Every dim of extent > 1 of every value in a segment lies along one of its axes. Reductions split
// the axes in two groups, columns and rows: a row reduction sums over every column axis, a column
// reduction over every row axis, and nothing sums over anything else. Without reductions there is
// one group.
//
// Thread-safety: values.
#ifndef FUSIOND_COMPILER_SCHEDULE_SEGMENT_H_
#define FUSIOND_COMPILER_SCHEDULE_SEGMENT_H_

#include <cstdint>
#include <vector>

#include "compiler/ir/graph.h"
#include "compiler/schedule/frame.h"

namespace fusiond::schedule {

enum class Role : uint8_t { kNone, kRow, kColumn };

struct Axis {
  int64_t extent = 1;
  Role role = Role::kNone;  // kNone on every axis of a segment without reductions
  bool operator==(const Axis&) const = default;
};

// A node as one segment computes it. A cheap node may be computed by several segments.
struct SegmentNode {
  ir::NodeId node = 0;
  DimMap axes;  // of each dim of the node's frame; kNone for extents of 1
  // Of a map: the values in memory from which its elements are computed anew, in order of use.
  std::vector<ir::ValueId> bases;
};

struct Segment {
  int level = 0;  // segments read only what lower levels store
  std::vector<Axis> axes;
  std::vector<SegmentNode> nodes;   // producers before users
  std::vector<ir::ValueId> stores;  // what memory must hold of it, by id; also inputs to be copied
  bool row_reductions = false;
  bool column_reductions = false;
};

// Whether memory must hold value `id` of the segment.
bool Stores(const Segment& segment, ir::ValueId id);

struct Read {
  ir::ValueId value = 0;
  DimMap axes;          // along which the value is read
  bool mapped = false;  // at indices that a map computes, along no axes
};
// The tensors that a node reads: its operands, or a map's bases.
std::vector<Read> Uses(const ir::Graph& graph, const SegmentNode& node);
// What the segment reads from memory, in the order of first use.
std::vector<Read> Reads(const ir::Graph& graph, const Segment& segment);

}  // namespace fusiond::schedule

#endif  // FUSIOND_COMPILER_SCHEDULE_SEGMENT_H_
