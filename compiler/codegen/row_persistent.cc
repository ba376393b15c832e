#include "compiler/codegen/row_persistent.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler/codegen/kernel_text.h"
#include "compiler/codegen/names.h"
#include "compiler/codegen/row_text.h"
#include "compiler/schedule/row_persistent.h"
#include "compiler/schedule/stages.h"

namespace fusiond::codegen {
namespace {

using executable::Formula;
using schedule::Instr;
using schedule::KernelSchedule;
using schedule::Region;

constexpr absl::string_view kFiles[] = {"math.cuh", "part.cuh", "smem.cuh", "sync.cuh", "team.cuh"};
constexpr absl::string_view kClusterFiles[] = {
    "math.cuh", "part.cuh", "smem.cuh", "sync.cuh", "team.cuh", "mbarrier.cuh", "cluster_team.cuh"};

class RowPersistent {
 public:
  RowPersistent(const Region& region, const KernelSchedule& schedule)
      : region_(region),
        schedule_(schedule),
        stages_(schedule::PlanStages(region, schedule::kRowPersistentMaxAgain)),
        masked_(absl::EndsWith(schedule.variant, "_masked")),
        cluster_(std::max(schedule.cluster, 1)),
        text_(region, "row_persistent", schedule.threads),
        out_(text_.body()),
        rows_(region, schedule, stages_, absl::EndsWith(schedule.variant, "_shifted"), out_,
              emission_.alignment) {
    emission_.alignment = NaturalAlignment(region);
  }

  Emission Emit() && {
    text_.TakeTensors(region_);
    text_.TakeScalars(region_);
    text_.TakeIndex("n", Formula::Constant(region_.Rows()), schedule_.wide_index);
    rows_.WriteKernelValues();
    WriteRowNumber();
    rows_.WriteRow();
    WriteLoads();
    if (cluster_ > 1) WriteBarriers();
    for (uint32_t i : stages_.held) rows_.DeclareHeld(i);
    for (size_t p = 0; p < stages_.passes.size(); ++p) WritePass(p);
    rows_.WriteRowStores(cluster_ > 1 ? "t == 0 && rank == 0" : "t == 0");
    Kernel kernel =
        cluster_ > 1 ? std::move(text_).Finish(kClusterFiles) : std::move(text_).Finish(kFiles);
    kernel.grid[0] = Formula::Constant((region_.Rows() + schedule_.rows_per_cta - 1) /
                                       schedule_.rows_per_cta * cluster_);
    kernel.cluster = cluster_;
    kernel.smem_bytes = smem_bytes_;
    emission_.kernels.push_back(std::move(kernel));
    return std::move(emission_);
  }

 private:
  int Team() const { return schedule_.threads_per_row; }

  void WriteRowNumber() {
    const char* index = rows_.Index();
    if (cluster_ > 1) {
      out_.Line("const u32 t = fd_thread();");
      out_.Line("const ", index, " row = fd_cta() / ", cluster_, ";");
      rows_.ShareColumns(cluster_, schedule::RowPersistentColumnsOfCta(region_, schedule_));
      return;
    }
    if (schedule_.rows_per_cta == 1) {
      out_.Line("const u32 t = fd_thread();");
      out_.Line("const ", index, " row = fd_cta();");
      return;
    }
    out_.Line("const u32 t = fd_thread() % ", Team(), ";");
    const std::string row = absl::StrCat("(", index, ")fd_cta() * ", schedule_.rows_per_cta,
                                         " + fd_thread() / ", Team());
    if (Team() == 32) {
      out_.Line("const ", index, " row = ", row, ";");
      out_.Line("if (row >= n) return;");
      return;
    }
    // All lanes of a warp take part in its shuffles, with a row or without.
    out_.Line("const ", index, " mine = ", row, ";");
    out_.Line("const bool live = mine < n;");
    out_.Line("const ", index, " row = live ? mine : n - 1;");
  }

  std::vector<uint32_t> ElementLoads() const {
    std::vector<uint32_t> loads;
    for (uint32_t i = 0; i < region_.instrs.size(); ++i) {
      if (region_.instrs[i].kind == Instr::Kind::kLoad && schedule::IsElement(region_, i))
        loads.push_back(i);
    }
    return loads;
  }

  void WriteLoads() {
    const std::vector<uint32_t> loads = ElementLoads();
    for (uint32_t i : loads) rows_.DeclareLoad(i);
    if (loads.empty()) return;
    out_.Unrolled("k", schedule_.unroll);
    rows_.OpenVector(masked_);
    for (uint32_t i : loads) rows_.WriteLoad(i, false);
    rows_.CloseVector();
    out_.Close();
  }

  void WritePass(size_t p) {
    const schedule::Pass& pass = stages_.passes[p];
    rows_.WriteRowValues(p);
    if (pass.reductions.empty() && pass.stores.empty() && pass.elements.empty()) return;
    rows_.DeclareChains(p);
    out_.Unrolled("k", schedule_.unroll);
    rows_.OpenVector(masked_);
    rows_.WriteElements(p, false);
    rows_.CloseVector();
    out_.Close();
    const std::vector<ReductionGroup> groups = rows_.Groups(p);
    for (const ReductionGroup& group : groups) {
      rows_.FoldChains(group);
      out_.Line("fd_warp_reduce<", Reducer(group.op), ", ", std::min(Team(), 32), ">(z",
                group.number, ");");
    }
    if (cluster_ > 1 && !groups.empty()) {
      WriteMeetingOfCluster(groups);
    } else if (Team() > 32 && !groups.empty()) {
      WriteMeeting(groups);
    }
    for (const ReductionGroup& group : groups) rows_.NameResults(group);
  }

  void WriteMeeting(const std::vector<ReductionGroup>& groups) {
    const int warps = Team() / 32;
    rows_.PutPartials(groups, warps, smem_bytes_);
    out_.Line("fd_sync();");
    rows_.TakePartials(groups, warps);
  }

  // One for each pass that reduces, used once. The row's loads are on their way meanwhile.
  void WriteBarriers() {
    const auto passes = static_cast<int64_t>(stages_.passes.size());
    out_.Line("fd_mbarrier* const barriers = fd_smem<fd_mbarrier>(0, ", passes, ");");
    smem_bytes_ = (8 * passes + 15) / 16 * 16;
    out_.Open("if (t == 0)");
    out_.Line("for (u32 p = 0; p < ", passes, "; p++) fd_mbarrier_init(barriers + p, 1);");
    out_.Line("fd_mbarrier_init_fence();");
    out_.Close();
    out_.Line("fd_cluster_sync();");
  }

  void WriteMeetingOfCluster(const std::vector<ReductionGroup>& groups) {
    ClusterMeeting meeting;
    meeting.ctas = cluster_;
    meeting.warps = Team() / 32;
    meeting.barrier = absl::StrCat("barriers + ", meetings_++);
    const int64_t parts = smem_bytes_;
    rows_.SendPartials(groups, meeting, smem_bytes_);
    rows_.ReceivePartials(groups, meeting, parts, /*named=*/true);
  }

  const Region& region_;
  const KernelSchedule& schedule_;
  const schedule::Stages stages_;
  const bool masked_;
  const int cluster_;
  KernelText text_;
  TextBuilder& out_;
  Emission emission_;
  RowText rows_;
  int64_t smem_bytes_ = 0;
  int meetings_ = 0;
};

}  // namespace

Emission EmitRowPersistent(const Region& region, const KernelSchedule& schedule) {
  return RowPersistent(region, schedule).Emit();
}

}  // namespace fusiond::codegen
