#include "compiler/codegen/point_text.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/codegen/expression.h"
#include "compiler/codegen/names.h"

namespace fusiond::codegen {

using schedule::Access;
using schedule::Instr;
using schedule::Region;
using schedule::Store;

PointText::PointText(const Region& region, const schedule::KernelSchedule& schedule,
                     bool by_element, TextBuilder& out, std::vector<int64_t>& alignment)
    : region_(region),
      schedule_(schedule),
      inner_(static_cast<int>(region.dims.size()) - 1),
      by_element_(by_element),
      cut_(by_element || schedule.variant == "flat_tail"),
      out_(out),
      alignment_(alignment) {}

PointText::Scope PointText::ScopeOf(const Instr& instr) const {
  if (instr.dims == 0) return Scope::kKernel;
  if (by_element_ || (instr.dims >> inner_) & 1) return Scope::kElement;
  return Scope::kVector;
}

bool PointText::IsLoaded(uint32_t i) const {
  return region_.instrs[i].kind == Instr::Kind::kLoad && region_.instrs[i].dims != 0;
}

bool PointText::IsVector(const Store& store) const {
  return by_element_ || (inner_ >= 0 && store.access.strides[inner_] != 0);
}

std::string PointText::Value(uint32_t i) const {
  const Instr& instr = region_.instrs[i];
  if (instr.kind == Instr::Kind::kConstant) return Literal(instr.number, instr.dtype);
  if (instr.kind == Instr::Kind::kScalar) return absl::StrCat("s", instr.index);
  const bool vector = instr.kind == Instr::Kind::kLoad || GivesVector(instr);
  if (vector && ScopeOf(instr) == Scope::kElement) return absl::StrCat("x", i, "[e]");
  return absl::StrCat("v", i);
}

// A vector that is cut may have no memory behind it.
bool PointText::GivesVector(const Instr& instr) const {
  return !cut_ && codegen::GivesVector(region_, instr, inner_, schedule_.vector);
}

std::string PointText::Owner(const Access& access) const {
  std::vector<std::string> conditions;
  for (size_t d = 0; d < access.strides.size(); ++d) {
    if (access.strides[d] != 0) continue;
    conditions.push_back(region_.dims.size() == 1 ? std::string("i == 0")
                                                  : absl::StrCat("c", d, " == 0"));
  }
  return absl::StrJoin(conditions, " && ");
}

void PointText::WriteCompute(uint32_t i) {
  const Instr& instr = region_.instrs[i];
  const bool of_element = ScopeOf(instr) == Scope::kElement;
  out_.Line("const ", RegisterType(instr.dtype), " v", i, " = ",
            ComputedText(
                region_, instr, [&](uint32_t operand) { return Value(operand); },
                [&](size_t d) { return Coordinate(d, of_element); }, schedule_.wide_index),
            ";");
}

void PointText::WriteCoordinates(absl::string_view index, uint32_t used) {
  if (region_.dims.size() <= 1 || used == 0) return;
  std::string rest(index);
  for (int d = inner_; d >= 0; --d) {
    if ((used & ((2u << d) - 1)) == 0) break;
    if (d == 0) {
      out_.Line("const ", Index(), " c0 = ", rest, ";");
      break;
    }
    const int64_t extent = region_.dims[d].extent;
    if ((used >> d) & 1) out_.Line("const ", Index(), " c", d, " = ", rest, " % ", extent, ";");
    out_.Line("const ", Index(), " r", d, " = ", rest, " / ", extent, ";");
    rest = absl::StrCat("r", d);
  }
}

bool PointText::TakesCoordinates() const {
  return !by_element_ && region_.dims.size() > 1 && schedule::TakesCoordinates(region_);
}

std::string PointText::Coordinate(size_t d, bool of_element) const {
  if (region_.dims.size() == 1) return cut_ ? "j" : of_element ? "(i + e)" : "i";
  const std::string name = absl::StrCat("c", d);
  const bool runs = of_element && !by_element_ && static_cast<int>(d) == inner_;
  return runs ? absl::StrCat("(", name, " + e)") : name;
}

void PointText::WriteKernelValues() {
  for (uint32_t i = 0; i < region_.instrs.size(); ++i) {
    const Instr& instr = region_.instrs[i];
    if (ScopeOf(instr) != Scope::kKernel) continue;
    if (schedule::IsComputed(instr)) WriteCompute(i);
    if (instr.kind == Instr::Kind::kLoad) {
      out_.Line("const ", RegisterType(instr.dtype), " v", i, " = fd_cast<",
                RegisterType(instr.dtype), ">(", LoadText(region_, instr.access, {}, 1, "0"),
                "[0]);");
    }
  }
}

void PointText::DeclareLoad(uint32_t i) {
  const Instr& instr = region_.instrs[i];
  const int elements = ScopeOf(instr) == Scope::kElement ? schedule_.vector : 1;
  out_.Line("fd_vec<", MemoryType(region_.tensors[instr.access.tensor].dtype), ", ", elements,
            "> m", i, "[", schedule_.unroll, "];");
}

void PointText::WriteValues() {
  for (uint32_t i = 0; i < region_.instrs.size(); ++i) {
    const Instr& instr = region_.instrs[i];
    const Scope scope = ScopeOf(instr);
    const char* type = RegisterType(instr.dtype);
    if (instr.kind == Instr::Kind::kLoad && scope == Scope::kVector) {
      out_.Line("const ", type, " v", i, " = fd_cast<", type, ">(m", i, "[v][0]);");
    } else if (instr.kind == Instr::Kind::kLoad && scope == Scope::kElement) {
      out_.Line("const fd_vec<", type, ", ", schedule_.vector, "> x", i, " = fd_cast<", type, ">(m",
                i, "[v]);");
    } else if (schedule::IsComputed(instr) && scope == Scope::kVector) {
      WriteCompute(i);
    } else if (GivesVector(instr)) {
      WriteVector(
          region_, i, inner_, schedule_.vector, [&](uint32_t operand) { return Value(operand); },
          [&](size_t d) { return Coordinate(d, false); }, schedule_.wide_index, alignment_, out_);
    }
  }
  WriteElements();
}

void PointText::WriteElements() {
  bool any = false;
  for (size_t k = 0; k < region_.stores.size(); ++k) {
    const Store& store = region_.stores[k];
    if (!IsVector(store)) continue;
    any = true;
    out_.Line("fd_vec<", RegisterType(region_.instrs[store.value].dtype), ", ", schedule_.vector,
              "> o", k, ";");
  }
  if (!any) return;
  out_.Unrolled("e", schedule_.vector);
  if (cut_ && schedule::TakesCoordinates(region_)) {
    out_.Line("const ", Index(), " j = i + e < n ? i + e : n - 1;");
    if (by_element_) WriteCoordinates("j", (1u << region_.dims.size()) - 1);
  }
  for (uint32_t i = 0; i < region_.instrs.size(); ++i) {
    const Instr& instr = region_.instrs[i];
    if (schedule::IsComputed(instr) && ScopeOf(instr) == Scope::kElement && !GivesVector(instr))
      WriteCompute(i);
  }
  for (size_t k = 0; k < region_.stores.size(); ++k) {
    if (IsVector(region_.stores[k]))
      out_.Line("o", k, "[e] = ", Value(region_.stores[k].value), ";");
  }
  out_.Close();
}

}  // namespace fusiond::codegen
