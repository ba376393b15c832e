// The rows' half of RowText: values of one a row, loaded and computed in the row's turn or for 32
// rows at once, and their stores.
#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/codegen/names.h"
#include "compiler/codegen/row_text.h"

namespace fusiond::codegen {

using schedule::Access;
using schedule::Instr;
using schedule::Store;

bool RowText::IsAhead(uint32_t i) const {
  const Instr& instr = region_.instrs[i];
  if (ScopeOf(i) != Scope::kRow) return false;
  if (instr.kind == Instr::Kind::kLoad) return true;
  const std::vector<uint32_t>& first = stages_.passes[0].rows;
  return std::find(first.begin(), first.end(), i) != first.end();
}

std::vector<uint32_t> RowText::Ahead() const {
  std::vector<uint32_t> ahead;
  for (const schedule::Pass& pass : stages_.passes)
    std::copy_if(pass.rows.begin(), pass.rows.end(), std::back_inserter(ahead),
                 [&](uint32_t i) { return IsAhead(i); });
  return ahead;
}

bool RowText::IsShuffled(uint32_t i) const {
  for (const schedule::Store& store : region_.stores)
    if (store.value == i) return true;
  for (uint32_t user = i + 1; user < region_.instrs.size(); ++user) {
    const std::vector<uint32_t>& operands = region_.instrs[user].operands;
    if (!IsAhead(user) && std::find(operands.begin(), operands.end(), i) != operands.end())
      return true;
  }
  return false;
}

void RowText::DeclareAhead(bool keep) {
  for (uint32_t i : Ahead()) {
    if (!IsShuffled(i)) continue;
    const char* type = RegisterType(region_.instrs[i].dtype);
    out_.Line(type, " l", i, keep ? " = 0;" : ";");
    if (keep) out_.Line(type, " g", i, ";");
  }
}

void RowText::WriteAhead(bool keep) {
  pass_ = 0;
  for (uint32_t i : Ahead()) {
    const Instr& instr = region_.instrs[i];
    if (instr.kind == Instr::Kind::kLoad) {
      out_.Line("const ", RegisterType(instr.dtype), " v", i, " = ", RowLoad(instr), ";");
    } else {
      WriteCompute(i);
    }
  }
  for (uint32_t i : Ahead()) {
    if (!IsShuffled(i)) continue;
    if (keep) out_.Line("g", i, " = l", i, ";");
    out_.Line("l", i, " = v", i, ";");
  }
}

// A load of one value a row, converted.
std::string RowText::RowLoad(const Instr& instr) const {
  const std::string base = Base(instr.access);
  return absl::StrCat("fd_cast<", RegisterType(instr.dtype), ">(",
                      LoadText(region_, instr.access, {}, 1, base.empty() ? "0" : base), "[0])");
}

void RowText::WriteRowValues(size_t p, absl::string_view lane) {
  pass_ = p;
  for (uint32_t i : stages_.passes[p].rows) {
    const Instr& instr = region_.instrs[i];
    if (ScopeOf(i) == Scope::kKernel) continue;
    const char* type = RegisterType(instr.dtype);
    if (!lane.empty() && IsAhead(i)) {
      if (IsShuffled(i)) out_.Line("const ", type, " v", i, " = fd_shuffle(l", i, ", ", lane, ");");
    } else if (instr.kind == Instr::Kind::kLoad) {
      out_.Line("const ", type, " v", i, " = ", RowLoad(instr), ";");
    } else {
      WriteCompute(i);
    }
  }
}

void RowText::WriteRowValuesBefore(size_t p) {
  pass_ = p;
  for (uint32_t i : stages_.passes[p].rows) {
    const Instr& instr = region_.instrs[i];
    if (ScopeOf(i) == Scope::kKernel) continue;
    if (!IsAhead(i)) {
      WriteCompute(i);
    } else if (IsShuffled(i)) {
      out_.Line("const ", RegisterType(instr.dtype), " v", i,
                " = fd_shuffle(i % 32 == 0 && i < count ? g", i, " : l", i,
                ", (u32)((i - 1) % 32));");
    }
  }
}

// A tensor that lacks some dims is written where their coordinates are 0.
std::string RowText::RowOwner(const Access& access) const {
  std::vector<std::string> conditions;
  if (schedule_.threads_per_row < 32) conditions.push_back("live");
  for (size_t d = 0; d < first_column_; ++d)
    if (access.strides[d] == 0) conditions.push_back(absl::StrCat("c", d, " == 0"));
  return absl::StrJoin(conditions, " && ");
}

void RowText::WriteRowStores(absl::string_view writer) {
  pass_ = stages_.passes.size();
  if (stages_.row_stores.empty()) return;
  out_.Open("if (", writer, ")");
  for (size_t s : stages_.row_stores) {
    const Store& store = region_.stores[s];
    const std::string owner = RowOwner(store.access);
    const std::string base = Base(store.access);
    const VectorAccess one = Plan(store.access);
    out_.Line(
        owner.empty() ? "" : absl::StrCat("if (", owner, ") "),
        StoreText(region_, store.access, one, 1, base.empty() ? "0" : base, Value(store.value)));
  }
  out_.Close();
}

}  // namespace fusiond::codegen
