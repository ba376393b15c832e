#include "compiler/codegen/pointwise.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/codegen/expression.h"
#include "compiler/codegen/kernel_text.h"
#include "compiler/codegen/names.h"
#include "compiler/codegen/point_text.h"
#include "compiler/schedule/device_model.h"

namespace fusiond::codegen {
namespace {

using executable::Formula;
using schedule::Access;
using schedule::Instr;
using schedule::KernelSchedule;
using schedule::Region;
using schedule::Store;

constexpr absl::string_view kFiles[] = {"math.cuh", "part.cuh"};

class Pointwise {
 public:
  Pointwise(const Region& region, const KernelSchedule& schedule)
      : region_(region),
        schedule_(schedule),
        inner_(static_cast<int>(region.dims.size()) - 1),
        by_element_(schedule.variant == "element"),
        cut_(by_element_ || schedule.variant == "flat_tail"),
        dense_(schedule::DenseStrides(region)),
        text_(region, "pointwise", schedule.threads),
        out_(text_.body()),
        point_(region, schedule, by_element_, out_, emission_.alignment) {
    emission_.alignment = NaturalAlignment(region);
  }

  Emission Emit() && {
    text_.TakeTensors(region_);
    text_.TakeScalars(region_);
    text_.TakeIndex("n", Formula::Constant(region_.Elements()), schedule_.wide_index);
    point_.WriteKernelValues();
    const int64_t step = int64_t{schedule_.threads} * schedule_.vector;
    out_.Line("const ", Index(), " first = ((", Index(), ")fd_cta() * ", step * schedule_.unroll,
              " + fd_thread() * ", schedule_.vector, ");");
    WriteLoads(step);
    WriteComputation(step);
    Kernel kernel = std::move(text_).Finish(kFiles);
    const int64_t per_cta = step * schedule_.unroll;
    kernel.grid[0] = Formula::Constant((region_.Elements() + per_cta - 1) / per_cta);
    emission_.kernels.push_back(std::move(kernel));
    return std::move(emission_);
  }

 private:
  const char* Index() const { return schedule_.wide_index ? "u64" : "u32"; }

  void WriteIndex(int64_t step) { out_.Line("const ", Index(), " i = first + v * ", step, ";"); }

  bool IsDense(const Access& access) const { return access.strides == dense_; }

  VectorAccess Plan(const Access& access) {
    const VectorAccess plan = IsDense(access) && !dense_.empty()
                                  ? PlanDense(region_, access, schedule_.vector)
                                  : PlanAccess(region_, access, inner_, schedule_.vector);
    emission_.alignment[access.tensor] =
        std::max(emission_.alignment[access.tensor], plan.alignment);
    return plan;
  }

  std::string Offset(const Access& access) const {
    if (IsDense(access) && !dense_.empty()) return "i";
    return OffsetText(
        access.strides,
        [&](size_t d) {
          return region_.dims.size() == 1 ? std::string("i") : absl::StrCat("c", d);
        },
        schedule_.wide_index);
  }

  static uint32_t Used(const Access& access) {
    uint32_t used = 0;
    for (size_t d = 0; d < access.strides.size(); ++d)
      if (access.strides[d] != 0) used |= 1u << d;
    return used;
  }

  void WriteLoads(int64_t step) {
    uint32_t used = 0;
    bool any = false;
    for (uint32_t i = 0; i < region_.instrs.size(); ++i) {
      if (!point_.IsLoaded(i)) continue;
      any = true;
      point_.DeclareLoad(i);
      const Access& access = region_.instrs[i].access;
      if (!IsDense(access)) used |= Used(access);
    }
    if (!any) return;
    out_.Unrolled("v", schedule_.unroll);
    WriteIndex(step);
    out_.Open("if (i < n)");
    if (!by_element_) point_.WriteCoordinates("i", used);
    for (uint32_t i = 0; i < region_.instrs.size(); ++i) {
      if (!point_.IsLoaded(i) || (by_element_ && !IsDense(region_.instrs[i].access))) continue;
      WriteLoad(i);
    }
    if (by_element_ && used != 0) WriteGathers(used);
    out_.Close();
    out_.Close();
  }

  void WriteLoad(uint32_t i) {
    const Instr& instr = region_.instrs[i];
    const VectorAccess plan = Plan(instr.access);
    const std::string offset = Offset(instr.access);
    const std::string whole = LoadText(region_, instr.access, plan, schedule_.vector, offset);
    if (!cut_ || schedule_.vector == 1 || plan.form == VectorAccess::Form::kOne) {
      out_.Line("m", i, "[v] = ", whole, ";");
      return;
    }
    // In a flat space any form can be cut; its elements begin at i.
    const char* type = MemoryType(region_.tensors[instr.access.tensor].dtype);
    out_.Open("if (i + ", schedule_.vector, " <= n)");
    out_.Line("m", i, "[v] = ", whole, ";");
    out_.Close();
    out_.Open("else");
    if (plan.form == VectorAccess::Form::kContiguous) {
      out_.Line("m", i, "[v] = fd_load_part<", type, ", ", schedule_.vector, ">(p",
                instr.access.tensor, " + i, n - i);");
    } else {
      out_.Line("for (int e = 0; e < ", schedule_.vector, "; e++) m", i, "[v][e] = p",
                instr.access.tensor, "[(i + e < n ? i + e : i) * ", plan.stride, "];");
    }
    out_.Close();
  }

  // Elements of tensors that do not run as the vectors do, each from its own coordinates.
  void WriteGathers(uint32_t used) {
    out_.Unrolled("e", schedule_.vector);
    out_.Line("const ", Index(), " j = i + e < n ? i + e : i;");
    point_.WriteCoordinates("j", used);
    for (uint32_t i = 0; i < region_.instrs.size(); ++i) {
      const Access& access = region_.instrs[i].access;
      if (!point_.IsLoaded(i) || IsDense(access)) continue;
      out_.Line("m", i, "[v][e] = ", LoadText(region_, access, {}, 1, Offset(access)), "[0];");
    }
    out_.Close();
  }

  void WriteComputation(int64_t step) {
    out_.Unrolled("v", schedule_.unroll);
    WriteIndex(step);
    out_.Open("if (i < n)");
    if (point_.TakesCoordinates()) point_.WriteCoordinates("i", AllDims(region_));
    point_.WriteValues();
    WriteStores();
    out_.Close();
    out_.Close();
  }

  static uint32_t AllDims(const Region& region) { return (1u << region.dims.size()) - 1; }

  void WriteStores() {
    bool coordinates = false;
    for (const Store& store : region_.stores) coordinates |= !IsDense(store.access);
    if (!by_element_ && coordinates && !point_.TakesCoordinates())
      point_.WriteCoordinates("i", AllDims(region_));
    bool scattered = false;
    for (size_t k = 0; k < region_.stores.size(); ++k) {
      const Store& store = region_.stores[k];
      if (by_element_ && !IsDense(store.access)) {
        scattered = true;
        continue;
      }
      WriteStore(k);
    }
    if (!scattered) return;
    out_.Unrolled("e", schedule_.vector);
    out_.Line("const ", Index(), " j = i + e;");
    out_.Open("if (j < n)");
    point_.WriteCoordinates("j", AllDims(region_));
    for (size_t k = 0; k < region_.stores.size(); ++k) {
      const Store& store = region_.stores[k];
      if (IsDense(store.access)) continue;
      const std::string owner = point_.Owner(store.access);
      out_.Line(owner.empty() ? "" : absl::StrCat("if (", owner, ") "),
                StoreText(region_, store.access, {}, 1, Offset(store.access),
                          absl::StrCat("o", k, "[e]")));
    }
    out_.Close();
    out_.Close();
  }

  void WriteStore(size_t k) {
    const Store& store = region_.stores[k];
    const VectorAccess plan = Plan(store.access);
    const std::string offset = Offset(store.access);
    const std::string owner = point_.Owner(store.access);
    if (plan.form == VectorAccess::Form::kOne) {
      // By the vector at the row's begin; its value is that of the whole vector.
      out_.Line(owner.empty() ? "" : absl::StrCat("if (", owner, ") "),
                StoreText(region_, store.access, plan, 1, offset, point_.Value(store.value)));
      return;
    }
    if (!owner.empty()) out_.Open("if (", owner, ")");
    const std::string value = absl::StrCat("o", k);
    const std::string whole =
        StoreText(region_, store.access, plan, schedule_.vector, offset, value);
    if (!cut_ || schedule_.vector == 1) {
      out_.Line(whole);
    } else {
      const char* type = MemoryType(region_.tensors[store.access.tensor].dtype);
      out_.Open("if (i + ", schedule_.vector, " <= n)");
      out_.Line(whole);
      out_.Close();
      out_.Open("else");
      if (plan.form == VectorAccess::Form::kContiguous) {
        out_.Line("fd_store_part(p", store.access.tensor, " + i, fd_cast<", type, ">(", value,
                  "), n - i);");
      } else {
        out_.Line("for (int e = 0; e < ", schedule_.vector, "; e++) if (i + e < n) p",
                  store.access.tensor, "[(i + e) * ", plan.stride, "] = fd_cast<", type, ">(",
                  value, "[e]);");
      }
      out_.Close();
    }
    if (!owner.empty()) out_.Close();
  }

  const Region& region_;
  const KernelSchedule& schedule_;
  const int inner_;
  const bool by_element_;  // coordinates an element, since vectors run over row ends
  const bool cut_;         // the last vector may be cut
  const schedule::Strides dense_;
  KernelText text_;
  TextBuilder& out_;
  Emission emission_;
  PointText point_;
};

}  // namespace

Emission EmitPointwise(const Region& region, const KernelSchedule& schedule) {
  return Pointwise(region, schedule).Emit();
}

}  // namespace fusiond::codegen
