// Lowering: the first step of BuildRegion, instrs of a segment over its axes.
//
// Thread-safety: single-thread (the one call of BuildRegion).
#ifndef FUSIOND_COMPILER_SCHEDULE_LOWERING_INTERNAL_H_
#define FUSIOND_COMPILER_SCHEDULE_LOWERING_INTERNAL_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/ir/graph.h"
#include "compiler/schedule/region.h"
#include "compiler/schedule/segment.h"

namespace fusiond::schedule {

// Where along one dim a map reads, at every point of the space: constant + Σ by_axis[a] · axis a.
struct Index {
  int64_t constant = 0;
  Strides by_axis;
  bool operator==(const Index&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const Index& index) {
    return H::combine(std::move(h), index.constant, index.by_axis);
  }
};
using Indices = std::vector<Index>;

class Lowering {
 public:
  Lowering(const ir::Graph& graph, const Segment& segment, const Memory& memory, Region& region)
      : graph_(graph), segment_(segment), memory_(memory), region_(region) {}

  // Fills tensors, scalars, instrs and stores. Strides are by axis.
  absl::Status Run();

 private:
  using OperandFunction = absl::FunctionRef<absl::StatusOr<uint32_t>(size_t slot)>;

  uint32_t Emit(Instr instr);
  uint32_t EmitConstant(ir::Number number, ir::DType dtype);
  // `offset` elements into memory tensor `tensor`.
  Access AccessTo(uint32_t tensor, Strides strides, int64_t offset);
  Access AccessTo(uint32_t tensor, const DimMap& axes);
  void LowerStores(ir::ValueId id, uint32_t instr, const DimMap& axes);
  uint32_t EmitLoad(ir::ValueId id, Access access);
  // `instr`, which holds a value of dtype `from`, as dtype `to`.
  uint32_t Convert(uint32_t instr, ir::DType from, ir::DType to);
  absl::StatusOr<uint32_t> Operand(const ir::Node& node, const DimMap& frame, size_t slot);
  absl::StatusOr<uint32_t> Scalar(ir::ValueId wanted);
  absl::StatusOr<uint32_t> Lower(const ir::Node& node, const DimMap& frame);
  // Pointwise and shape ops, given their operands.
  absl::StatusOr<uint32_t> Compute(const ir::Node& node, OperandFunction operand);
  absl::StatusOr<uint32_t> Reduce(const ir::Node& node, const DimMap& frame);

  // lower_map.cc: what a map's cone computes at `indices`, one a dim of the value.
  absl::StatusOr<uint32_t> LowerMap(const SegmentNode& node);
  absl::StatusOr<uint32_t> ValueAt(ir::ValueId id, const Indices& indices,
                                   absl::Span<const ir::ValueId> bases);
  absl::StatusOr<uint32_t> MapAt(const ir::Node& node, const Indices& indices,
                                 absl::Span<const ir::ValueId> bases);
  uint32_t LoadAt(ir::ValueId id, const Indices& indices);
  Index Constant(int64_t value) const;

  const ir::Graph& graph_;
  const Segment& segment_;
  const Memory& memory_;
  Region& region_;
  absl::flat_hash_map<std::pair<ir::ValueId, DimMap>, uint32_t> values_;
  absl::flat_hash_map<ir::ValueId, uint32_t> scalars_;
  absl::flat_hash_map<std::pair<uint32_t, int64_t>, uint32_t> tensors_;  // and offset → region's
  absl::flat_hash_map<std::pair<ir::ValueId, Indices>, uint32_t> mapped_;
};

}  // namespace fusiond::schedule

#endif  // FUSIOND_COMPILER_SCHEDULE_LOWERING_INTERNAL_H_
