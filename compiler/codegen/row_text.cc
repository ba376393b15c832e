#include "compiler/codegen/row_text.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/codegen/names.h"
#include "compiler/schedule/finalise.h"
#include "compiler/schedule/online.h"

namespace fusiond::codegen {

using schedule::Access;
using schedule::Instr;
using schedule::Region;
using schedule::Store;
using schedule::Strides;

RowText::RowText(const Region& region, const schedule::KernelSchedule& schedule,
                 const schedule::Stages& stages, bool shifted, TextBuilder& out,
                 std::vector<int64_t>& alignment, int chains)
    : region_(region),
      schedule_(schedule),
      stages_(stages),
      shifted_(shifted),
      chains_(chains > 0 ? chains : schedule.vector),
      out_(out),
      alignment_(alignment),
      held_(region.instrs.size(), false),
      at_use_(region.instrs.size(), false),
      computed_(schedule::ComputedBefore(region)) {
  while (first_column_ < region.dims.size() && !region.dims[first_column_].column) ++first_column_;
  if (first_column_ < region.dims.size()) inner_ = static_cast<int>(region.dims.size()) - 1;
  for (uint32_t instr : stages.held) held_[instr] = true;
  if (inner_ < 0) return;
  const auto note = [&](const Access& access) {
    phased_ |= access.strides[inner_] == 1 && VariesByRow(access);
  };
  for (const Instr& instr : region.instrs)
    if (instr.kind == Instr::Kind::kLoad) note(instr.access);
  for (const Store& store : region.stores) note(store.access);
}

RowText::Scope RowText::ScopeOf(uint32_t i) const {
  const Instr& instr = region_.instrs[i];
  if (instr.dims == 0 && instr.stage == 0 && instr.kind != Instr::Kind::kReduce)
    return Scope::kKernel;
  if (!schedule::IsElement(region_, i)) return Scope::kRow;
  return (instr.dims >> inner_) & 1 ? Scope::kElement : Scope::kVector;
}

std::string RowText::Value(uint32_t i) const {
  const Instr& instr = region_.instrs[i];
  if (instr.kind == Instr::Kind::kConstant) return Literal(instr.number, instr.dtype);
  if (instr.kind == Instr::Kind::kScalar) return absl::StrCat("s", instr.index);
  const Scope scope = ScopeOf(i);
  if (scope == Scope::kElement && instr.kind == Instr::Kind::kLoad)
    return absl::StrCat("x", i, unpacked_ ? "[k][e]" : "[e]");
  if (GivesVector(i)) return absl::StrCat("x", i, "[e]");
  if (held_[i] && instr.stage < pass_)
    return absl::StrCat("h", i, scope == Scope::kElement ? "[k][e]" : "[k][0]");
  return absl::StrCat("v", i);
}

void RowText::WriteCompute(uint32_t i) {
  const Instr& instr = region_.instrs[i];
  const bool of_element = ScopeOf(i) == Scope::kElement;
  out_.Line("const ", RegisterType(instr.dtype), " v", i, " = ",
            ComputedText(
                region_, instr, [&](uint32_t operand) { return Value(operand); },
                [&](size_t d) { return Coordinate(d, of_element); }, schedule_.wide_index),
            ";");
}

// Vectors of shifted rows are cut; what is held is held element by element.
bool RowText::GivesVector(uint32_t i) const {
  return !shifted_ && !held_[i] && ScopeOf(i) == Scope::kElement &&
         codegen::GivesVector(region_, region_.instrs[i], inner_, schedule_.vector);
}

void RowText::WriteVector(uint32_t i) {
  codegen::WriteVector(
      region_, i, inner_, schedule_.vector, [&](uint32_t operand) { return Value(operand); },
      [&](size_t d) { return Coordinate(d, false); }, schedule_.wide_index, alignment_, out_);
}

// The innermost column of a vector's element; in shifted form the nearest one of the row.
std::string RowText::Coordinate(size_t d, bool of_element) const {
  const bool one_dim = region_.dims.size() - first_column_ == 1;
  if (d < first_column_) return absl::StrCat("c", d);
  const std::string vector = one_dim ? "j" : absl::StrCat("c", d);
  if (!of_element || static_cast<int>(d) != inner_) return vector;
  return shifted_ ? "g" : absl::StrCat("(", vector, " + e)");
}

void RowText::WriteKernelValues() {
  for (uint32_t i = 0; i < region_.instrs.size(); ++i) {
    const Instr& instr = region_.instrs[i];
    if (ScopeOf(i) != Scope::kKernel || !computed_[i]) continue;
    if (schedule::IsComputed(instr)) WriteCompute(i);
    if (instr.kind == Instr::Kind::kLoad) {
      out_.Line("const ", RegisterType(instr.dtype), " v", i, " = fd_cast<",
                RegisterType(instr.dtype), ">(", LoadText(region_, instr.access, {}, 1, "0"),
                "[0]);");
    }
  }
}

// Coordinates c<d> of dims begin … end - 1 of what `index` counts.
void RowText::WriteCoordinates(absl::string_view index, size_t begin, size_t end) {
  std::string rest(index);
  for (size_t d = end; d-- > begin;) {
    if (d == begin) {
      out_.Line("const ", Index(), " c", d, " = ", rest, ";");
      break;
    }
    const int64_t extent = region_.dims[d].extent;
    out_.Line("const ", Index(), " c", d, " = ", rest, " % ", extent, ";");
    out_.Line("const ", Index(), " r", d, " = ", rest, " / ", extent, ";");
    rest = absl::StrCat("r", d);
  }
}

void RowText::WriteRow() {
  WriteCoordinates("row", 0, first_column_);
  bases_.clear();
  std::string phase;
  const auto add = [&](const Access& access) {
    Strides rows(access.strides.begin(), access.strides.begin() + first_column_);
    if (std::all_of(rows.begin(), rows.end(), [](int64_t s) { return s == 0; })) return;
    const auto [entry, added] = bases_.try_emplace(rows, absl::StrCat("b", bases_.size()));
    if (added) {
      out_.Line("const ", Index(), " ", entry->second, " = ",
                OffsetText(
                    rows, [](size_t d) { return absl::StrCat("c", d); }, schedule_.wide_index),
                ";");
    }
    if (shifted_ && phase.empty() && KeepsPhase(access)) phase = entry->second;
  };
  for (const Instr& instr : region_.instrs)
    if (instr.kind == Instr::Kind::kLoad) add(instr.access);
  for (const Store& store : region_.stores) add(store.access);
  if (shifted_) {
    out_.Line("const i32 shift = ",
              phase.empty() ? "0" : absl::StrCat("(i32)(", phase, " % ", schedule_.vector, ")"),
              ";");
  }
}

void RowText::ShareColumns(int ctas, int64_t columns) {
  out_.Line("const u32 rank = fd_cluster_rank();");
  const std::string last =
      shifted_ ? "" : absl::StrCat("rank == ", ctas - 1, " ? ", region_.Columns(), " : ");
  out_.Line("const ", Index(), " left = rank * ", columns, ", right = ", last, "left + ", columns,
            ";");
  WalkFrom("left", "right");
}

void RowText::OpenVector(bool masked) {
  const int vector = schedule_.vector;
  if (shifted_) {
    if (first_.empty()) {
      out_.Line("const i32 j = (k * ", schedule_.threads_per_row, " + (i32)t) * ", vector,
                " - shift;");
    } else {
      const char* type = schedule_.wide_index ? "i64" : "i32";
      out_.Line("const ", type, " j = (", type, ")(", first_, " + (k * ", schedule_.threads_per_row,
                " + t) * ", vector, ") - shift;");
    }
    out_.Line("const i32 begin = j < 0 ? -j : 0;");
    out_.Line("const i32 end = ", region_.Columns(), " - j < ", vector, " ? ", region_.Columns(),
              " - j : ", vector, ";");
    out_.Line("const bool whole = end - begin == ", vector, ";");
    if (limit_.empty()) {
      out_.Open("if (end > 0)");
    } else {
      out_.Open("if (end > 0 && (", Index(), ")(j + shift) < ", limit_, ")");
    }
    return;
  }
  const std::string place =
      absl::StrCat("(k * ", schedule_.threads_per_row, " + t) * ", vector, ";");
  if (first_.empty()) {
    out_.Line("const u32 j = ", place);
  } else {
    out_.Line("const ", Index(), " j = ", first_, " + ", place);
  }
  if (masked) {
    out_.Open("if (j < ", limit_.empty() ? absl::StrCat(region_.Columns()) : limit_, ")");
  } else {
    out_.OpenBlock();
  }
  if (region_.dims.size() - first_column_ > 1)
    WriteCoordinates("j", first_column_, region_.dims.size());
}

void RowText::CloseVector() { out_.Close(); }

bool RowText::VariesByRow(const Access& access) const {
  return std::any_of(access.strides.begin(), access.strides.begin() + first_column_,
                     [](int64_t s) { return s != 0; });
}

// Where no row begins inside a vector, what is the same for all rows keeps in step as well.
bool RowText::KeepsPhase(const Access& access) const {
  if (inner_ < 0 || access.strides[inner_] != 1) return false;
  return !phased_ || VariesByRow(access);
}

VectorAccess RowText::Plan(const Access& access) {
  VectorAccess plan;
  if (!shifted_) {
    plan = PlanAccess(region_, access, inner_, schedule_.vector);
  } else if (KeepsPhase(access)) {
    plan = PlanDense(region_, access, schedule_.vector);
  } else {
    plan = PlanAccess(region_, access, inner_, schedule_.vector);
    plan.piece = 1;
    plan.alignment = ir::ByteSize(region_.tensors[access.tensor].dtype);
  }
  alignment_[access.tensor] = std::max(alignment_[access.tensor], plan.alignment);
  return plan;
}

std::string RowText::Base(const Access& access) const {
  const Strides rows(access.strides.begin(), access.strides.begin() + first_column_);
  const auto base = bases_.find(rows);
  return base == bases_.end() ? "" : base->second;
}

std::string RowText::Offset(const Access& access) const {
  Strides columns = access.strides;
  std::fill(columns.begin(), columns.begin() + first_column_, 0);
  const bool one_dim = region_.dims.size() - first_column_ == 1;
  // Shifted rows begin at columns below 0, where an unsigned stride would wrap.
  const bool below_zero = shifted_ && inner_ >= 0 && columns[inner_] > 1;
  std::string offset =
      below_zero ? absl::StrCat("j * ", columns[inner_], schedule_.wide_index ? "ll" : "")
                 : OffsetText(
                       columns,
                       [&](size_t d) { return one_dim ? std::string("j") : absl::StrCat("c", d); },
                       schedule_.wide_index);
  const std::string base = Base(access);
  if (base.empty()) return offset;
  return offset == "0" ? base : absl::StrCat(base, " + ", offset);
}

void RowText::DeclareLoad(uint32_t i) {
  const Instr& instr = region_.instrs[i];
  const char* type = unpacked_ ? RegisterType(instr.dtype)
                               : MemoryType(region_.tensors[instr.access.tensor].dtype);
  out_.Line("fd_vec<", type, ", ", ScopeOf(i) == Scope::kElement ? schedule_.vector : 1,
            unpacked_ ? "> x" : "> m", i, "[", schedule_.unroll, "];");
}

void RowText::WriteLoaded(uint32_t i, absl::string_view vector) {
  if (unpacked_) {
    out_.Line("x", i, "[k] = fd_cast<", RegisterType(region_.instrs[i].dtype), ">(", vector, ");");
  } else {
    out_.Line("m", i, "[k] = ", vector, ";");
  }
}

void RowText::DeclareHeld(uint32_t i) {
  const Instr& instr = region_.instrs[i];
  out_.Line("fd_vec<", RegisterType(instr.dtype), ", ",
            ScopeOf(i) == Scope::kElement ? schedule_.vector : 1, "> h", i, "[", schedule_.unroll,
            "];");
}

void RowText::WriteLoad(uint32_t i, bool now) {
  const Instr& instr = region_.instrs[i];
  const VectorAccess plan = Plan(instr.access);
  const std::string offset = Offset(instr.access);
  const char* type = MemoryType(region_.tensors[instr.access.tensor].dtype);
  const std::string whole = LoadText(region_, instr.access, plan, schedule_.vector, offset);
  std::string loaded = whole;
  if (shifted_ && plan.form != VectorAccess::Form::kOne) {
    loaded = absl::StrCat("fd_load_range<", type, ", ", schedule_.vector, ">(p",
                          instr.access.tensor, " + ", offset, ", ", plan.stride, ", begin, end)");
    if (KeepsPhase(instr.access)) loaded = absl::StrCat("whole ? ", whole, " : ", loaded);
  }
  if (!now) return WriteLoaded(i, loaded);
  out_.Line("const fd_vec<", type, ", ", ScopeOf(i) == Scope::kElement ? schedule_.vector : 1,
            "> m", i, " = ", loaded, ";");
}

void RowText::WriteElements(size_t p, bool now) {
  pass_ = p;
  const schedule::Pass& pass = stages_.passes[p];
  for (uint32_t i : pass.loads) {
    const Instr& instr = region_.instrs[i];
    const bool at_use = now || at_use_[i];
    const std::string from = absl::StrCat(unpacked_ ? "x" : "m", i, at_use ? "" : "[k]");
    const char* type = RegisterType(instr.dtype);
    if (unpacked_ && ScopeOf(i) == Scope::kElement) continue;
    if (ScopeOf(i) == Scope::kVector) {
      out_.Line("const ", type, " v", i, " = fd_cast<", type, ">(", from, "[0]);");
      continue;
    }
    // Unpacked by other instructions in later passes: else the compiler keeps f32 copies alive.
    const bool narrow = ir::ByteSize(region_.tensors[instr.access.tensor].dtype) == 2;
    const std::string cast =
        p > 0 && narrow && !at_use ? "fd_cast_again" : absl::StrCat("fd_cast<", type, ">");
    out_.Line("const fd_vec<", type, ", ", schedule_.vector, "> x", i, " = ", cast, "(", from,
              ");");
  }
  for (uint32_t i : pass.elements) {
    if (GivesVector(i)) WriteVector(i);
    if (ScopeOf(i) != Scope::kVector) continue;
    WriteCompute(i);
    if (held_[i] && region_.instrs[i].stage == p) out_.Line("h", i, "[k][0] = v", i, ";");
  }
  for (size_t s : pass.stores) {
    if (Plan(region_.stores[s].access).form == VectorAccess::Form::kOne) continue;
    out_.Line("fd_vec<", RegisterType(region_.instrs[region_.stores[s].value].dtype), ", ",
              schedule_.vector, "> o", s, ";");
  }
  for (uint32_t i : pass.reductions) {
    if (!schedule::IsOnline(region_.instrs[i])) continue;
    out_.Line("fd_vec<", RegisterType(region_.instrs[i].dtype), ", ", schedule_.vector, "> y", i,
              ";");
  }
  out_.Unrolled("e", schedule_.vector);
  if (shifted_ && schedule::TakesCoordinates(region_))
    out_.Line("const ", schedule_.wide_index ? "i64" : "i32",
              " g = j + (e < begin ? begin : e < end ? e : end - 1);");
  for (uint32_t i : pass.elements) {
    if (ScopeOf(i) != Scope::kElement || GivesVector(i)) continue;
    WriteCompute(i);
    if (held_[i] && region_.instrs[i].stage == p) out_.Line("h", i, "[k][e] = v", i, ";");
  }
  for (uint32_t i : pass.reductions) {
    const Instr& instr = region_.instrs[i];
    if (schedule::IsOnline(instr)) {
      out_.Line("y", i, "[e] = ", Value(instr.operands[0]), ";");
      continue;
    }
    const std::string chain = absl::StrCat(
        "a", i, "[e", chains_ < schedule_.vector ? absl::StrCat(" % ", chains_) : "", "]");
    const std::string combined =
        absl::StrCat(Reducer(instr.op), "::combine(", chain, ", ", Value(instr.operands[0]), ")");
    out_.Line(
        chain, " = ",
        shifted_ ? absl::StrCat("e >= begin && e < end ? ", combined, " : ", chain) : combined,
        ";");
  }
  for (uint32_t i : pass.sums) {
    const Instr& instr = region_.instrs[i];
    out_.Line("a", i, "[k][e] = ", Reducer(instr.op), "::combine(a", i, "[k][e], ",
              Value(instr.operands[0]), ");");
  }
  for (size_t s : pass.stores) {
    if (Plan(region_.stores[s].access).form != VectorAccess::Form::kOne)
      out_.Line("o", s, "[e] = ", Value(region_.stores[s].value), ";");
  }
  out_.Close();
  for (uint32_t i : pass.reductions) {
    if (!schedule::IsOnline(region_.instrs[i])) continue;
    out_.Line("fd_online_add(a", i, ", y", i, shifted_ ? ", begin, end" : "", ");");
  }
  for (size_t s : pass.stores) WriteStore(s);
}

std::string RowText::ColumnOwner(const Access& access) const {
  std::vector<std::string> conditions;
  for (size_t d = first_column_; d < region_.dims.size(); ++d)
    if (access.strides[d] == 0) conditions.push_back(absl::StrCat("c", d, " == 0"));
  return absl::StrJoin(conditions, " && ");
}

void RowText::WriteStore(size_t s) {
  const Store& store = region_.stores[s];
  const VectorAccess plan = Plan(store.access);
  const std::string offset = Offset(store.access);
  std::vector<std::string> owners;
  for (const std::string& owner : {RowOwner(store.access), ColumnOwner(store.access)})
    if (!owner.empty()) owners.push_back(owner);
  if (!owners.empty()) out_.Open("if (", absl::StrJoin(owners, " && "), ")");
  const bool one = plan.form == VectorAccess::Form::kOne;
  const std::string value = one ? Value(store.value) : absl::StrCat("o", s);
  const std::string whole = StoreText(region_, store.access, plan, schedule_.vector, offset, value);
  if (!shifted_ || one) {
    out_.Line(whole);
  } else {
    const char* type = MemoryType(region_.tensors[store.access.tensor].dtype);
    const std::string part =
        absl::StrCat("fd_store_range(p", store.access.tensor, " + ", offset, ", fd_cast<", type,
                     ">(", value, "), ", plan.stride, ", begin, end);");
    if (KeepsPhase(store.access)) {
      out_.Open("if (whole)");
      out_.Line(whole);
      out_.Close();
      out_.Open("else");
      out_.Line(part);
      out_.Close();
    } else {
      out_.Line(part);
    }
  }
  if (!owners.empty()) out_.Close();
}

}  // namespace fusiond::codegen
