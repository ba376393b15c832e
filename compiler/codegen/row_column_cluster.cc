// Rows that a cluster of CTAs shares.
#include "absl/strings/str_cat.h"
#include "compiler/codegen/row_column_internal.h"
#include "runtime/base/check.h"

namespace fusiond::codegen {

void RowColumn::WriteRowsOfCluster() {
  const std::vector<ReductionGroup> first = rows_.Groups(0);
  const int64_t first_slots = slots_;
  out_.Line("u32 s = 0, phase = 0;");
  out_.Open("for (", Index(), " i = 0; i <= count; i++)");
  out_.Open("if (i < count)");
  WriteAhead();
  out_.Line("const ", Index(), " row = first + i * step;");
  rows_.WriteRow();
  rows_.WriteRowValues(0, "(u32)(i % 32)");
  out_.Line("fd_mbarrier_wait(full + s, phase);");
  WriteRingLoads("s");
  WriteColumnsOfPass(0, first);
  rows_.SendPartials(first, MeetingOf(0, "i"), slots_);
  out_.Close();
  out_.Open("if (i > 0)");
  WriteRestOfRow(first, first_slots);
  FUSIOND_CHECK(slots_ <= layout_.arena);
  out_.Close();
  WriteNextStage();
  out_.Close();
}

void RowColumn::WriteRestOfRow(const std::vector<ReductionGroup>& first, int64_t first_slots) {
  const int stages = schedule_.stages;
  out_.Line("const ", Index(), " row = first + (i - 1) * step;");
  rows_.WriteRow();
  out_.Line("const u32 before = (s + ", stages - 1, ") % ", stages, ";");
  rows_.ReceivePartials(first, MeetingOf(0, "(i - 1)"), first_slots, /*named=*/false);
  WriteRefillOfCluster();
  rows_.WriteRowValuesBefore(0);
  for (const ReductionGroup& group : first) rows_.NameResults(group);
  WriteRingLoads("before");
  for (size_t p = 1; p < stages_.passes.size(); ++p) {
    rows_.WriteRowValuesBefore(p);
    if (IsEmpty(stages_.passes[p])) continue;
    const std::vector<ReductionGroup> groups = rows_.Groups(p);
    WriteColumnsOfPass(p, groups);
    if (!groups.empty()) {
      const ClusterMeeting meeting = MeetingOf(p, "(i - 1)");
      rows_.SendPartials(groups, meeting, slots_);
      rows_.ReceivePartials(groups, meeting, slots_, /*named=*/true);
    }
    for (const ReductionGroup& group : groups) rows_.NameResults(group);
  }
  rows_.WriteRowStores("t == 0 && rank == 0");
  out_.Line("fd_sync_warp();");
  out_.Line("if (fd_lane() == 0) fd_mbarrier_arrive(empty + before);");
}

// Each warp has said of row i - 3 that it is read: a row's reductions order what the senders sent,
// not what they had read before. Nobody is waited for, since all have sent row i - 1.
void RowColumn::WriteRefillOfCluster() {
  constexpr int kInUse = schedule::kClusterStagesInUse;
  const int stages = schedule_.stages;
  out_.Open("if (fd_warp() == 0 && i >= ", kInUse, " && i + ", stages - kInUse, " < count)");
  out_.Line("const u32 read = (s + ", stages - kInUse, ") % ", stages, ";");
  out_.Line("fd_mbarrier_wait(empty + read, (u32)((i - ", kInUse, ") / ", stages, ") & 1);");
  out_.Line("if (t == 0) refill(i + ", stages - kInUse, ", read);");
  out_.Close();
}

ClusterMeeting RowColumn::MeetingOf(size_t p, absl::string_view row) const {
  ClusterMeeting meeting;
  meeting.ctas = cluster_;
  meeting.warps = warps_;
  meeting.slots = schedule::kClusterSlots;
  meeting.slot = absl::StrCat("(u32)(", row, " % ", meeting.slots, ")");
  meeting.barrier = absl::StrCat("meetings + ", p * meeting.slots, " + ", meeting.slot);
  meeting.parity = absl::StrCat("(u32)(", row, " / ", meeting.slots, ") & 1");
  return meeting;
}

}  // namespace fusiond::codegen
