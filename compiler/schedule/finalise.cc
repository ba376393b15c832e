#include "compiler/schedule/finalise.h"

#include <algorithm>

#include "compiler/schedule/column.h"
#include "compiler/schedule/region_builder_internal.h"
#include "runtime/base/check.h"

namespace fusiond::schedule {
namespace {

bool IsLateReduction(const Instr& instr) {
  return instr.kind == Instr::Kind::kReduce && instr.late;
}

// Dims that the parts keep.
std::vector<size_t> KeptDims(const Region& region) {
  std::vector<size_t> kept;
  for (size_t d = 0; d < region.dims.size(); ++d)
    if (region.dims[d].column) kept.push_back(d);
  return kept;
}

// Strides over (parts, kept dims) of an access that does not vary by part.
Strides Kept(const Strides& strides, const std::vector<size_t>& kept) {
  Strides result = {0};
  for (size_t d : kept) result.push_back(strides[d]);
  if (kept.empty()) result.push_back(0);
  return result;
}

// The buffer of one reduction's parts.
Tensor Parts(ir::DType dtype, const std::vector<Dim>& dims) {
  Tensor tensor;
  tensor.dtype = dtype;
  for (const Dim& dim : dims) tensor.shape.push_back(dim.extent);
  tensor.strides = ir::ContiguousStrides(tensor.shape);
  // The kernel ahead may still be writing when this one begins: no read-only path.
  tensor.shared = true;
  return tensor;
}

}  // namespace

std::vector<uint32_t> LateReductions(const Region& region) {
  std::vector<uint32_t> reductions;
  for (uint32_t i = 0; i < region.instrs.size(); ++i)
    if (IsLateReduction(region.instrs[i])) reductions.push_back(i);
  return reductions;
}

std::vector<bool> ComputedBefore(const Region& region) {
  std::vector<bool> computed(region.instrs.size(), false);
  for (uint32_t i : LateReductions(region)) computed[region.instrs[i].operands[0]] = true;
  for (const Store& store : region.stores)
    if (!region.instrs[store.value].late) computed[store.value] = true;
  for (size_t i = region.instrs.size(); i-- > 0;) {
    if (!computed[i]) continue;
    for (uint32_t operand : region.instrs[i].operands) computed[operand] = true;
  }
  return computed;
}

Region FinaliseRegion(const Region& region, int64_t parts) {
  const std::vector<size_t> kept = KeptDims(region);
  Region result;
  result.math = region.math;
  result.column_reductions = true;
  result.dims.push_back({parts, false});
  for (size_t d : kept) result.dims.push_back({region.dims[d].extent, true});
  if (kept.empty()) result.dims.push_back({1, true});
  result.tensors = region.tensors;
  result.scalars = region.scalars;

  std::vector<bool> needed(region.instrs.size(), false);
  for (const Store& store : region.stores)
    if (region.instrs[store.value].late) needed[store.value] = true;
  for (size_t i = region.instrs.size(); i-- > 0;) {
    if (!needed[i] || IsLateReduction(region.instrs[i])) continue;
    for (uint32_t operand : region.instrs[i].operands) needed[operand] = true;
  }
  std::vector<uint32_t> number(region.instrs.size(), 0);
  for (uint32_t i = 0; i < region.instrs.size(); ++i) {
    if (!needed[i]) continue;
    Instr copy = region.instrs[i];
    if (IsLateReduction(copy)) {
      Instr load;
      load.kind = Instr::Kind::kLoad;
      load.dtype = copy.dtype;
      load.access.tensor = static_cast<uint32_t>(result.tensors.size());
      result.tensors.push_back(Parts(copy.dtype, result.dims));
      const ir::Dims& strides = result.tensors.back().strides;
      load.access.strides.assign(strides.begin(), strides.end());
      copy.operands = {static_cast<uint32_t>(result.instrs.size())};
      copy.over_columns = false;
      result.instrs.push_back(std::move(load));
    } else {
      for (uint32_t& operand : copy.operands) operand = number[operand];
      if (ReadsMemory(copy) || copy.kind == Instr::Kind::kIndex)
        copy.access.strides = Kept(copy.access.strides, kept);
    }
    copy.stage = 0;
    copy.late = false;
    number[i] = static_cast<uint32_t>(result.instrs.size());
    result.instrs.push_back(std::move(copy));
  }
  for (const Store& store : region.stores) {
    if (!region.instrs[store.value].late) continue;
    result.stores.push_back(
        {number[store.value], {store.access.tensor, Kept(store.access.strides, kept)}});
  }
  Classify(result);
  return result;
}

// 64 columns a CTA (32 where columns are few), 512 threads, four parts of each column's vector on
// the way at once: README, figure "finalise".
KernelSchedule FinaliseSchedule(const Region& region) {
  constexpr int64_t kFewColumns = 4096;
  constexpr int kThreads = 512;
  const int64_t tile = region.Columns() >= kFewColumns ? 64 : 32;
  int vector = 4;
  while (region.dims.back().extent % vector != 0) vector /= 2;
  KernelSchedule s = ColumnSchedule(region, kThreads, vector, static_cast<int>(tile / vector));
  const int64_t rows_at_once = s.threads / s.threads_per_row;
  s.unroll = static_cast<int>(
      std::clamp<int64_t>((region.Rows() + rows_at_once - 1) / rows_at_once, 1, 8));
  return s;
}

}  // namespace fusiond::schedule
