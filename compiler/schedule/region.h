// Region: a segment seen from its iteration space; what schedulers look at and emitters write out.
//
// Its dims are the segment's axes, ordered as memory runs and merged where no tensor can tell them
// apart: row dims first, then column dims, each from outer to inner. Views have vanished: what is
// left are loads, arithmetic, reductions and stores. Values live in registers as their compute type
// (bf16 and half as f32); roundings to a 16-bit type are casts of their own, except before a store,
// which rounds by itself.
//
// Thread-safety: a value.
#ifndef FUSIOND_COMPILER_SCHEDULE_REGION_H_
#define FUSIOND_COMPILER_SCHEDULE_REGION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/ir/graph.h"
#include "compiler/ir/math.h"
#include "compiler/schedule/segment.h"
#include "compiler/schedule/tensor.h"

namespace fusiond::schedule {

struct Dim {
  int64_t extent = 1;
  bool column = true;  // every dim is a column dim where no reduction splits the axes
  bool operator==(const Dim&) const = default;
};

using Strides = std::vector<int64_t>;

// Where a tensor's elements lie, by region dim.
struct Access {
  uint32_t tensor = 0;  // index into Region::tensors
  Strides strides;      // elements a dim; 0 where the tensor does not vary
  bool operator==(const Access&) const = default;
};

enum class ValueClass : uint8_t { kScalar, kRow, kColumn, kFull };

struct Instr {
  enum class Kind : uint8_t {
    kLoad,      // access
    kScalar,    // runtime scalar `index` of Region::scalars
    kConstant,  // number
    kCompute,   // pointwise op; operands have the dtype it computes in
    kIndex,     // Σ access.strides · coordinate, an i32 or i64; names no tensor
    // The element of the access, operands[0] elements further (an i32 or i64). With operands[1]:
    // only where that is true, else 0.
    kFetch,
    kReduce,  // op: kSum, kProd, kMax, kMin; kVar, kExp (online.h); in dtype
  };
  Kind kind = Kind::kCompute;
  ir::Op op = ir::Op::kSet;
  std::vector<uint32_t> operands;          // earlier instrs
  ir::DType dtype = ir::DType::kFloat;     // in registers: bool, i32, i64, f32 or f64
  ir::DType rounding = ir::DType::kFloat;  // cast: the dtype cast to, which may be 16 bits wide
  ir::Number number = false;
  uint32_t index = 0;  // kScalar
  Access access;       // kLoad, kFetch, kIndex
  // The graph's value that it reads or is a step of: names it for people and decides nothing.
  static constexpr ir::ValueId kNoOrigin = ~0u;
  ir::ValueId origin = kNoOrigin;

  uint32_t dims = 0;  // bit d: varies along region dim d
  ValueClass value_class = ValueClass::kScalar;
  bool over_columns = true;  // kReduce: over the column dims, else over the row dims
  uint8_t stage = 0;         // row reductions that must be complete before it
  bool late = false;         // complete only when the grid has ended: over rows, or after one
};

inline bool ReadsMemory(const Instr& instr) {
  return instr.kind == Instr::Kind::kLoad || instr.kind == Instr::Kind::kFetch;
}
// Computed where it is used, element by element, while plain loads come ahead and in vectors.
inline bool IsComputed(const Instr& instr) {
  return instr.kind == Instr::Kind::kCompute || instr.kind == Instr::Kind::kIndex ||
         instr.kind == Instr::Kind::kFetch;
}
// Whether it takes the coordinates of an element.
inline bool TakesCoordinates(const Instr& instr) {
  return instr.kind == Instr::Kind::kIndex || instr.kind == Instr::Kind::kFetch;
}

struct Store {
  uint32_t value = 0;  // instr
  Access access;
};

struct Region {
  ir::Math math = ir::Math::kDefault;
  std::vector<Dim> dims;
  std::vector<Tensor> tensors;
  std::vector<ir::ValueId> scalars;  // graph inputs passed by value
  std::vector<Instr> instrs;         // operands before users; all of them used
  std::vector<Store> stores;
  bool row_reductions = false;
  bool column_reductions = false;

  int64_t Rows() const;     // product of the row dims
  int64_t Columns() const;  // product of the column dims
  int64_t Elements() const { return Rows() * Columns(); }
};

// Every access to memory, of a Region or a const Region.
template <class AnyRegion, class Function>
void ForEachAccess(AnyRegion& region, Function function) {
  for (auto& instr : region.instrs)
    if (ReadsMemory(instr)) function(instr.access);
  for (auto& store : region.stores) function(store.access);
}
// The strides of those, and of indices.
template <class AnyRegion, class Function>
void ForEachStrides(AnyRegion& region, Function function) {
  ForEachAccess(region, [&](auto& access) { function(access.strides); });
  for (auto& instr : region.instrs)
    if (instr.kind == Instr::Kind::kIndex) function(instr.access.strides);
}
bool TakesCoordinates(const Region& region);
// As of an op (cost.h), for an instr that is no plain load.
int IssueSlots(const Instr& instr);

// What memory holds for the values of a graph.
struct Memory {
  std::vector<Tensor> tensors;
  // By ValueId: the tensor to read it from; kNoTensor where memory does not hold it.
  static constexpr uint32_t kNoTensor = ~0u;
  std::vector<uint32_t> source;
  // By ValueId: every tensor that its segment writes.
  std::vector<absl::InlinedVector<uint32_t, 1>> targets;
};

// Whether `id` is an input that lies in host memory.
bool InHostMemory(const ir::Graph& graph, ir::ValueId id);

// INVALID_ARGUMENT from type inference only, which a verified graph does not cause.
absl::StatusOr<Region> BuildRegion(const ir::Graph& graph, const Segment& segment,
                                   const Memory& memory);
// A region that copies one tensor to others of equal shape.
Region CopyRegion(const Tensor& from, absl::Span<const Tensor> to);

// One line an instr, for people and tests: "%2 = mul %0, %1 : f32 full stage 0".
std::string Print(const Region& region);

}  // namespace fusiond::schedule

#endif  // FUSIOND_COMPILER_SCHEDULE_REGION_H_
