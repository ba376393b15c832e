// Lowering: the first step of BuildRegion, instrs of a segment over its axes.
//
// Thread-safety: single-thread (the one call of BuildRegion).
#ifndef FUSIOND_COMPILER_SCHEDULE_LOWERING_INTERNAL_H_
#define FUSIOND_COMPILER_SCHEDULE_LOWERING_INTERNAL_H_

#include <cstdint>
#include <optional>
#include <tuple>
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

// Where along one dim a map reads, at every point of the space:
//   constant + Σ by_axis[a] · axis a + Σ scale · instr.
struct Index {
  int64_t constant = 0;
  Strides by_axis;                                     // 0 or more
  std::vector<std::pair<uint32_t, int64_t>> computed;  // (instr of index_type_, scale), sorted
  // Its bounds; where a guard is false it may lie outside.
  int64_t low = 0;
  int64_t high = 0;

  bool IsLinear() const { return computed.empty(); }
  bool operator==(const Index& other) const {
    return constant == other.constant && by_axis == other.by_axis && computed == other.computed;
  }
  template <typename H>
  friend H AbslHashValue(H h, const Index& index) {
    return H::combine(std::move(h), index.constant, index.by_axis, index.computed);
  }
};
using Indices = std::vector<Index>;
// A bool instr: whether memory may be read; absent: always.
using Guard = std::optional<uint32_t>;

class Lowering {
 public:
  Lowering(const ir::Graph& graph, const Segment& segment, const Memory& memory, Region& region)
      : graph_(graph), segment_(segment), memory_(memory), region_(region) {}

  // Fills tensors, scalars, instrs and stores. Strides are by axis.
  absl::Status Run();

 private:
  using OperandFunction = absl::FunctionRef<absl::StatusOr<uint32_t>(size_t slot)>;

  // While it lives, what is emitted is a step of value `id`, and of `before` afterwards.
  class Origin {
   public:
    Origin(Lowering& lowering, ir::ValueId id) : origin_(lowering.origin_), before_(origin_) {
      origin_ = id;
    }
    ~Origin() { origin_ = before_; }
    Origin(const Origin&) = delete;
    Origin& operator=(const Origin&) = delete;

   private:
    ir::ValueId& origin_;
    const ir::ValueId before_;
  };

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

  // lower_index.cc: arithmetic on indices.
  Index Constant(int64_t value) const;
  Index Axis(int8_t axis) const;  // 0 for kNone
  static Index Add(const Index& a, const Index& b);
  static Index Scale(Index index, int64_t by);
  static Index Shift(Index index, int64_t by);
  // (quotient, remainder). Requires: index ≥ 0 wherever its guard holds.
  std::pair<Index, Index> DivMod(const Index& index, int64_t divisor);
  // What digits of one index were is that index again.
  void Recombine(Index& index) const;
  uint32_t EmitIndex(Index index);
  uint32_t EmitBinary(ir::Op op, uint32_t a, uint32_t b, ir::DType dtype);
  // index in 0 … extent-1, as far as its bounds leave that open; nullopt: it always is.
  Guard InRange(const Index& index, int64_t extent);
  Guard And(Guard a, Guard b);

  // lower_map.cc: what a map's cone computes at `indices`, one a dim of the value.
  struct Cone {
    absl::Span<const ir::ValueId> bases;
    Guard guard;
    Cone Where(Guard also, Lowering& lowering) const { return {bases, lowering.And(guard, also)}; }
  };
  absl::StatusOr<uint32_t> LowerMap(const SegmentNode& node);
  absl::StatusOr<uint32_t> LowerIota(const ir::Node& node, const Index& index);
  absl::StatusOr<uint32_t> ValueAt(ir::ValueId id, const Indices& indices, const Cone& cone);
  absl::StatusOr<uint32_t> MapAt(const ir::Node& node, const Indices& indices, const Cone& cone);
  absl::StatusOr<uint32_t> ReshapeAt(const ir::Node& node, const Indices& indices,
                                     const Cone& cone);
  absl::StatusOr<uint32_t> PadAt(const ir::Node& node, const Indices& indices, const Cone& cone);
  absl::StatusOr<uint32_t> CatAt(const ir::Node& node, const Indices& indices, const Cone& cone);
  absl::StatusOr<uint32_t> TakeAt(const ir::Node& node, Indices indices, const Cone& cone);
  uint32_t LoadAt(ir::ValueId id, const Indices& indices, Guard guard);
  uint32_t Select(Guard guard, uint32_t value, uint32_t otherwise);
  uint32_t Zero(ir::DType dtype);
  // The indices of a node's operand, for an op that a frame places.
  Indices OperandIndices(const ir::Node& node, const Indices& indices, size_t slot) const;

  const ir::Graph& graph_;
  const Segment& segment_;
  const Memory& memory_;
  Region& region_;
  ir::ValueId origin_ = Instr::kNoOrigin;
  absl::flat_hash_map<std::pair<ir::ValueId, DimMap>, uint32_t> values_;
  absl::flat_hash_map<ir::ValueId, uint32_t> scalars_;
  absl::flat_hash_map<std::pair<uint32_t, int64_t>, uint32_t> tensors_;  // and offset → region's
  struct Digits {
    Index whole;
    int64_t divisor = 1;
    Index quotient;
  };
  ir::DType index_type_ = ir::DType::kInt32;
  absl::flat_hash_map<std::tuple<ir::ValueId, Indices, Guard>, uint32_t> mapped_;
  absl::flat_hash_map<Index, uint32_t> indices_;      // emitted
  absl::flat_hash_map<uint32_t, Digits> remainders_;  // by the instr of a remainder
  absl::flat_hash_map<std::tuple<ir::Op, uint32_t, uint32_t>, uint32_t> binaries_;
};

}  // namespace fusiond::schedule

#endif  // FUSIOND_COMPILER_SCHEDULE_LOWERING_INTERNAL_H_
