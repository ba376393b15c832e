#include "compiler/schedule/region.h"

#include <algorithm>
#include <utility>

#include "compiler/schedule/cost.h"
#include "compiler/schedule/lowering_internal.h"
#include "compiler/schedule/region_builder_internal.h"
#include "runtime/base/status_macros.h"

namespace fusiond::schedule {

using ir::Op;
using ir::ValueId;

int64_t Region::Rows() const {
  int64_t product = 1;
  for (const Dim& dim : dims)
    if (!dim.column) product *= dim.extent;
  return product;
}

int64_t Region::Columns() const {
  int64_t product = 1;
  for (const Dim& dim : dims)
    if (dim.column) product *= dim.extent;
  return product;
}

bool TakesCoordinates(const Region& region) {
  return std::any_of(region.instrs.begin(), region.instrs.end(),
                     [](const Instr& instr) { return TakesCoordinates(instr); });
}

int IssueSlots(const Instr& instr) {
  if (instr.kind == Instr::Kind::kFetch) return 8;
  return instr.kind == Instr::Kind::kIndex ? 2 : IssueSlots(instr.op);
}

bool InHostMemory(const ir::Graph& graph, ValueId id) {
  const ir::Node& producer = graph.producer(id);
  return producer.op == Op::kInput && producer.attributes.Bool(ir::AttributeKey::kHost);
}

absl::StatusOr<Region> BuildRegion(const ir::Graph& graph, const Segment& segment,
                                   const Memory& memory) {
  Region region;
  region.row_reductions = segment.row_reductions;
  region.column_reductions = segment.column_reductions;
  FUSIOND_RETURN_IF_ERROR(Lowering(graph, segment, memory, region).Run());
  StoreUnrounded(region);
  DropUnused(region);
  OrderDims(segment.axes, region);
  MergeDims(region);
  Classify(region);
  return region;
}

Region CopyRegion(const Tensor& from, absl::Span<const Tensor> to) {
  Region region;
  region.tensors = {from};
  Instr load;
  load.kind = Instr::Kind::kLoad;
  load.dtype = ir::ComputeType(from.dtype);
  std::vector<Axis> axes;
  Access source{0, {}};
  for (size_t d = 0; d < from.shape.size(); ++d) {
    if (from.shape[d] == 1) continue;
    axes.push_back({from.shape[d]});
    source.strides.push_back(from.strides[d]);
  }
  load.access = std::move(source);
  region.instrs.push_back(std::move(load));
  for (const Tensor& tensor : to) {
    Access target{static_cast<uint32_t>(region.tensors.size()), {}};
    for (size_t d = 0; d < from.shape.size(); ++d)
      if (from.shape[d] != 1) target.strides.push_back(tensor.strides[d]);
    region.tensors.push_back(tensor);
    region.stores.push_back({0, std::move(target)});
  }
  OrderDims(axes, region);
  MergeDims(region);
  Classify(region);
  return region;
}

}  // namespace fusiond::schedule
