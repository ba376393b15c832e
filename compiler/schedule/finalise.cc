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

// Which dims of a region stay, and how they are cut.
class Cut {
 public:
  Cut(const Region& region, const PartLayout& layout) : layout_(layout) {
    for (size_t d = 0; d < region.dims.size(); ++d)
      if (region.dims[d].column != region.late_rows) kept_.push_back(d);
    FUSIOND_CHECK(layout.factors.empty() || kept_.size() == 1);
    if (!layout.factors.empty()) {
      for (const PartLayout::Factor& factor : layout.factors) extents_.push_back(factor.extent);
    } else {
      for (size_t d : kept_) extents_.push_back(region.dims[d].extent);
    }
    if (extents_.empty()) extents_.push_back(1);
  }

  const std::vector<int64_t>& extents() const { return extents_; }

  // Strides of the new region: the parts, then the kept dims.
  Strides Of(const Strides& strides) const {
    Strides result = {0};
    if (layout_.factors.empty()) {
      for (size_t d : kept_) result.push_back(strides[d]);
      if (kept_.empty()) result.push_back(0);
      return result;
    }
    int64_t stride = strides[kept_[0]];
    for (size_t f = extents_.size(); f-- > 0; stride *= extents_[f])
      result.insert(result.begin() + 1, stride);
    return result;
  }

  Strides OfParts() const {
    Strides result;
    int64_t dense = 1;
    for (size_t f = extents_.size(); f-- > 0; dense *= extents_[f]) {
      result.insert(result.begin(), layout_.factors.empty() ? dense : layout_.factors[f].stride);
    }
    result.insert(result.begin(), layout_.elements > 0 ? layout_.elements : dense);
    return result;
  }

 private:
  const PartLayout& layout_;
  std::vector<size_t> kept_;
  std::vector<int64_t> extents_;
};

Tensor PartsTensor(ir::DType dtype, const std::vector<int64_t>& extents, const Strides& strides,
                   int64_t parts) {
  Tensor tensor;
  tensor.dtype = dtype;
  tensor.shape.push_back(parts);
  for (int64_t extent : extents) tensor.shape.push_back(extent);
  tensor.strides.assign(strides.begin(), strides.end());
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

Region FinaliseRegion(const Region& region, int64_t parts, const PartLayout& layout) {
  const Cut cut(region, layout);
  Region result;
  result.column_reductions = true;
  result.dims.push_back({parts, false});
  for (int64_t extent : cut.extents()) result.dims.push_back({extent, true});
  result.tensors = region.tensors;
  result.scalars = region.scalars;

  std::vector<bool> needed(region.instrs.size(), false);
  for (const Store& store : region.stores) needed[store.value] = region.instrs[store.value].late;
  for (size_t i = region.instrs.size(); i-- > 0;) {
    if (!needed[i] || IsLateReduction(region.instrs[i])) continue;
    for (uint32_t operand : region.instrs[i].operands) needed[operand] = true;
  }
  std::vector<uint32_t> number(region.instrs.size(), 0);
  for (uint32_t i = 0; i < region.instrs.size(); ++i) {
    const Instr& instr = region.instrs[i];
    const bool reduction = IsLateReduction(instr);
    if (reduction) {
      Instr load;
      load.kind = Instr::Kind::kLoad;
      load.dtype = instr.dtype;
      load.access = {static_cast<uint32_t>(result.tensors.size()), cut.OfParts()};
      result.tensors.push_back(PartsTensor(instr.dtype, cut.extents(), load.access.strides, parts));
      if (needed[i]) result.instrs.push_back(std::move(load));
    }
    if (!needed[i]) continue;
    Instr copy = instr;
    if (reduction) {
      copy.operands = {static_cast<uint32_t>(result.instrs.size() - 1)};
      copy.over_columns = false;
    } else {
      for (uint32_t& operand : copy.operands) operand = number[operand];
      if (copy.kind == Instr::Kind::kLoad) copy.access.strides = cut.Of(copy.access.strides);
    }
    copy.stage = 0;
    copy.late = false;
    number[i] = static_cast<uint32_t>(result.instrs.size());
    result.instrs.push_back(std::move(copy));
  }
  for (const Store& store : region.stores) {
    if (!region.instrs[store.value].late) continue;
    result.stores.push_back(
        {number[store.value], {store.access.tensor, cut.Of(store.access.strides)}});
  }
  Classify(result);
  return result;
}

// 64 columns a CTA (32 where columns are few), 512 threads, four parts of each column's vector on
// the way at once: measured on an H200, rowcolumn.md 13.
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
