#include "compiler/codegen/column.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/codegen/expression.h"
#include "compiler/codegen/kernel_text.h"
#include "compiler/codegen/names.h"
#include "compiler/schedule/column.h"
#include "compiler/schedule/finalise.h"

namespace fusiond::codegen {
namespace {

using executable::Formula;
using executable::FormulaTerm;
using schedule::Access;
using schedule::Instr;
using schedule::KernelSchedule;
using schedule::Region;
using schedule::Store;
using schedule::Strides;

constexpr absl::string_view kFiles[] = {"math.cuh",   "part.cuh", "pdl.cuh",
                                        "reduce.cuh", "smem.cuh", "sync.cuh"};

class Column {
 public:
  // Tensors from `first_scratch` on are scratch buffers.
  Column(const Region& region, const KernelSchedule& schedule, absl::string_view entry,
         uint32_t first_scratch)
      : region_(region),
        schedule_(schedule),
        first_scratch_(first_scratch),
        inner_(static_cast<int>(region.dims.size()) - 1),
        tile_(schedule.threads_per_row * schedule.vector),
        columns_(region.Columns()),
        reductions_(schedule::LateReductions(region)),
        in_loop_(schedule::ComputedBefore(region)),
        alignment_(NaturalAlignment(region)),
        text_(region, entry, schedule.threads),
        out_(text_.body()) {
    while (first_column_ < region.dims.size() && !region.dims[first_column_].column)
      ++first_column_;
  }

  // `rows` as the launch knows them. `waits`: another kernel writes what this one reads.
  Kernel Write(const Formula& rows, bool waits) {
    TakeParameters(rows);
    if (waits) out_.Line("fd_wait_primary();");
    WriteKernelValues();
    WriteColumns();
    WriteRowLoop();
    WriteMeeting();
    Kernel kernel = std::move(text_).Finish(kFiles);
    kernel.grid[0] = Formula::Constant((columns_ + tile_ - 1) / tile_);
    kernel.grid[1] = Formula::Constant(schedule_.splits);
    kernel.smem_bytes = schedule_.smem_bytes;
    kernel.waits_for_primary = waits;
    for (Parameter& parameter : kernel.parameters) {
      if (parameter.kind != Parameter::Kind::kTensor || parameter.index < first_scratch_) continue;
      parameter.kind = Parameter::Kind::kScratch;
      parameter.index -= first_scratch_;
    }
    return kernel;
  }

  // By region tensor: what the text relies on.
  const std::vector<int64_t>& alignment() const { return alignment_; }

 private:
  enum class Scope { kKernel, kRow, kVector, kElement };

  bool Split() const { return schedule_.splits > 1; }
  const char* Index() const { return schedule_.wide_index ? "u64" : "u32"; }
  int RowThreads() const { return schedule_.threads / schedule_.threads_per_row; }

  bool VariesByRow(const Instr& instr) const {
    return (instr.dims & ((1u << first_column_) - 1)) != 0;
  }

  Scope ScopeOf(const Instr& instr) const {
    if (instr.dims == 0) return Scope::kKernel;
    if ((instr.dims >> first_column_) == 0) return Scope::kRow;
    return (instr.dims >> inner_) & 1 ? Scope::kElement : Scope::kVector;
  }

  std::string Value(uint32_t i) const {
    const Instr& instr = region_.instrs[i];
    if (instr.kind == Instr::Kind::kConstant) return Literal(instr.number, instr.dtype);
    if (instr.kind == Instr::Kind::kScalar) return absl::StrCat("s", instr.index);
    if (!by_column_ && instr.kind == Instr::Kind::kLoad && ScopeOf(instr) == Scope::kElement)
      return absl::StrCat("x", i, "[e]");
    return absl::StrCat("v", i);
  }

  void WriteCompute(uint32_t i) {
    const Instr& instr = region_.instrs[i];
    const auto coordinate = [&](size_t d) {
      const bool runs = static_cast<int>(d) == inner_ && d >= first_column_ && !by_column_;
      return absl::StrCat(runs ? "(" : "", "c", d, runs ? " + e)" : "");
    };
    out_.Line("const ", RegisterType(instr.dtype), " v", i, " = ",
              ComputedText(
                  region_, instr, [&](uint32_t operand) { return Value(operand); }, coordinate,
                  schedule_.wide_index),
              ";");
  }

  void TakeParameters(const Formula& rows) {
    if (Split()) {
      text_.TakeTensorsBefore(region_);
    } else {
      text_.TakeTensors(region_);
    }
    text_.TakeScalars(region_);
    for (uint32_t r = 0; Split() && r < reductions_.size(); ++r)
      text_.TakeScratch(r, MemoryType(region_.instrs[reductions_[r]].dtype), true);
    text_.TakeIndex("n", rows, schedule_.wide_index);
    if (!Split()) return;
    text_.TakeIndex(
        "h",
        Formula::Combine(FormulaTerm::Kind::kCeilDiv, rows, Formula::Constant(schedule_.splits)),
        schedule_.wide_index);
  }

  void WriteKernelValues() {
    for (uint32_t i = 0; i < region_.instrs.size(); ++i) {
      const Instr& instr = region_.instrs[i];
      if (instr.dims != 0 || instr.late || (Split() && !in_loop_[i])) continue;
      if (schedule::IsComputed(instr)) WriteCompute(i);
      if (instr.kind == Instr::Kind::kLoad) WriteOneLoad(i, "0");
    }
  }

  void WriteOneLoad(uint32_t i, const std::string& offset) {
    const Instr& instr = region_.instrs[i];
    out_.Line("const ", RegisterType(instr.dtype), " v", i, " = fd_cast<",
              RegisterType(instr.dtype), ">(", LoadText(region_, instr.access, {}, 1, offset),
              "[0]);");
  }

  // Coordinates c<d> of dims begin … end - 1 of what `index` counts, those of them in `used`.
  void WriteCoordinates(absl::string_view index, size_t begin, size_t end, uint32_t used) {
    used &= ((1u << end) - 1) & ~((1u << begin) - 1);
    std::string rest(index);
    for (size_t d = end; d-- > begin && (used & ((2u << d) - 1)) != 0;) {
      if (d == begin) {
        out_.Line("const ", Index(), " c", d, " = ", rest, ";");
        break;
      }
      const int64_t extent = region_.dims[d].extent;
      if ((used >> d) & 1) out_.Line("const ", Index(), " c", d, " = ", rest, " % ", extent, ";");
      if ((used & ((1u << d) - 1)) == 0) break;
      out_.Line("const ", Index(), " r", d, " = ", rest, " / ", extent, ";");
      rest = absl::StrCat("r", d);
    }
  }

  static uint32_t Varies(const Access& access) {
    uint32_t used = 0;
    for (size_t d = 0; d < access.strides.size(); ++d)
      if (access.strides[d] != 0) used |= 1u << d;
    return used;
  }

  uint32_t LoadedDims() const {
    uint32_t used = 0;
    for (const Instr& instr : region_.instrs)
      if (instr.kind == Instr::Kind::kLoad) used |= Varies(instr.access);
    return used;
  }

  uint32_t RowMask() const { return (1u << first_column_) - 1; }

  // Where the thread stands, and what is the same for all its rows.
  void WriteColumns() {
    out_.Line("const u32 t = fd_thread() % ", schedule_.threads_per_row, ", y = fd_thread() / ",
              schedule_.threads_per_row, ";");
    out_.Line("const ", Index(), " j = ((", Index(), ")fd_cta() * ", schedule_.threads_per_row,
              " + t) * ", schedule_.vector, ";");
    if (Split()) {
      out_.Line("const ", Index(), " begin = fd_cta_y() * h;");
      out_.Line("const ", Index(), " end = begin + h < n ? begin + h : n;");
    }
    for (uint32_t i : reductions_) {
      const Instr& instr = region_.instrs[i];
      const char* type = RegisterType(instr.dtype);
      out_.Line("fd_vec<", type, ", ", schedule_.vector, "> a", i, ";");
      out_.Unrolled("e", schedule_.vector);
      out_.Line("a", i, "[e] = ", Reducer(instr.op), "::identity<", type, ">();");
      out_.Close();
    }
  }

  VectorAccess Plan(const Access& access) {
    const VectorAccess plan = PlanAccess(region_, access, inner_, schedule_.vector);
    alignment_[access.tensor] = std::max(alignment_[access.tensor], plan.alignment);
    return plan;
  }

  std::string Offset(const Access& access) const {
    return OffsetText(
        access.strides, [](size_t d) { return absl::StrCat("c", d); }, schedule_.wide_index);
  }

  void DeclareLoad(uint32_t i, absl::string_view count) {
    const Access& access = region_.instrs[i].access;
    const bool one = access.strides[inner_] == 0;
    out_.Line("fd_vec<", MemoryType(region_.tensors[access.tensor].dtype), ", ",
              one ? 1 : schedule_.vector, "> m", i, count, ";");
  }

  bool LoadedInLoop(const Instr& instr) const {
    return instr.kind == Instr::Kind::kLoad && instr.dims != 0 && UsedInLoop(instr) &&
           VariesByRow(instr);
  }
  bool LoadedBefore(const Instr& instr) const {
    return instr.kind == Instr::Kind::kLoad && instr.dims != 0 && UsedInLoop(instr) &&
           !VariesByRow(instr);
  }
  bool UsedInLoop(const Instr& instr) const {
    return in_loop_[static_cast<size_t>(&instr - region_.instrs.data())];
  }

  void WriteRowLoop() {
    const bool masked = columns_ % tile_ != 0;
    if (masked) {
      out_.Open("if (j < ", columns_, ")");
    } else {
      out_.OpenBlock();
    }
    WriteCoordinates("j", first_column_, region_.dims.size(), ~0u);
    for (uint32_t i = 0; i < region_.instrs.size(); ++i) {
      const Instr& instr = region_.instrs[i];
      if (!LoadedBefore(instr)) continue;
      DeclareLoad(i, "");
      out_.Line("m", i, " = ",
                LoadText(region_, instr.access, Plan(instr.access), schedule_.vector,
                         Offset(instr.access)),
                ";");
      WriteConversion(i, absl::StrCat("m", i));
    }
    const int step = RowThreads() * schedule_.unroll;
    out_.Open("for (", Index(), " first = ", Split() ? "begin + y" : "y", "; first < ", End(),
              "; first += ", step, ")");
    WriteRowLoads();
    WriteRows();
    out_.Close();
    out_.Close();
  }

  const char* End() const { return Split() ? "end" : "n"; }

  void WriteRowLoads() {
    bool any = false;
    for (uint32_t i = 0; i < region_.instrs.size(); ++i) {
      if (!LoadedInLoop(region_.instrs[i])) continue;
      any = true;
      DeclareLoad(i, absl::StrCat("[", schedule_.unroll, "]"));
    }
    if (!any) return;
    out_.Unrolled("u", schedule_.unroll);
    out_.Line("const ", Index(), " next = first + u * ", RowThreads(), ", row = next < ", End(),
              " ? next : ", End(), " - 1;");
    WriteCoordinates("row", 0, first_column_, LoadedDims());
    for (uint32_t i = 0; i < region_.instrs.size(); ++i) {
      const Instr& instr = region_.instrs[i];
      if (!LoadedInLoop(instr)) continue;
      out_.Line("m", i, "[u] = ",
                LoadText(region_, instr.access, Plan(instr.access), schedule_.vector,
                         Offset(instr.access)),
                ";");
    }
    out_.Close();
  }

  void WriteConversion(uint32_t i, absl::string_view from) {
    const Instr& instr = region_.instrs[i];
    const char* type = RegisterType(instr.dtype);
    if (ScopeOf(instr) == Scope::kElement) {
      out_.Line("const fd_vec<", type, ", ", schedule_.vector, "> x", i, " = fd_cast<", type, ">(",
                from, ");");
    } else {
      out_.Line("const ", type, " v", i, " = fd_cast<", type, ">(", from, "[0]);");
    }
  }

  void WriteRows() {
    out_.Unrolled("u", schedule_.unroll);
    out_.Line("const ", Index(), " row = first + u * ", RowThreads(), ";");
    out_.Open("if (row < ", End(), ")");
    if (schedule::TakesCoordinates(region_)) WriteCoordinates("row", 0, first_column_, ~0u);
    for (uint32_t i = 0; i < region_.instrs.size(); ++i) {
      const Instr& instr = region_.instrs[i];
      if (!UsedInLoop(instr) || instr.dims == 0) continue;
      if (LoadedInLoop(instr)) WriteConversion(i, absl::StrCat("m", i, "[u]"));
      if (schedule::IsComputed(instr) && ScopeOf(instr) != Scope::kElement) WriteCompute(i);
    }
    WriteElements();
    WriteStores();
    out_.Close();
    out_.Close();
  }

  bool StoredByElement(const Store& store) const {
    return !region_.instrs[store.value].late && store.access.strides[inner_] != 0;
  }

  void WriteElements() {
    for (size_t k = 0; k < region_.stores.size(); ++k) {
      if (!StoredByElement(region_.stores[k])) continue;
      out_.Line("fd_vec<", RegisterType(region_.instrs[region_.stores[k].value].dtype), ", ",
                schedule_.vector, "> o", k, ";");
    }
    out_.Unrolled("e", schedule_.vector);
    for (uint32_t i = 0; i < region_.instrs.size(); ++i) {
      const Instr& instr = region_.instrs[i];
      if (UsedInLoop(instr) && schedule::IsComputed(instr) && instr.dims != 0 &&
          ScopeOf(instr) == Scope::kElement)
        WriteCompute(i);
    }
    for (size_t k = 0; k < region_.stores.size(); ++k) {
      if (StoredByElement(region_.stores[k]))
        out_.Line("o", k, "[e] = ", Value(region_.stores[k].value), ";");
    }
    for (uint32_t i : reductions_) {
      const Instr& instr = region_.instrs[i];
      out_.Line("a", i, "[e] = ", Reducer(instr.op), "::combine(a", i, "[e], ",
                Value(instr.operands[0]), ");");
    }
    out_.Close();
  }

  // A tensor that lacks some dims is written where their coordinates are 0.
  std::string Owner(const Access& access) const {
    std::vector<std::string> conditions;
    for (size_t d = 0; d < access.strides.size(); ++d)
      if (access.strides[d] == 0) conditions.push_back(absl::StrCat("c", d, " == 0"));
    return absl::StrJoin(conditions, " && ");
  }

  void WriteStores() {
    bool any = false;
    for (const Store& store : region_.stores) any |= !region_.instrs[store.value].late;
    if (!any) return;
    if (!schedule::TakesCoordinates(region_)) WriteCoordinates("row", 0, first_column_, ~0u);
    for (size_t k = 0; k < region_.stores.size(); ++k) {
      const Store& store = region_.stores[k];
      if (region_.instrs[store.value].late) continue;
      const VectorAccess plan = Plan(store.access);
      const std::string owner = Owner(store.access);
      const std::string value = StoredByElement(store) ? absl::StrCat("o", k) : Value(store.value);
      out_.Line(
          owner.empty() ? "" : absl::StrCat("if (", owner, ") "),
          StoreText(region_, store.access, plan, schedule_.vector, Offset(store.access), value));
    }
  }

  // The threads' sums meet in shared memory; one thread a column combines them.
  void WriteMeeting() {
    for (size_t r = 0; r < reductions_.size(); ++r) {
      const uint32_t i = reductions_[r];
      const char* type = RegisterType(region_.instrs[i].dtype);
      out_.Line(type, "* const w", i, " = fd_smem<", type, ">(",
                schedule::ColumnSharedOffset(region_, schedule_, r), ", ",
                schedule_.threads * schedule_.vector, ");");
      out_.Line("fd_store(w", i, " + fd_thread() * ", schedule_.vector, ", a", i, ");");
    }
    out_.Line("fd_sync();");
    out_.Open("for (u32 k = fd_thread(); k < ", tile_, "; k += ", schedule_.threads, ")");
    out_.Line("const ", Index(), " j = (", Index(), ")fd_cta() * ", tile_, " + k;");
    if (columns_ % tile_ != 0) out_.Line("if (j >= ", columns_, ") break;");
    for (uint32_t i : reductions_) {
      const Instr& instr = region_.instrs[i];
      const char* type = RegisterType(instr.dtype);
      out_.Line(type, " v", i, " = w", i, "[k];");
      if (RowThreads() == 1) continue;
      out_.Line("#pragma unroll 16");
      out_.Line("for (u32 i = 1; i < ", RowThreads(), "; i++) v", i, " = ", Reducer(instr.op),
                "::combine(v", i, ", w", i, "[i * ", tile_, " + k]);");
    }
    if (Split()) {
      WritePartials();
    } else {
      WriteEpilogue();
    }
    out_.Close();
    if (Split()) out_.Line("fd_launch_dependents();");
  }

  void WritePartials() {
    for (size_t r = 0; r < reductions_.size(); ++r) {
      const uint32_t i = reductions_[r];
      const ir::DType dtype = region_.instrs[i].dtype;
      out_.Line("q", r, "[fd_cta_y() * (u64)", columns_, " + j] = fd_cast<", MemoryType(dtype),
                ">(v", i, ");");
    }
  }

  void WriteEpilogue() {
    by_column_ = true;
    std::vector<bool> needed(region_.instrs.size(), false);
    uint32_t dims = 0;
    for (const Store& store : region_.stores) {
      if (!region_.instrs[store.value].late) continue;
      needed[store.value] = true;
      dims = ~0u;
    }
    for (size_t i = region_.instrs.size(); i-- > 0;) {
      const Instr& instr = region_.instrs[i];
      if (!needed[i] || instr.kind == Instr::Kind::kReduce) continue;
      for (uint32_t operand : instr.operands) needed[operand] = true;
    }
    WriteCoordinates("j", first_column_, region_.dims.size(), dims);
    for (uint32_t i = 0; i < region_.instrs.size(); ++i) {
      const Instr& instr = region_.instrs[i];
      if (!needed[i] || (instr.dims == 0 && !instr.late)) continue;
      if (instr.kind == Instr::Kind::kLoad) WriteOneLoad(i, Offset(instr.access));
      if (schedule::IsComputed(instr)) WriteCompute(i);
    }
    for (const Store& store : region_.stores) {
      if (!region_.instrs[store.value].late) continue;
      std::vector<std::string> owners;
      for (size_t d = first_column_; d < region_.dims.size(); ++d)
        if (store.access.strides[d] == 0) owners.push_back(absl::StrCat("c", d, " == 0"));
      out_.Line(owners.empty() ? "" : absl::StrCat("if (", absl::StrJoin(owners, " && "), ") "),
                StoreText(region_, store.access, {}, 1, Offset(store.access), Value(store.value)));
    }
  }

  const Region& region_;
  const KernelSchedule& schedule_;
  const uint32_t first_scratch_;
  const int inner_;
  const int64_t tile_, columns_;
  const std::vector<uint32_t> reductions_;
  const std::vector<bool> in_loop_;  // by instr: computed row by row
  size_t first_column_ = 0;          // dims before it are row dims
  bool by_column_ = false;           // in the epilogue: one column a thread
  std::vector<int64_t> alignment_;
  KernelText text_;
  TextBuilder& out_;
};

}  // namespace

Emission EmitColumn(const Region& region, const KernelSchedule& schedule) {
  Emission emission;
  Column column(region, schedule, "column", static_cast<uint32_t>(region.tensors.size()));
  emission.kernels.push_back(column.Write(Formula::Constant(region.Rows()), /*waits=*/false));
  emission.alignment = column.alignment();
  if (schedule.splits > 1)
    AppendFinalise(region, Formula::Constant(schedule.splits), schedule.splits, emission);
  return emission;
}

void AppendFinalise(const Region& region, const Formula& parts, int64_t expected_parts,
                    Emission& emission) {
  const Region finalise = schedule::FinaliseRegion(region, expected_parts);
  const KernelSchedule schedule = schedule::FinaliseSchedule(finalise);
  const auto first_scratch = static_cast<uint32_t>(region.tensors.size());
  for (size_t t = first_scratch; t < finalise.tensors.size(); ++t) {
    const schedule::Tensor& buffer = finalise.tensors[t];
    emission.scratch_bytes.push_back(
        Formula::Combine(FormulaTerm::Kind::kMultiply, parts,
                         Formula::Constant(buffer.strides[0] * ir::ByteSize(buffer.dtype))));
  }
  Column column(finalise, schedule, "finalise", first_scratch);
  emission.kernels.push_back(column.Write(parts, /*waits=*/true));
  for (size_t t = 0; t < first_scratch; ++t)
    emission.alignment[t] = std::max(emission.alignment[t], column.alignment()[t]);
}

}  // namespace fusiond::codegen
