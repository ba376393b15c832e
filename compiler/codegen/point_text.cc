#include "compiler/codegen/point_text.h"

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
                     bool by_element, TextBuilder& out)
    : region_(region),
      schedule_(schedule),
      inner_(static_cast<int>(region.dims.size()) - 1),
      by_element_(by_element),
      out_(out) {}

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
  if (instr.kind == Instr::Kind::kLoad && ScopeOf(instr) == Scope::kElement)
    return absl::StrCat("x", i, "[e]");
  return absl::StrCat("v", i);
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
  out_.Line("const ", RegisterType(instr.dtype), " v", i, " = ",
            Compute(instr, [&](uint32_t operand) { return Value(operand); }), ";");
}

void PointText::WriteKernelValues() {
  for (uint32_t i = 0; i < region_.instrs.size(); ++i) {
    const Instr& instr = region_.instrs[i];
    if (ScopeOf(instr) != Scope::kKernel) continue;
    if (instr.kind == Instr::Kind::kCompute) WriteCompute(i);
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
    } else if (instr.kind == Instr::Kind::kCompute && scope == Scope::kVector) {
      WriteCompute(i);
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
  for (uint32_t i = 0; i < region_.instrs.size(); ++i) {
    const Instr& instr = region_.instrs[i];
    if (instr.kind == Instr::Kind::kCompute && ScopeOf(instr) == Scope::kElement) WriteCompute(i);
  }
  for (size_t k = 0; k < region_.stores.size(); ++k) {
    if (IsVector(region_.stores[k]))
      out_.Line("o", k, "[e] = ", Value(region_.stores[k].value), ";");
  }
  out_.Close();
}

}  // namespace fusiond::codegen
