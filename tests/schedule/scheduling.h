// Segments and regions of a graph in text, for tests of the schedulers.
#ifndef FUSIOND_TESTS_SCHEDULE_SCHEDULING_H_
#define FUSIOND_TESTS_SCHEDULE_SCHEDULING_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler/ir/graph.h"
#include "compiler/schedule/region.h"
#include "compiler/schedule/segment.h"
#include "compiler/schedule/segmenter.h"

namespace fusiond::testing {

struct SegmentedGraph {
  ir::Graph graph;  // canonical, prepared
  std::vector<schedule::Segment> segments;
  std::vector<schedule::Region> regions;  // one a segment
};

// Canonicalises `text`, whose extents are static, and cuts it.
absl::StatusOr<SegmentedGraph> SegmentText(absl::string_view text,
                                           schedule::Fusion fusion = schedule::Fusion::kAll);

// How many instrs of `op` the region has.
int CountOf(const schedule::Region& region, ir::Op op);

}  // namespace fusiond::testing

#endif  // FUSIOND_TESTS_SCHEDULE_SCHEDULING_H_
