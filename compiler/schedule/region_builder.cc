#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/ir/op_table.h"
#include "compiler/schedule/region_builder_internal.h"

namespace fusiond::schedule {
namespace {

// Accesses by the bytes they move, heaviest first; a store weighs twice (stores are
// more sensitive to their pattern than loads).
std::vector<const Access*> Heaviest(absl::Span<const Axis> axes, Region& region) {
  std::vector<std::pair<int64_t, const Access*>> weighed;
  const auto weigh = [&](const Access& access, int64_t factor) {
    const Tensor& tensor = region.tensors[access.tensor];
    int64_t bytes = factor * ir::ByteSize(tensor.dtype);
    for (size_t a = 0; a < axes.size(); ++a)
      if (access.strides[a] != 0) bytes *= axes[a].extent;
    weighed.emplace_back(bytes, &access);
  };
  for (const Instr& instr : region.instrs)
    if (instr.kind == Instr::Kind::kLoad) weigh(instr.access, 1);
  for (const Store& store : region.stores) weigh(store.access, 2);
  std::stable_sort(weighed.begin(), weighed.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<const Access*> accesses;
  for (const auto& [bytes, access] : weighed) accesses.push_back(access);
  return accesses;
}

}  // namespace

void StoreUnrounded(Region& region) {
  for (Store& store : region.stores) {
    const Instr& value = region.instrs[store.value];
    const bool cast = value.kind == Instr::Kind::kCompute && value.op == ir::Op::kCast;
    if (cast && value.rounding == region.tensors[store.access.tensor].dtype)
      store.value = value.operands[0];
  }
}

void DropUnused(Region& region) {
  std::vector<bool> used(region.instrs.size(), false);
  for (const Store& store : region.stores) used[store.value] = true;
  for (size_t i = region.instrs.size(); i-- > 0;) {
    if (!used[i]) continue;
    for (uint32_t operand : region.instrs[i].operands) used[operand] = true;
  }
  std::vector<uint32_t> number(region.instrs.size(), 0);
  std::vector<Instr> kept;
  std::vector<ir::ValueId> scalars;
  for (size_t i = 0; i < region.instrs.size(); ++i) {
    if (!used[i]) continue;
    Instr& instr = region.instrs[i];
    for (uint32_t& operand : instr.operands) operand = number[operand];
    if (instr.kind == Instr::Kind::kScalar) {
      scalars.push_back(region.scalars[instr.index]);
      instr.index = static_cast<uint32_t>(scalars.size() - 1);
    }
    number[i] = static_cast<uint32_t>(kept.size());
    kept.push_back(std::move(instr));
  }
  for (Store& store : region.stores) store.value = number[store.value];
  region.instrs = std::move(kept);
  region.scalars = std::move(scalars);

  constexpr uint32_t kUnseen = ~0u;
  std::vector<uint32_t> tensor_number(region.tensors.size(), kUnseen);
  std::vector<Tensor> tensors;
  ForEachAccess(region, [&](Access& access) {
    uint32_t& to = tensor_number[access.tensor];
    if (to == kUnseen) {
      to = static_cast<uint32_t>(tensors.size());
      tensors.push_back(region.tensors[access.tensor]);
    }
    access.tensor = to;
  });
  region.tensors = std::move(tensors);
}

void OrderDims(absl::Span<const Axis> axes, Region& region) {
  std::vector<size_t> order;  // outer to inner
  for (const Access* access : Heaviest(axes, region)) {
    std::vector<size_t> here;
    for (size_t a = 0; a < axes.size(); ++a) {
      if (access->strides[a] != 0 && std::find(order.begin(), order.end(), a) == order.end())
        here.push_back(a);
    }
    std::stable_sort(here.begin(), here.end(),
                     [&](size_t a, size_t b) { return access->strides[a] > access->strides[b]; });
    order.insert(order.begin(), here.begin(), here.end());
  }
  // Axes that no tensor varies along, as those of a scalar's expansion.
  for (size_t a = 0; a < axes.size(); ++a)
    if (std::find(order.begin(), order.end(), a) == order.end()) order.insert(order.begin(), a);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return (axes[a].role == Role::kRow) > (axes[b].role == Role::kRow);
  });
  for (size_t a : order) region.dims.push_back({axes[a].extent, axes[a].role != Role::kRow});
  ForEachStrides(region, [&](Strides& strides) {
    Strides ordered;
    for (size_t a : order) ordered.push_back(strides[a]);
    strides = std::move(ordered);
  });
}

void MergeDims(Region& region) {
  for (size_t d = region.dims.size(); d-- > 1;) {
    const Dim outer = region.dims[d - 1], inner = region.dims[d];
    bool merge = outer.column == inner.column;
    ForEachStrides(region, [&](const Strides& strides) {
      merge &= strides[d - 1] == strides[d] * inner.extent;
    });
    if (!merge) continue;
    region.dims[d - 1].extent *= inner.extent;
    region.dims.erase(region.dims.begin() + d);
    ForEachStrides(region, [&](Strides& strides) { strides.erase(strides.begin() + (d - 1)); });
  }
}

void Classify(Region& region) {
  uint32_t rows = 0, columns = 0;
  for (size_t d = 0; d < region.dims.size(); ++d)
    (region.dims[d].column ? columns : rows) |= 1u << d;
  for (Instr& instr : region.instrs) {
    instr.dims = 0;
    if (ReadsMemory(instr) || instr.kind == Instr::Kind::kIndex) {
      for (size_t d = 0; d < region.dims.size(); ++d)
        if (instr.access.strides[d] != 0) instr.dims |= 1u << d;
    }
    for (uint32_t o : instr.operands) {
      const Instr& operand = region.instrs[o];
      const bool row_result = operand.kind == Instr::Kind::kReduce && !operand.late;
      instr.dims |= operand.dims;
      instr.late |= operand.late;
      instr.stage = std::max<uint8_t>(instr.stage, operand.stage + row_result);
    }
    if (instr.kind == Instr::Kind::kReduce) {
      instr.dims &= ~(instr.over_columns ? columns : rows);
      instr.late |= !instr.over_columns;
    }
    instr.value_class = (instr.dims & rows)
                            ? (instr.dims & columns) ? ValueClass::kFull : ValueClass::kRow
                        : (instr.dims & columns) ? ValueClass::kColumn
                                                 : ValueClass::kScalar;
  }
}

std::string Print(const Region& region) {
  static constexpr const char* kClassNames[] = {"scalar", "row", "column", "full"};
  std::string text = "dims";
  for (const Dim& dim : region.dims)
    absl::StrAppend(&text, " ", dim.column ? "c" : "r", dim.extent);
  const auto access = [&](const Access& a) {
    return absl::StrCat("t", a.tensor, " ", ir::DTypeName(region.tensors[a.tensor].dtype), "{",
                        absl::StrJoin(a.strides, ","), "}");
  };
  for (size_t i = 0; i < region.instrs.size(); ++i) {
    const Instr& instr = region.instrs[i];
    absl::StrAppend(&text, "\n%", i, " = ");
    switch (instr.kind) {
      case Instr::Kind::kLoad:
        absl::StrAppend(&text, "load ", access(instr.access));
        break;
      case Instr::Kind::kIndex:
        absl::StrAppend(&text, "index {", absl::StrJoin(instr.access.strides, ","), "}");
        break;
      case Instr::Kind::kFetch:
        absl::StrAppend(&text, "fetch ", access(instr.access));
        for (uint32_t operand : instr.operands) absl::StrAppend(&text, " %", operand);
        break;
      case Instr::Kind::kScalar:
        absl::StrAppend(&text, "scalar s", instr.index);
        break;
      case Instr::Kind::kConstant:
        absl::StrAppend(&text, "constant ");
        std::visit([&](auto v) { absl::StrAppend(&text, v); }, instr.number);
        break;
      case Instr::Kind::kCompute:
      case Instr::Kind::kReduce:
        absl::StrAppend(&text, ir::Info(instr.op).name);
        for (uint32_t operand : instr.operands) absl::StrAppend(&text, " %", operand);
        if (instr.op == ir::Op::kCast)
          absl::StrAppend(&text, " to ", ir::DTypeName(instr.rounding));
        if (instr.kind == Instr::Kind::kReduce)
          absl::StrAppend(&text, instr.over_columns ? " over columns" : " over rows");
        break;
    }
    absl::StrAppend(&text, " : ", ir::DTypeName(instr.dtype), " ",
                    kClassNames[static_cast<int>(instr.value_class)]);
    if (instr.stage > 0) absl::StrAppend(&text, " stage ", instr.stage);
    if (instr.late) absl::StrAppend(&text, " late");
  }
  for (const Store& store : region.stores)
    absl::StrAppend(&text, "\nstore %", store.value, " ", access(store.access));
  return absl::StrCat(text, "\n");
}

}  // namespace fusiond::schedule
