#include "compiler/codegen/row_column.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler/codegen/column.h"
#include "compiler/codegen/kernel_text.h"
#include "compiler/codegen/names.h"
#include "compiler/codegen/row_text.h"
#include "compiler/schedule/finalise.h"
#include "compiler/schedule/row_column.h"
#include "runtime/base/check.h"

namespace fusiond::codegen {
namespace {

using executable::Formula;
using executable::FormulaTerm;
using schedule::Access;
using schedule::Instr;
using schedule::KernelSchedule;
using schedule::Region;
using schedule::RowColumnLayout;

constexpr absl::string_view kFiles[] = {"math.cuh", "part.cuh",     "smem.cuh", "sync.cuh",
                                        "pdl.cuh",  "mbarrier.cuh", "copy.cuh", "team.cuh"};
constexpr int kChains = 2;  // of a row reduction in a thread: its additions wait for each other

class RowColumn {
 public:
  RowColumn(const Region& region, const KernelSchedule& schedule)
      : region_(region),
        schedule_(schedule),
        stages_(schedule::PlanStages(region, schedule::kRowColumnMaxAgain)),
        layout_(schedule::LayOutRowColumn(region, stages_, schedule)),
        bulk_(absl::StartsWith(schedule.variant, "bulk")),
        async_(absl::StartsWith(schedule.variant, "async")),
        warps_(schedule.threads_per_row / 32),
        teams_(schedule.rows_per_cta),
        masked_(region.Columns() % (int64_t{schedule.threads_per_row} * schedule.vector) != 0),
        ctas_(Formula::Combine(FormulaTerm::Kind::kMin, Formula::Constant(schedule.splits),
                               Formula::SmCount())),
        text_("row_column", schedule.threads),
        out_(text_.body()),
        rows_(region, schedule, stages_, /*shifted=*/false, out_, emission_.alignment,
              std::min(kChains, schedule.vector)),
        slots_(layout_.slots) {
    emission_.alignment = NaturalAlignment(region);
  }

  Emission Emit() && {
    text_.TakeTensorsBefore(region_);
    text_.TakeScalars(region_);
    const std::vector<uint32_t> sums = schedule::LateReductions(region_);
    for (uint32_t r = 0; r < sums.size(); ++r)
      text_.TakeScratch(r, MemoryType(region_.instrs[sums[r]].dtype), true);
    text_.TakeIndex("n", Formula::Constant(region_.Rows()), schedule_.wide_index);
    if (schedule_.unpacked) rows_.HoldUnpacked();
    rows_.WriteKernelValues();
    WritePlace();
    if (bulk_) WriteBulkRing();
    if (async_) WriteAsyncRing();
    WriteColumns();
    rows_.DeclareSums();
    if (rows_.HasAhead()) rows_.DeclareAhead();
    WriteRows();
    for (uint32_t r = 0; r < sums.size(); ++r) WriteSums(r, sums[r]);
    out_.Line("fd_launch_dependents();");
    Kernel kernel = std::move(text_).Finish(kFiles);
    kernel.grid[0] = ctas_;
    kernel.smem_bytes = layout_.bytes();
    emission_.kernels.push_back(std::move(kernel));
    AppendFinalise(region_, ctas_, schedule_.splits, emission_);
    return std::move(emission_);
  }

 private:
  const char* Index() const { return rows_.Index(); }
  void WritePlace() {
    const int team = schedule_.threads_per_row;
    if (teams_ > 1) {
      out_.Line("const u32 t = fd_thread() % ", team, ", team = fd_thread() / ", team, ";");
      out_.Line("const ", Index(), " step = (", Index(), ")fd_ctas() * ", teams_, ", first = (",
                Index(), ")fd_ctas() * team + fd_cta();");
    } else {
      out_.Line("const u32 t = fd_thread(), team = 0;");
      out_.Line("const ", Index(), " step = fd_ctas(), first = fd_cta();");
    }
    out_.Line("const ", Index(), " count = first < n ? (n - first + step - 1) / step : 0;");
    out_.Line("u8* const arena = fd_smem<u8>(", layout_.arena, ", ", layout_.arena_bytes, ");");
    if (!layout_.ring.empty()) {
      out_.Line("u8* const ring = arena + team * ", schedule_.stages * layout_.stage_bytes, ";");
    }
  }

  // The pointer to column `column` of a ring load in stage `stage`.
  std::string Staged(const RowColumnLayout::Part& part, absl::string_view stage,
                     absl::string_view column, bool written) const {
    const ir::DType dtype = region_.tensors[region_.instrs[part.instr].access.tensor].dtype;
    std::string address = absl::StrCat("ring + ", stage, " * ", layout_.stage_bytes);
    if (part.offset > 0) absl::StrAppend(&address, " + ", part.offset);
    return absl::StrCat("(", written ? "" : "const ", MemoryType(dtype), "*)(", address, ")",
                        column.empty() ? "" : " + ", column);
  }

  void Rely(const Access& access, int64_t alignment) {
    emission_.alignment[access.tensor] = std::max(emission_.alignment[access.tensor], alignment);
  }

  void WriteBulkRing() {
    const int stages = schedule_.stages;
    out_.Line("fd_mbarrier* const barriers = fd_smem<fd_mbarrier>(0, ", teams_ * stages, ");");
    out_.Line("fd_mbarrier* const full = barriers + team * ", stages, ";");
    out_.Open("if (fd_thread() == 0)");
    out_.Line("for (u32 s = 0; s < ", teams_ * stages, "; s++) fd_mbarrier_init(barriers + s, 1);");
    out_.Line("fd_mbarrier_init_fence();");
    out_.Close();
    out_.Line("fd_sync();");
    out_.Open("const auto refill = [&](", Index(), " i, u32 s)");
    out_.Line("const ", Index(), " row = first + i * step;");
    rows_.WriteRow();
    int64_t bytes = 0;
    for (const RowColumnLayout::Part& part : layout_.ring) bytes += RowBytes(part);
    out_.Line("fd_mbarrier_expect(full + s, ", bytes, ");");
    for (const RowColumnLayout::Part& part : layout_.ring) {
      const Access& access = region_.instrs[part.instr].access;
      Rely(access, 16);
      out_.Line("fd_copy_bulk(ring + s * ", layout_.stage_bytes, " + ", part.offset, ", p",
                access.tensor, " + ", rows_.Base(access), ", ", RowBytes(part), ", full + s);");
    }
    out_.Close(";");
    out_.Open("if (t == 0)");
    out_.Line("for (u32 i = 0; i < ", stages, " && i < count; i++) refill(i, i);");
    out_.Close();
  }

  int64_t RowBytes(const RowColumnLayout::Part& part) const {
    const Access& access = region_.instrs[part.instr].access;
    return region_.Columns() * ir::ByteSize(region_.tensors[access.tensor].dtype);
  }

  void WriteAsyncRing() {
    out_.Open("const auto fetch = [&](", Index(), " i)");
    out_.Open("if (i < count)");
    out_.Line("const ", Index(), " row = first + i * step;");
    out_.Line("const u32 s = (u32)(i % ", schedule_.stages, ");");
    rows_.WriteRow();
    out_.Unrolled("k", schedule_.unroll);
    rows_.OpenVector(masked_);
    for (const RowColumnLayout::Part& part : layout_.ring) {
      const Access& access = region_.instrs[part.instr].access;
      Rely(access, 16);
      const int64_t size = ir::ByteSize(region_.tensors[access.tensor].dtype);
      for (int64_t piece = 0; piece < schedule_.vector; piece += 16 / size) {
        const std::string column = piece == 0 ? "j" : absl::StrCat("j + ", piece);
        out_.Line("fd_copy16(", Staged(part, "s", column, true), ", p", access.tensor, " + ",
                  rows_.Base(access), " + ", column, ");");
      }
    }
    rows_.CloseVector();
    out_.Close();
    out_.Close();
    out_.Line("fd_copy_commit();");
    out_.Close(";");
    out_.Line("for (", Index(), " i = 0; i + 1 < ", schedule_.stages, "; i++) fetch(i);");
  }

  // Element loads that are the same for all rows.
  void WriteColumns() {
    for (uint32_t i : layout_.columns) rows_.DeclareLoad(i);
    if (!layout_.columns.empty()) {
      out_.Unrolled("k", schedule_.unroll);
      rows_.OpenVector(masked_);
      for (uint32_t i : layout_.columns) rows_.WriteLoad(i, false);
      rows_.CloseVector();
      out_.Close();
    }
    for (const RowColumnLayout::Part& part : layout_.shared_columns) {
      const Access& access = region_.instrs[part.instr].access;
      const char* type = MemoryType(region_.tensors[access.tensor].dtype);
      out_.Line(type, "* const u", part.instr, " = fd_smem<", type, ">(", part.offset, ", ",
                region_.Columns(), ");");
      rows_.LoadAtUse(part.instr);
    }
    if (layout_.shared_columns.empty()) return;
    out_.Open("for (u32 j = fd_thread() * ", schedule_.vector, "; j < ", region_.Columns(),
              "; j += ", schedule_.threads * schedule_.vector, ")");
    for (const RowColumnLayout::Part& part : layout_.shared_columns) {
      rows_.WriteLoad(part.instr, true);
      out_.Line("fd_store(u", part.instr, " + j, m", part.instr, ");");
    }
    out_.Close();
    out_.Line("fd_sync();");
  }

  // Values of 32 rows at once, a row a lane: were each row's loaded for itself, ptxas might delay
  // the load to where nothing hides it, and a division would stand in every row's way.
  void WriteAhead() {
    out_.Open("if (i % 32 == 0)");
    out_.Line("const ", Index(),
              " mine = first + (i + fd_lane()) * step, row = mine < n ? mine : n - 1;");
    rows_.WriteRow();
    rows_.WriteAhead();
    out_.Close();
  }

  void WriteRows() {
    if (bulk_) out_.Line("u32 s = 0, phase = 0;");
    if (async_) out_.Line("u32 s = 0;");
    out_.Open("for (", Index(), " i = 0; i < count; i++)");
    if (async_) out_.Line("fetch(i + ", schedule_.stages - 1, ");");
    if (rows_.HasAhead()) WriteAhead();
    out_.Line("const ", Index(), " row = first + i * step;");
    rows_.WriteRow();
    for (uint32_t i : stages_.held) rows_.DeclareHeld(i);
    for (size_t p = 0; p < stages_.passes.size(); ++p) {
      rows_.WriteRowValues(p, "(u32)(i % 32)");
      if (p == 0) WriteElementLoads();
      WritePass(p);
      if (p == 0 && bulk_ && warps_ > 1) WriteRefill();
    }
    rows_.WriteRowStores();
    if (bulk_ || async_) {
      out_.Open("if (++s == ", schedule_.stages, ")");
      out_.Line("s = 0;");
      if (bulk_) out_.Line("phase ^= 1;");
      out_.Close();
    }
    out_.Close();
  }

  void WriteElementLoads() {
    for (uint32_t i : layout_.direct) rows_.DeclareLoad(i);
    if (!layout_.direct.empty()) {
      out_.Unrolled("k", schedule_.unroll);
      rows_.OpenVector(masked_);
      for (uint32_t i : layout_.direct) rows_.WriteLoad(i, false);
      rows_.CloseVector();
      out_.Close();
    }
    if (layout_.ring.empty()) return;
    if (bulk_) out_.Line("fd_mbarrier_wait(full + s, phase);");
    if (async_) out_.Line("fd_copy_wait<", schedule_.stages - 1, ">();");
    for (const RowColumnLayout::Part& part : layout_.ring) rows_.DeclareLoad(part.instr);
    out_.Unrolled("k", schedule_.unroll);
    rows_.OpenVector(masked_);
    for (const RowColumnLayout::Part& part : layout_.ring) {
      const Access& access = region_.instrs[part.instr].access;
      rows_.WriteLoaded(
          part.instr,
          absl::StrCat("fd_load<", MemoryType(region_.tensors[access.tensor].dtype), ", ",
                       schedule_.vector, ">(", Staged(part, "s", "j", false), ")"));
    }
    rows_.CloseVector();
    out_.Close();
    if (bulk_ && warps_ == 1) {
      out_.Line("fd_sync_warp();  // every lane has its part of the row");
      WriteRefill();
    }
  }

  void WriteRefill() {
    out_.Line("if (t == 0 && i + ", schedule_.stages, " < count) refill(i + ", schedule_.stages,
              ", s);");
  }

  void WritePass(size_t p) {
    const schedule::Pass& pass = stages_.passes[p];
    if (pass.reductions.empty() && pass.stores.empty() && pass.elements.empty() &&
        pass.sums.empty())
      return;
    rows_.DeclareChains(p);
    out_.Unrolled("k", schedule_.unroll);
    rows_.OpenVector(masked_);
    for (uint32_t i : pass.loads) WriteColumnLoad(i);
    rows_.WriteElements(p, false);
    rows_.CloseVector();
    out_.Close();
    const std::vector<ReductionGroup> groups = rows_.Groups(p);
    for (const ReductionGroup& group : groups) {
      rows_.FoldChains(group);
      out_.Line("fd_warp_reduce<", Reducer(group.op), ", 32>(z", group.number, ");");
    }
    if (warps_ > 1 && !groups.empty()) WriteMeeting(groups);
    for (const ReductionGroup& group : groups) rows_.NameResults(group);
  }

  // What is the same for all rows is kept as in memory: the compiler may not hold it converted.
  void WriteColumnLoad(uint32_t i) {
    const auto is = [i](const RowColumnLayout::Part& part) { return part.instr == i; };
    const ir::DType dtype = region_.tensors[region_.instrs[i].access.tensor].dtype;
    if (std::any_of(layout_.shared_columns.begin(), layout_.shared_columns.end(), is)) {
      out_.Line("const fd_vec<", MemoryType(dtype), ", ", schedule_.vector, "> m", i, " = fd_load<",
                MemoryType(dtype), ", ", schedule_.vector, ">(u", i, " + j);");
      return;
    }
    const bool in_registers =
        std::find(layout_.columns.begin(), layout_.columns.end(), i) != layout_.columns.end();
    if (in_registers && !schedule_.unpacked && ir::ByteSize(dtype) < 4 && rows_.IsVector(i) &&
        schedule_.vector * ir::ByteSize(dtype) % 4 == 0)
      out_.Line("fd_opaque(m", i, "[k]);");
  }

  // Two slots a reduction, taken in turn: whoever writes one has passed the barrier after which it
  // was last read.
  void WriteMeeting(const std::vector<ReductionGroup>& groups) {
    for (const ReductionGroup& group : groups) {
      const auto elements = static_cast<int64_t>(group.reductions.size()) * warps_;
      const char* type = RegisterType(group.dtype);
      out_.Line(type, "* const w", group.number, " = fd_smem<", type, ">(", slots_, ", ",
                2 * teams_ * elements, ") + (team * 2 + (u32)(i & 1)) * ", elements, ";");
      out_.Line("fd_put_partials<", warps_, ">(z", group.number, ", w", group.number, ");");
      slots_ += (2 * teams_ * elements * ir::ByteSize(group.dtype) + 15) / 16 * 16;
      FUSIOND_CHECK(slots_ <= layout_.arena);
    }
    if (teams_ > 1) {
      out_.Line("fd_sync_named(1 + team, ", schedule_.threads_per_row, ");");
    } else {
      out_.Line("fd_sync();");
    }
    for (const ReductionGroup& group : groups) {
      out_.Line("fd_take_partials<", Reducer(group.op), ", ", warps_, ">(z", group.number, ", w",
                group.number, ");");
    }
  }

  // The teams' sums of one reduction, in team order, to the CTA's part.
  void WriteSums(uint32_t number, uint32_t i) {
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

  void WriteSumsOfOneTeam(uint32_t number, uint32_t i) {
    out_.Unrolled("k", schedule_.unroll);
    rows_.OpenVector(masked_);
    WritePart(number, i, "j", absl::StrCat("a", i, "[k]"));
    rows_.CloseVector();
    out_.Close();
  }

  // The CTA's part of a sum, from column `column` on.
  void WritePart(uint32_t number, uint32_t i, absl::string_view column, absl::string_view sums) {
    out_.Line("fd_store(q", number, " + fd_cta() * (u64)", region_.Columns(), " + ", column,
              ", fd_cast<", MemoryType(region_.instrs[i].dtype), ">(", sums, "));");
  }

  // Of two teams the first keeps its sums in registers: half the traffic through shared memory.
  void WriteSumsOfTwoTeams(uint32_t number, uint32_t i) {
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

  void WriteSumsOfTeams(uint32_t number, uint32_t i) {
    const Instr& instr = region_.instrs[i];
    const char* type = RegisterType(instr.dtype);
    const int64_t span = int64_t{schedule_.unroll} * schedule_.threads_per_row * schedule_.vector;
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

  const Region& region_;
  const KernelSchedule& schedule_;
  const schedule::Stages stages_;
  const RowColumnLayout layout_;
  const bool bulk_, async_;
  const int warps_, teams_;
  const bool masked_;  // some vectors lie behind the row
  const Formula ctas_;
  KernelText text_;
  TextBuilder& out_;
  Emission emission_;
  RowText rows_;
  int64_t slots_;  // where the next reduction group's begin
};

}  // namespace

Emission EmitRowColumn(const Region& region, const KernelSchedule& schedule) {
  return RowColumn(region, schedule).Emit();
}

}  // namespace fusiond::codegen
