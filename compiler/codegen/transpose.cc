#include "compiler/codegen/transpose.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/codegen/expression.h"
#include "compiler/codegen/kernel_text.h"
#include "compiler/codegen/names.h"
#include "compiler/codegen/point_text.h"
#include "compiler/schedule/transpose.h"

namespace fusiond::codegen {
namespace {

using executable::Formula;
using schedule::Access;
using schedule::Instr;
using schedule::KernelSchedule;
using schedule::Region;
using schedule::Store;
using schedule::TransposeTile;

constexpr absl::string_view kFiles[] = {"math.cuh", "part.cuh", "smem.cuh", "sync.cuh"};

class Transpose {
 public:
  Transpose(const Region& region, const KernelSchedule& schedule)
      : region_(region),
        schedule_(schedule),
        tile_(schedule::LayOutTranspose(region, schedule)),
        masked_(schedule.variant == "tile_masked"),
        text_(region, "transpose", schedule.threads),
        out_(text_.body()),
        point_(region, schedule, false, out_, emission_.alignment) {
    emission_.alignment = NaturalAlignment(region);
  }

  Emission Emit() && {
    text_.TakeTensors(region_);
    text_.TakeScalars(region_);
    point_.WriteKernelValues();
    WritePlace();
    DeclareShared();
    WriteLoads();
    if (!tile_.loads.empty()) {
      WriteStagedLoads();
      out_.Line("fd_sync();");
    }
    WriteComputation();
    if (!tile_.stores.empty()) {
      out_.Line("fd_sync();");
      WriteStagedStores();
    }
    Kernel kernel = std::move(text_).Finish(kFiles);
    int64_t ctas = TilesAlong(tile_.a) * TilesAlong(tile_.b);
    for (int d = 0; d < tile_.a; ++d)
      if (d != tile_.b) ctas *= region_.dims[d].extent;
    kernel.grid[0] = Formula::Constant(ctas);
    kernel.smem_bytes = tile_.bytes;
    emission_.kernels.push_back(std::move(kernel));
    return std::move(emission_);
  }

 private:
  const char* Index() const { return schedule_.wide_index ? "u64" : "u32"; }
  const char* TypeOf(const Access& access) const {
    return MemoryType(region_.tensors[access.tensor].dtype);
  }
  int64_t TilesAlong(int dim) const {
    const int64_t extent = dim == tile_.a ? tile_.a_extent : tile_.b_extent;
    return (region_.dims[dim].extent + extent - 1) / extent;
  }

  // The tile's first coordinates, a0 and b0, and the coordinates of the other dims. Tiles along a
  // are neighbours.
  void WritePlace() {
    out_.Line("const u32 t = fd_thread();");
    std::string rest = "fd_cta()";
    const auto take = [&](int64_t extent, absl::string_view name, int64_t step) {
      out_.Line("const ", Index(), " ", name, " = ", rest, " % ", extent, " * ", step, ";");
      out_.Line("const u32 r", name, " = ", rest, " / ", extent, ";");
      rest = absl::StrCat("r", name);
    };
    take(TilesAlong(tile_.a), "a0", tile_.a_extent);
    take(TilesAlong(tile_.b), "b0", tile_.b_extent);
    for (int d = tile_.a - 1; d >= 0; --d)
      if (d != tile_.b) take(region_.dims[d].extent, absl::StrCat("c", d), 1);
  }

  void DeclareShared() {
    const auto declare = [&](const char* prefix, const TransposeTile::Part& part,
                             const Access& access) {
      out_.Line(TypeOf(access), "* const ", prefix, part.index, " = fd_smem<", TypeOf(access), ">(",
                part.offset, ", ", tile_.a_extent * part.pitch, ");");
    };
    for (const auto& part : tile_.loads) declare("u", part, region_.instrs[part.index].access);
    for (const auto& part : tile_.stores) declare("w", part, region_.stores[part.index].access);
  }

  // Opens vector v of the thread: x and y in the tile, c<a> and c<b> in the space. `along_b`:
  // vectors of b_vector elements along b.
  void OpenVector(bool along_b) {
    const int64_t vector = along_b ? tile_.b_vector : schedule_.vector;
    const int64_t side = along_b ? tile_.b_extent : tile_.a_extent;
    const int64_t lanes = side / vector;
    const int64_t steps = tile_.a_extent * tile_.b_extent / vector / schedule_.threads;
    out_.Unrolled("v", static_cast<int>(steps));
    out_.Line("const u32 i = t + v * ", schedule_.threads, ";");
    out_.Line("const u32 ", along_b ? "y" : "x", " = i % ", lanes, " * ", vector, ", ",
              along_b ? "x" : "y", " = i / ", lanes, ";");
    out_.Line("const ", Index(), " c", tile_.a, " = a0 + x, c", tile_.b, " = b0 + y;");
    if (!masked_) return;
    out_.Open("if (c", tile_.a, " < ", region_.dims[tile_.a].extent, " && c", tile_.b, " < ",
              region_.dims[tile_.b].extent, ")");
  }
  void CloseVector() {
    if (masked_) out_.Close();
    out_.Close();
  }

  std::string Offset(const Access& access) const {
    return OffsetText(
        access.strides, [](size_t d) { return absl::StrCat("c", d); }, schedule_.wide_index);
  }

  VectorAccess Plan(const Access& access, bool along_b) {
    const VectorAccess plan = along_b ? PlanAccess(region_, access, tile_.b, tile_.b_vector)
                                      : PlanAccess(region_, access, tile_.a, schedule_.vector);
    emission_.alignment[access.tensor] =
        std::max(emission_.alignment[access.tensor], plan.alignment);
    return plan;
  }

  bool IsStaged(const std::vector<TransposeTile::Part>& parts, size_t index) const {
    return std::any_of(parts.begin(), parts.end(),
                       [&](const TransposeTile::Part& part) { return part.index == index; });
  }

  // What runs along a, straight to registers: on the way while tiles pass through shared memory.
  void WriteLoads() {
    bool any = false;
    for (uint32_t i = 0; i < region_.instrs.size(); ++i) {
      if (!point_.IsLoaded(i)) continue;
      point_.DeclareLoad(i);
      any |= !IsStaged(tile_.loads, i);
    }
    if (!any) return;
    OpenVector(false);
    for (uint32_t i = 0; i < region_.instrs.size(); ++i) {
      if (!point_.IsLoaded(i) || IsStaged(tile_.loads, i)) continue;
      const Access& access = region_.instrs[i].access;
      out_.Line("m", i, "[v] = ",
                LoadText(region_, access, Plan(access, false), schedule_.vector, Offset(access)),
                ";");
    }
    CloseVector();
  }

  // Rows of shared memory begin a bank apart: vectors along b go in words.
  int Piece(const Access& access) const {
    const int64_t size = ir::ByteSize(region_.tensors[access.tensor].dtype);
    return static_cast<int>(std::clamp<int64_t>(4 / size, 1, tile_.b_vector));
  }

  void WriteStagedLoads() {
    const int64_t steps = tile_.a_extent * tile_.b_extent / tile_.b_vector / schedule_.threads;
    for (const auto& part : tile_.loads) {
      out_.Line("fd_vec<", TypeOf(region_.instrs[part.index].access), ", ", tile_.b_vector, "> n",
                part.index, "[", steps, "];");
    }
    OpenVector(true);
    for (const auto& part : tile_.loads) {
      const Access& access = region_.instrs[part.index].access;
      out_.Line("n", part.index, "[v] = ",
                LoadText(region_, access, Plan(access, true), tile_.b_vector, Offset(access)), ";");
    }
    CloseVector();
    OpenVector(true);
    for (const auto& part : tile_.loads) {
      const Access& access = region_.instrs[part.index].access;
      out_.Line("fd_store_pieces<", TypeOf(access), ", ", tile_.b_vector, ", ", Piece(access),
                ">(u", part.index, " + x * ", part.pitch, " + y, n", part.index, "[v]);");
    }
    CloseVector();
  }

  void WriteComputation() {
    OpenVector(false);
    for (const auto& part : tile_.loads) {
      out_.Line("m", part.index, "[v] = fd_load_apart<", TypeOf(region_.instrs[part.index].access),
                ", ", schedule_.vector, ">(u", part.index, " + x * ", part.pitch, " + y, ",
                part.pitch, ");");
    }
    point_.WriteValues();
    for (size_t k = 0; k < region_.stores.size(); ++k)
      if (!IsStaged(tile_.stores, k)) WriteStore(k);
    for (const auto& part : tile_.stores) {
      const Access& access = region_.stores[part.index].access;
      out_.Line("fd_store_apart(w", part.index, " + x * ", part.pitch, " + y, fd_cast<",
                TypeOf(access), ">(o", part.index, "), ", part.pitch, ");");
    }
    CloseVector();
  }

  void WriteStore(size_t k) {
    const Store& store = region_.stores[k];
    const VectorAccess plan = Plan(store.access, false);
    const std::string owner = point_.Owner(store.access);
    const std::string value =
        plan.form == VectorAccess::Form::kOne ? point_.Value(store.value) : absl::StrCat("o", k);
    out_.Line(
        owner.empty() ? "" : absl::StrCat("if (", owner, ") "),
        StoreText(region_, store.access, plan, schedule_.vector, Offset(store.access), value));
  }

  void WriteStagedStores() {
    OpenVector(true);
    for (const auto& part : tile_.stores) {
      const Access& access = region_.stores[part.index].access;
      const std::string value =
          absl::StrCat("fd_load_pieces<", TypeOf(access), ", ", tile_.b_vector, ", ", Piece(access),
                       ">(w", part.index, " + x * ", part.pitch, " + y)");
      const std::string owner = point_.Owner(access);
      out_.Line(
          owner.empty() ? "" : absl::StrCat("if (", owner, ") "),
          StoreText(region_, access, Plan(access, true), tile_.b_vector, Offset(access), value));
    }
    CloseVector();
  }

  const Region& region_;
  const KernelSchedule& schedule_;
  const TransposeTile tile_;
  const bool masked_;
  KernelText text_;
  TextBuilder& out_;
  Emission emission_;
  PointText point_;
};

}  // namespace

Emission EmitTranspose(const Region& region, const KernelSchedule& schedule) {
  return Transpose(region, schedule).Emit();
}

}  // namespace fusiond::codegen
