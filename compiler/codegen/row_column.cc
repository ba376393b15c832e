#include "compiler/codegen/row_column.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler/codegen/column.h"
#include "compiler/codegen/names.h"
#include "compiler/codegen/row_column_internal.h"
#include "compiler/schedule/finalise.h"
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
constexpr absl::string_view kClusterFiles[] = {"math.cuh", "part.cuh", "smem.cuh",
                                               "sync.cuh", "pdl.cuh",  "mbarrier.cuh",
                                               "copy.cuh", "team.cuh", "cluster_team.cuh"};
constexpr int kChains = 2;  // of a row reduction in a thread: its additions wait for each other

// CTAs, or clusters of several.
Formula Parts(int splits, int cluster) {
  Formula most = Formula::SmCount();
  if (cluster > 1) {
    most = Formula::Combine(FormulaTerm::Kind::kCeilDiv, most, Formula::Constant(cluster));
  }
  return Formula::Combine(FormulaTerm::Kind::kMin, Formula::Constant(splits), most);
}

}  // namespace

RowColumn::RowColumn(const Region& region, const KernelSchedule& schedule)
    : region_(region),
      schedule_(schedule),
      stages_(schedule::PlanStages(region, schedule.cluster > 1
                                               ? schedule::kRowColumnMaxAgainInCluster
                                               : schedule::kRowColumnMaxAgain)),
      layout_(schedule::LayOutRowColumn(region, stages_, schedule)),
      bulk_(absl::StartsWith(schedule.variant, "bulk")),
      async_(absl::StartsWith(schedule.variant, "async")),
      warps_(schedule.threads_per_row / 32),
      teams_(schedule.rows_per_cta),
      cluster_(std::max(schedule.cluster, 1)),
      masked_(region.Columns() != Span() * cluster_),
      parts_(Parts(schedule.splits, cluster_)),
      text_(region, "row_column", schedule.threads),
      out_(text_.body()),
      rows_(region, schedule, stages_, /*shifted=*/false, out_, emission_.alignment,
            std::min(kChains, schedule.vector)),
      slots_(layout_.slots) {
  emission_.alignment = NaturalAlignment(region);
}

Emission RowColumn::Emit() && {
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
  if (rows_.HasAhead()) rows_.DeclareAhead(cluster_ > 1);
  if (cluster_ > 1) {
    WriteRowsOfCluster();
  } else {
    WriteRows();
  }
  for (uint32_t r = 0; r < sums.size(); ++r) WriteSums(r, sums[r]);
  out_.Line("fd_launch_dependents();");
  Kernel kernel =
      cluster_ > 1 ? std::move(text_).Finish(kClusterFiles) : std::move(text_).Finish(kFiles);
  kernel.grid[0] = parts_;
  if (cluster_ > 1) {
    kernel.grid[0] =
        Formula::Combine(FormulaTerm::Kind::kMultiply, parts_, Formula::Constant(cluster_));
  }
  kernel.cluster = cluster_;
  kernel.smem_bytes = layout_.bytes();
  emission_.kernels.push_back(std::move(kernel));
  AppendFinalise(region_, parts_, schedule_.splits, emission_);
  return std::move(emission_);
}

void RowColumn::WritePlace() {
  const int team = schedule_.threads_per_row;
  if (teams_ > 1) {
    out_.Line("const u32 t = fd_thread() % ", team, ", team = fd_thread() / ", team, ";");
    out_.Line("const ", Index(), " step = (", Index(), ")fd_ctas() * ", teams_, ", first = (",
              Index(), ")fd_ctas() * team + fd_cta();");
  } else if (cluster_ > 1) {
    out_.Line("const u32 t = fd_thread(), team = 0;");
    out_.Line("const ", Index(), " step = fd_ctas() / ", cluster_, ", first = fd_cta() / ",
              cluster_, ";");
    rows_.ShareColumns(cluster_, layout_.columns_of_cta);
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

std::string RowColumn::Staged(const RowColumnLayout::Part& part, absl::string_view stage,
                              absl::string_view column, bool written) const {
  const ir::DType dtype = region_.tensors[region_.instrs[part.instr].access.tensor].dtype;
  std::string address = absl::StrCat("ring + ", stage, " * ", layout_.stage_bytes);
  if (part.offset > 0) absl::StrAppend(&address, " + ", part.offset);
  return absl::StrCat("(", written ? "" : "const ", MemoryType(dtype), "*)(", address, ")",
                      column.empty() ? "" : " + ", column);
}

void RowColumn::Rely(const Access& access, int64_t alignment) {
  emission_.alignment[access.tensor] = std::max(emission_.alignment[access.tensor], alignment);
}

void RowColumn::WriteBulkRing() {
  const int stages = schedule_.stages;
  out_.Line("fd_mbarrier* const barriers = fd_smem<fd_mbarrier>(0, ", teams_ * stages, ");");
  out_.Line("fd_mbarrier* const full = barriers + team * ", stages, ";");
  const auto meetings = static_cast<int64_t>(stages_.passes.size()) * schedule::kClusterSlots;
  if (cluster_ > 1) {
    out_.Line("fd_mbarrier* const empty = fd_smem<fd_mbarrier>(", layout_.empty, ", ", stages,
              ");");
    out_.Line("fd_mbarrier* const meetings = fd_smem<fd_mbarrier>(", layout_.meetings, ", ",
              meetings, ");");
  }
  out_.Open("if (fd_thread() == 0)");
  out_.Line("for (u32 s = 0; s < ", teams_ * stages, "; s++) fd_mbarrier_init(barriers + s, 1);");
  if (cluster_ > 1) {
    out_.Line("for (u32 s = 0; s < ", stages, "; s++) fd_mbarrier_init(empty + s, ", warps_, ");");
    out_.Line("for (u32 s = 0; s < ", meetings, "; s++) fd_mbarrier_init(meetings + s, 1);");
  }
  out_.Line("fd_mbarrier_init_fence();");
  out_.Close();
  out_.Line(cluster_ > 1 ? "fd_cluster_sync();" : "fd_sync();");
  out_.Open("const auto refill = [&](", Index(), " i, u32 s)");
  out_.Line("const ", Index(), " row = first + i * step;");
  rows_.WriteRow();
  int64_t column_bytes = 0;
  for (const RowColumnLayout::Part& part : layout_.ring) column_bytes += ColumnBytes(part);
  out_.Line("fd_mbarrier_expect(full + s, ", RowBytes(column_bytes), ");");
  for (const RowColumnLayout::Part& part : layout_.ring) {
    const Access& access = region_.instrs[part.instr].access;
    Rely(access, 16);
    out_.Line("fd_copy_bulk(ring + s * ", layout_.stage_bytes, " + ", part.offset, ", p",
              access.tensor, " + ", rows_.Base(access), cluster_ > 1 ? " + left" : "", ", ",
              RowBytes(ColumnBytes(part)), ", full + s);");
  }
  out_.Close(";");
  out_.Open("if (t == 0)");
  out_.Line("for (u32 i = 0; i < ", stages, " && i < count; i++) refill(i, i);");
  out_.Close();
}

int64_t RowColumn::ColumnBytes(const RowColumnLayout::Part& part) const {
  return ir::ByteSize(region_.tensors[region_.instrs[part.instr].access.tensor].dtype);
}

std::string RowColumn::RowBytes(int64_t column_bytes) const {
  if (layout_.columns_of_cta * cluster_ == region_.Columns())
    return absl::StrCat(layout_.columns_of_cta * column_bytes);
  return absl::StrCat("(u32)(right - left) * ", column_bytes);
}

void RowColumn::WriteAsyncRing() {
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

void RowColumn::WriteColumns() {
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
              layout_.columns_of_cta, ");");
    rows_.LoadAtUse(part.instr);
  }
  if (layout_.shared_columns.empty()) return;
  if (cluster_ > 1) {
    out_.Open("for (", Index(), " j = left + fd_thread() * ", schedule_.vector,
              "; j < right; j += ", schedule_.threads * schedule_.vector, ")");
  } else {
    out_.Open("for (u32 j = fd_thread() * ", schedule_.vector, "; j < ", region_.Columns(),
              "; j += ", schedule_.threads * schedule_.vector, ")");
  }
  for (const RowColumnLayout::Part& part : layout_.shared_columns) {
    rows_.WriteLoad(part.instr, true);
    out_.Line("fd_store(u", part.instr, " + ", Place(), ", m", part.instr, ");");
  }
  out_.Close();
  out_.Line("fd_sync();");
}

void RowColumn::WriteAhead() {
  if (!rows_.HasAhead()) return;
  out_.Open("if (i % 32 == 0)");
  out_.Line("const ", Index(),
            " mine = first + (i + fd_lane()) * step, row = mine < n ? mine : n - 1;");
  rows_.WriteRow();
  rows_.WriteAhead(cluster_ > 1);
  out_.Close();
}

void RowColumn::WriteRows() {
  if (bulk_) out_.Line("u32 s = 0, phase = 0;");
  if (async_) out_.Line("u32 s = 0;");
  out_.Open("for (", Index(), " i = 0; i < count; i++)");
  if (async_) out_.Line("fetch(i + ", schedule_.stages - 1, ");");
  WriteAhead();
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
  WriteNextStage();
  out_.Close();
}

void RowColumn::WriteNextStage() {
  if (!bulk_ && !async_) return;
  out_.Open("if (++s == ", schedule_.stages, ")");
  out_.Line("s = 0;");
  if (bulk_) out_.Line("phase ^= 1;");
  out_.Close();
}

void RowColumn::WriteElementLoads() {
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
  WriteRingLoads("s");
  if (bulk_ && warps_ == 1) {
    out_.Line("fd_sync_warp();  // every lane has its part of the row");
    WriteRefill();
  }
}

void RowColumn::WriteRingLoads(absl::string_view stage) {
  for (const RowColumnLayout::Part& part : layout_.ring) rows_.DeclareLoad(part.instr);
  out_.Unrolled("k", schedule_.unroll);
  rows_.OpenVector(masked_);
  for (const RowColumnLayout::Part& part : layout_.ring) {
    const Access& access = region_.instrs[part.instr].access;
    rows_.WriteLoaded(
        part.instr, absl::StrCat("fd_load<", MemoryType(region_.tensors[access.tensor].dtype), ", ",
                                 schedule_.vector, ">(", Staged(part, stage, Place(), false), ")"));
  }
  rows_.CloseVector();
  out_.Close();
}

void RowColumn::WriteRefill() {
  out_.Line("if (t == 0 && i + ", schedule_.stages, " < count) refill(i + ", schedule_.stages,
            ", s);");
}

void RowColumn::WritePass(size_t p) {
  if (IsEmpty(stages_.passes[p])) return;
  const std::vector<ReductionGroup> groups = rows_.Groups(p);
  WriteColumnsOfPass(p, groups);
  if (warps_ > 1 && !groups.empty()) WriteMeeting(groups);
  for (const ReductionGroup& group : groups) rows_.NameResults(group);
}

void RowColumn::WriteColumnsOfPass(size_t p, const std::vector<ReductionGroup>& groups) {
  rows_.DeclareChains(p);
  out_.Unrolled("k", schedule_.unroll);
  rows_.OpenVector(masked_);
  for (uint32_t i : stages_.passes[p].loads) WriteColumnLoad(i);
  rows_.WriteElements(p, false);
  rows_.CloseVector();
  out_.Close();
  for (const ReductionGroup& group : groups) {
    rows_.FoldChains(group);
    out_.Line("fd_warp_reduce<", Reducer(group.op), ", 32>(z", group.number, ");");
  }
}

void RowColumn::WriteColumnLoad(uint32_t i) {
  const auto is = [i](const RowColumnLayout::Part& part) { return part.instr == i; };
  const ir::DType dtype = region_.tensors[region_.instrs[i].access.tensor].dtype;
  if (std::any_of(layout_.shared_columns.begin(), layout_.shared_columns.end(), is)) {
    out_.Line("const fd_vec<", MemoryType(dtype), ", ", schedule_.vector, "> m", i, " = fd_load<",
              MemoryType(dtype), ", ", schedule_.vector, ">(u", i, " + ", Place(), ");");
    return;
  }
  const bool in_registers =
      std::find(layout_.columns.begin(), layout_.columns.end(), i) != layout_.columns.end();
  if (in_registers && !schedule_.unpacked && ir::ByteSize(dtype) < 4 && rows_.IsVector(i) &&
      schedule_.vector * ir::ByteSize(dtype) % 4 == 0)
    out_.Line("fd_opaque(m", i, "[k]);");
}

void RowColumn::WriteMeeting(const std::vector<ReductionGroup>& groups) {
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

Emission EmitRowColumn(const Region& region, const KernelSchedule& schedule) {
  return RowColumn(region, schedule).Emit();
}

}  // namespace fusiond::codegen
