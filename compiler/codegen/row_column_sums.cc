// Column sums: from the teams' registers to the CTA's part in memory.
#include "absl/strings/str_cat.h"
#include "compiler/codegen/names.h"
#include "compiler/codegen/row_column_internal.h"

namespace fusiond::codegen {

using schedule::Instr;

void RowColumn::WriteSums(uint32_t number, uint32_t i) {
  out_.OpenBlock();
  if (teams_ == 1) {
    WriteSumsOfOneTeam(number, i);
  } else if (teams_ == 2) {
    WriteSumsOfTwoTeams(number, i);
  } else {
    WriteSumsOfTeams(number, i);
  }
  out_.Close();
}

void RowColumn::WriteSumsOfOneTeam(uint32_t number, uint32_t i) {
  out_.Unrolled("k", schedule_.unroll);
  rows_.OpenVector(masked_);
  WritePart(number, i, "j", absl::StrCat("a", i, "[k]"));
  rows_.CloseVector();
  out_.Close();
}

void RowColumn::WritePart(uint32_t number, uint32_t i, absl::string_view column,
                          absl::string_view sums) {
  out_.Line("fd_store(q", number, " + ", cluster_ > 1 ? "first" : "fd_cta()", " * (u64)",
            region_.Columns(), " + ", column, ", fd_cast<", MemoryType(region_.instrs[i].dtype),
            ">(", sums, "));");
}

void RowColumn::WriteSumsOfTwoTeams(uint32_t number, uint32_t i) {
  const Instr& instr = region_.instrs[i];
  const char* type = RegisterType(instr.dtype);
  out_.Line(type, "* const meet = (", type, "*)arena;");
  out_.Line("fd_sync();  // the arena is free");
  out_.Open("if (team == 1)");
  out_.Unrolled("k", schedule_.unroll);
  rows_.OpenVector(masked_);
  out_.Line("fd_store(meet + j, a", i, "[k]);");
  rows_.CloseVector();
  out_.Close();
  out_.Close();
  out_.Line("fd_sync();  // team 1's sums are there");
  out_.Open("if (team == 0)");
  out_.Unrolled("k", schedule_.unroll);
  rows_.OpenVector(masked_);
  out_.Line("const fd_vec<", type, ", ", schedule_.vector, "> more = fd_load<", type, ", ",
            schedule_.vector, ">(meet + j);");
  out_.Unrolled("e", schedule_.vector);
  out_.Line("a", i, "[k][e] = ", Reducer(instr.op), "::combine(a", i, "[k][e], more[e]);");
  out_.Close();
  WritePart(number, i, "j", absl::StrCat("a", i, "[k]"));
  rows_.CloseVector();
  out_.Close();
  out_.Close();
}

void RowColumn::WriteSumsOfTeams(uint32_t number, uint32_t i) {
  const Instr& instr = region_.instrs[i];
  const char* type = RegisterType(instr.dtype);
  const int64_t span = Span();
  int64_t width = 16 / ir::ByteSize(instr.dtype);
  while (region_.Columns() % width != 0) width /= 2;
  out_.Line(type, "* const meet = (", type, "*)arena;");
  out_.Line("fd_sync();  // the arena is free");
  out_.Unrolled("k", schedule_.unroll);
  rows_.OpenVector(masked_);
  out_.Line("fd_store(meet + team * ", span, " + j, a", i, "[k]);");
  rows_.CloseVector();
  out_.Close();
  out_.Line("fd_sync();  // every team's sums are there");
  out_.Open("for (u32 c = fd_thread() * ", width, "; c < ", region_.Columns(),
            "; c += ", schedule_.threads * width, ")");
  out_.Line("fd_vec<", type, ", ", width, "> sum = fd_load<", type, ", ", width, ">(meet + c);");
  out_.Line("#pragma unroll");
  out_.Open("for (u32 q = 1; q < ", teams_, "; q++)");
  out_.Line("const fd_vec<", type, ", ", width, "> more = fd_load<", type, ", ", width,
            ">(meet + q * ", span, " + c);");
  out_.Line("#pragma unroll");
  out_.Line("for (int e = 0; e < ", width, "; e++) sum[e] = ", Reducer(instr.op),
            "::combine(sum[e], more[e]);");
  out_.Close();
  WritePart(number, i, "c", "sum");
  out_.Close();
}

}  // namespace fusiond::codegen
