#include "compiler/codegen/row_stream.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler/codegen/expression.h"
#include "compiler/codegen/kernel_text.h"
#include "compiler/codegen/names.h"
#include "compiler/codegen/row_text.h"
#include "compiler/schedule/online.h"
#include "compiler/schedule/row_stream.h"
#include "compiler/schedule/stages.h"

namespace fusiond::codegen {
namespace {

using executable::Formula;
using schedule::Instr;
using schedule::KernelSchedule;
using schedule::Pass;
using schedule::Region;
using schedule::RowStreamStep;
using schedule::Stages;

constexpr int kFinishThreads = 32;

// One kernel: all passes of a row, or one of them.
class RowStream {
 public:
  RowStream(const Region& region, const KernelSchedule& schedule, const Stages& stages, int threads,
            std::vector<int64_t>& alignment)
      : region_(region),
        schedule_(schedule),
        stages_(stages),
        shifted_(absl::EndsWith(schedule.variant, "_shifted")),
        masked_(absl::EndsWith(schedule.variant, "_masked")),
        text_(region, "row_stream", threads),
        out_(text_.body()),
        rows_(region, schedule, stages, shifted_, out_, alignment) {
    rows_.WalkFrom("first");
  }

  // A row a CTA.
  Kernel WriteWhole() && {
    text_.TakeTensors(region_);
    text_.TakeScalars(region_);
    rows_.WriteKernelValues();
    out_.Line("const u32 t = fd_thread();");
    out_.Line("const ", rows_.Index(), " row = fd_cta();");
    rows_.WriteRow();
    for (size_t p = 0; p < stages_.passes.size(); ++p) {
      rows_.WriteRowValues(p);
      const std::vector<ReductionGroup> groups = WriteWalk(p);
      for (const ReductionGroup& group : groups) rows_.NameResults(group);
      for (uint32_t i : Online(p))
        out_.Line("const ", RegisterType(region_.instrs[i].dtype), " v", i, " = fd_online_result(a",
                  i, ");");
    }
    rows_.WriteRowStores();
    Kernel kernel = std::move(text_).Finish(Files());
    kernel.grid[0] = Formula::Constant(region_.Rows());
    kernel.smem_bytes = smem_bytes_;
    return kernel;
  }

  // `scratch`: the buffer of each reduction's partial results.
  Kernel WriteStep(const RowStreamStep& step, const std::map<uint32_t, uint32_t>& scratch,
                   bool first, bool last) && {
    const Pass& pass = stages_.passes[step.pass];
    TakeTensors(step);
    text_.TakeScalars(region_);
    for (uint32_t i : step.incoming) TakeScratch(i, scratch, false);
    for (uint32_t i : pass.reductions) TakeScratch(i, scratch, true);
    if (!first) out_.Line("fd_wait_primary();");
    rows_.Limit(step.needed);
    rows_.WriteKernelValues();
    out_.Line("const u32 t = fd_thread();");
    out_.Line("const ", rows_.Index(), " row = fd_cta_y();");
    rows_.WriteRow();
    for (uint32_t i : step.incoming) WriteIncoming(i, scratch.at(i));
    rows_.WriteRowValues(step.pass);
    if (step.walks) {
      const std::vector<ReductionGroup> groups = WriteWalk(step.pass);
      if (!pass.reductions.empty()) WritePartials(step.pass, groups, scratch);
    }
    if (!stages_.row_stores.empty()) {
      out_.Open("if (fd_cta() == 0)");
      rows_.WriteRowStores();
      out_.Close();
    }
    if (!last) out_.Line("fd_launch_dependents();");
    Kernel kernel = std::move(text_).Finish(Files());
    kernel.grid[0] = Formula::Constant(step.walks ? schedule_.splits : 1);
    kernel.grid[1] = Formula::Constant(region_.Rows());
    kernel.smem_bytes = smem_bytes_;
    kernel.waits_for_primary = !first;
    return kernel;
  }

 private:
  std::vector<absl::string_view> Files() const {
    std::vector<absl::string_view> files = {"math.cuh", "part.cuh", "smem.cuh", "sync.cuh",
                                            "team.cuh"};
    if (schedule_.splits > 0) files.insert(files.end(), {"pdl.cuh", "partials.cuh"});
    if (std::any_of(region_.instrs.begin(), region_.instrs.end(), schedule::IsOnline))
      files.push_back("online.cuh");
    return files;
  }

  // Online reductions of pass `p`.
  std::vector<uint32_t> Online(size_t p) const {
    std::vector<uint32_t> online;
    for (uint32_t i : stages_.passes[p].reductions)
      if (schedule::IsOnline(region_.instrs[i])) online.push_back(i);
    return online;
  }

  void TakeTensors(const RowStreamStep& step) {
    std::vector<bool> named(region_.tensors.size(), false);
    for (size_t i = 0; i < region_.instrs.size(); ++i) {
      if (step.needed[i] && schedule::ReadsMemory(region_.instrs[i]))
        named[region_.instrs[i].access.tensor] = true;
    }
    for (size_t s : stages_.passes[step.pass].stores) named[region_.stores[s].access.tensor] = true;
    for (size_t s : stages_.row_stores) named[region_.stores[s].access.tensor] = true;
    for (uint32_t t = 0; t < named.size(); ++t)
      if (named[t]) text_.TakeTensor(region_, t);
  }

  void TakeScratch(uint32_t i, const std::map<uint32_t, uint32_t>& scratch, bool written) {
    text_.TakeScratch(scratch.at(i), MemoryType(region_.instrs[i].dtype), written);
  }

  void WriteIncoming(uint32_t i, uint32_t buffer) {
    const Instr& instr = region_.instrs[i];
    const char* type = RegisterType(instr.dtype);
    if (schedule::IsOnline(instr)) {
      out_.Line("const ", type, " v", i, " = fd_online_result(fd_combine_online<",
                OnlineState(instr.op), ", ", schedule_.splits, ">(q", buffer, " + row * ",
                schedule::PartialElements(instr) * schedule_.splits, "));");
      return;
    }
    out_.Line("const ", type, " v", i, " = fd_combine_partials<", Reducer(instr.op), ", ",
              schedule_.splits, ", ", type, ">(q", buffer, " + row * ", schedule_.splits, ");");
  }

  // The loop over the steps of a row that this CTA takes: `first` is the column where one begins.
  // `back`: the last one first, since that is what L2 still holds of the pass before.
  void OpenSteps(bool back) {
    const int64_t step = int64_t{schedule_.threads} * schedule_.vector * schedule_.unroll;
    const int64_t span = region_.Columns() + (shifted_ ? schedule_.vector - 1 : 0);
    const int64_t steps = (span + step - 1) / step;
    const int splits = schedule_.splits;
    const char* index = rows_.Index();
    if (!back) {
      out_.Open("for (", index, " first = ", splits == 0 ? "0" : absl::StrCat(step, " * fd_cta()"),
                "; first < ", span, "; first += ", std::max(1, splits) * step, ")");
    } else if (splits == 0) {
      out_.Open("for (", index, " left = ", steps, "; left-- > 0;)");
      out_.Line("const ", index, " first = left * ", step, ";");
    } else {
      out_.Open("for (", index, " left = (", steps + splits - 1, " - fd_cta()) / ", splits,
                "; left-- > 0;)");
      out_.Line("const ", index, " first = (left * ", splits, " + fd_cta()) * ", step, ";");
    }
  }

  // Pass `p` of the row; then z<g>.
  std::vector<ReductionGroup> WriteWalk(size_t p) {
    const Pass& pass = stages_.passes[p];
    if (pass.reductions.empty() && pass.stores.empty()) return {};
    rows_.SetChains(schedule::RowStreamChains(region_, pass, schedule_.vector));
    rows_.DeclareChains(p);
    OpenSteps(p % 2 == 1);
    for (uint32_t i : pass.loads) rows_.DeclareLoad(i);
    if (!pass.loads.empty()) {
      out_.Unrolled("k", schedule_.unroll);
      rows_.OpenVector(masked_);
      for (uint32_t i : pass.loads) rows_.WriteLoad(i, false);
      rows_.CloseVector();
      out_.Close();
    }
    out_.Unrolled("k", schedule_.unroll);
    rows_.OpenVector(masked_);
    rows_.WriteElements(p, false);
    rows_.CloseVector();
    out_.Close();
    out_.Close();
    const std::vector<ReductionGroup> groups = rows_.Groups(p);
    for (const ReductionGroup& group : groups) {
      rows_.FoldChains(group);
      out_.Line("fd_warp_reduce<", Reducer(group.op), ", 32>(z", group.number, ");");
    }
    if (!pass.reductions.empty()) WriteMeeting(groups, Online(p));
    return groups;
  }

  void WriteMeeting(const std::vector<ReductionGroup>& groups,
                    const std::vector<uint32_t>& online) {
    const int warps = schedule_.threads / 32;
    for (uint32_t i : online) {
      const ir::DType dtype = region_.instrs[i].dtype;
      const std::string type =
          absl::StrCat(OnlineState(region_.instrs[i].op), "<", RegisterType(dtype), ">");
      out_.Line(type, "* const u", i, " = fd_smem<", type, ">(", smem_bytes_, ", ", warps, ");");
      out_.Line("fd_put_online(a", i, ", u", i, ");");
      smem_bytes_ +=
          (schedule::PartialElements(region_.instrs[i]) * warps * ir::ByteSize(dtype) + 15) / 16 *
          16;
    }
    rows_.PutPartials(groups, warps, smem_bytes_);
    out_.Line("fd_sync();");
    for (uint32_t i : online) out_.Line("a", i, " = fd_take_online<", warps, ">(u", i, ");");
    rows_.TakePartials(groups, warps);
  }

  void WritePartials(size_t p, const std::vector<ReductionGroup>& groups,
                     const std::map<uint32_t, uint32_t>& scratch) {
    out_.Open("if (t == 0)");
    for (uint32_t i : Online(p)) {
      out_.Line("fd_store_online(q", scratch.at(i), " + ",
                schedule::PartialElements(region_.instrs[i]), " * (row * ", schedule_.splits,
                " + fd_cta()), a", i, ");");
    }
    for (const ReductionGroup& group : groups) {
      for (size_t r = 0; r < group.reductions.size(); ++r) {
        out_.Line("q", scratch.at(group.reductions[r]), "[row * ", schedule_.splits,
                  " + fd_cta()] = fd_cast<", MemoryType(group.dtype), ">(z", group.number, "[", r,
                  "]);");
      }
    }
    out_.Close();
  }

  const Region& region_;
  const KernelSchedule& schedule_;
  const Stages& stages_;
  const bool shifted_, masked_;
  KernelText text_;
  TextBuilder& out_;
  RowText rows_;
  int64_t smem_bytes_ = 0;
};

}  // namespace

Emission EmitRowStream(const Region& given, const KernelSchedule& schedule) {
  const Region region = schedule::WithOnlineReductions(given);
  Emission emission;
  emission.alignment = NaturalAlignment(region);
  if (schedule.splits == 0) {
    const Stages stages = schedule::PlanStages(region, schedule::kReadAgain);
    emission.kernels.push_back(
        RowStream(region, schedule, stages, schedule.threads, emission.alignment).WriteWhole());
    return emission;
  }
  const std::vector<RowStreamStep> steps = schedule::SplitRowStream(region);
  std::map<uint32_t, uint32_t> scratch;
  for (size_t s = 0; s < steps.size(); ++s) {
    for (uint32_t i : steps[s].stages.passes[steps[s].pass].reductions) {
      scratch.emplace(i, static_cast<uint32_t>(emission.scratch_bytes.size()));
      emission.scratch_bytes.push_back(Formula::Constant(
          region.Rows() * schedule.splits * schedule::PartialElements(region.instrs[i]) *
          ir::ByteSize(region.instrs[i].dtype)));
    }
    const int threads = steps[s].walks ? schedule.threads : kFinishThreads;
    emission.kernels.push_back(
        RowStream(region, schedule, steps[s].stages, threads, emission.alignment)
            .WriteStep(steps[s], scratch, s == 0, s + 1 == steps.size()));
  }
  return emission;
}

}  // namespace fusiond::codegen
