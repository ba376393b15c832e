#include "tests/schedule/scheduling.h"

#include <algorithm>

#include "compiler/ir/text.h"
#include "compiler/passes/pipeline.h"
#include "compiler/schedule/storage.h"
#include "runtime/base/status_macros.h"

namespace fusiond::testing {

absl::StatusOr<SegmentedGraph> SegmentText(absl::string_view text, schedule::Fusion fusion) {
  SegmentedGraph result;
  FUSIOND_ASSIGN_OR_RETURN(const ir::Graph graph, ir::Parse(text));
  FUSIOND_ASSIGN_OR_RETURN(const ir::Graph canonical, passes::Canonicalise(graph));
  FUSIOND_ASSIGN_OR_RETURN(result.graph, schedule::Prepare(canonical));
  schedule::SegmentRequest request;
  request.graph = &result.graph;
  std::vector<schedule::BufferLayout> inputs, outputs;
  for (ir::ValueId input : result.graph.inputs()) {
    request.input_strides.push_back(result.graph.type(input).strides);
    inputs.push_back({result.graph.type(input).strides});
  }
  for (const ir::Output& output : result.graph.outputs())
    outputs.push_back({ir::ContiguousStrides(result.graph.type(output.value).shape)});
  const std::vector<schedule::Fusion> fusions(result.graph.nodes().size(), fusion);
  request.fusion = fusions;
  FUSIOND_ASSIGN_OR_RETURN(result.segments, schedule::Segmentation(request));
  const schedule::Storage storage =
      schedule::PlanStorage(result.graph, result.segments, inputs, outputs, true);
  for (const schedule::Segment& segment : result.segments) {
    FUSIOND_ASSIGN_OR_RETURN(schedule::Region region,
                             schedule::BuildRegion(result.graph, segment, storage.memory));
    result.regions.push_back(std::move(region));
  }
  return result;
}

int CountOf(const schedule::Region& region, ir::Op op) {
  return static_cast<int>(std::count_if(region.instrs.begin(), region.instrs.end(),
                                        [&](const schedule::Instr& i) { return i.op == op; }));
}

}  // namespace fusiond::testing
