// Segmentation: cuts a canonical graph into segments, in near-linear time.
//
// One pass in topological order. A node joins the segments of its operands when one iteration space
// holds them all; otherwise it opens a segment one level up and reads their results from memory.
// Segments of one level never depend on one another, so uniting two of them (because a node needs
// both, or because both read the same large tensor) can close no cycle. Cheap functions of one
// input (casts, views, constants) float: each user computes them anew.
//
// Afterwards each value that crosses segments is either stored, or computed again by its users when
// that moves fewer bytes (R12 of the design notes); what nobody needs any more is dropped.
//
// Thread-safety: pure function. Cost: O((nodes + operands) · log nodes).
#ifndef FUSIOND_COMPILER_SCHEDULE_SEGMENTER_H_
#define FUSIOND_COMPILER_SCHEDULE_SEGMENTER_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/ir/graph.h"
#include "compiler/schedule/segment.h"

namespace fusiond::schedule {

// How much a node may be fused; raised for the nodes of a segment that no scheduler takes.
enum class Fusion : uint8_t {
  kAll,       // whatever one iteration space holds
  kOneKind,   // not a row and a column reduction in one segment
  kSimple,    // nothing uses a reduction's result in its own segment
  kNodeAlone  // a kernel of its own
};

struct SegmentRequest {
  const ir::Graph* graph = nullptr;     // from Prepare(); all extents static
  std::vector<ir::Dims> input_strides;  // elements, one entry an input
  absl::Span<const Fusion> fusion;      // by NodeId; empty: kAll everywhere
};

// Segments in an order in which they may run. INTERNAL names a node that no kernel computes
// (an op that canonicalisation should have lowered).
absl::StatusOr<std::vector<Segment>> Segmentation(const SegmentRequest& request);

// Makes a canonical graph fit for Segmentation: an output that is an input becomes a copy, a
// reduction over no elements its identity, and an output behind a reshape has the shape before it
// (output_reshapes.h).
absl::StatusOr<ir::Graph> Prepare(const ir::Graph& graph);

}  // namespace fusiond::schedule

#endif  // FUSIOND_COMPILER_SCHEDULE_SEGMENTER_H_
