// Rows that a cluster of CTAs shares.
#include "absl/strings/str_cat.h"
#include "compiler/codegen/row_column_internal.h"

namespace fusiond::codegen {

using schedule::RowColumnLayout;

void RowColumn::WriteRowsOfCluster() {
  DeclareRingLoads("n");
  for (uint32_t i : stages_.held)
    if (region_.instrs[i].stage == 0) rows_.DeclareHeld(i, "n");
  const std::vector<ReductionGroup> first = rows_.Groups(0);
  const int64_t first_slots = slots_;
  out_.Line("u32 s = 0, phase = 0;");
  out_.Open("for (", Index(), " i = 0; i <= count; i++)");
  DeclareRingLoads();
  for (uint32_t i : stages_.held)
    if (region_.instrs[i].stage == 0) rows_.DeclareHeld(i);
  out_.Open("if (i < count)");
  WriteAhead();
  out_.Line("const ", Index(), " row = first + i * step;");
  rows_.WriteRow();
  rows_.WriteRowValues(0, "(u32)(i % 32)");
  WriteElementLoads();
  WriteColumnsOfPass(0, first);
  rows_.SendPartials(first, MeetingOf(0, "i"), slots_);
  out_.Close();
  out_.Open("if (i > 0)");
  WriteRestOfRow(first, first_slots);
  out_.Close();
  WriteCarry();
  WriteNextStage();
  out_.Close();
}

void RowColumn::WriteRestOfRow(const std::vector<ReductionGroup>& first, int64_t first_slots) {
  out_.Line("const ", Index(), " row = first + (i - 1) * step;");
  rows_.WriteRow();
  for (const RowColumnLayout::Part& part : layout_.ring)
    out_.Line("auto& m", part.instr, " = n", part.instr, ";");
  for (uint32_t i : stages_.held) {
    if (region_.instrs[i].stage == 0) {
      out_.Line("auto& h", i, " = n", i, ";");
    } else {
      rows_.DeclareHeld(i);
    }
  }
  rows_.ReceivePartials(first, MeetingOf(0, "(i - 1)"), first_slots, /*named=*/false);
  // Every warp has sent its part of row i - 1, and so read it.
  out_.Line("if (t == 0 && i + ", schedule_.stages - 1, " < count) refill(i + ",
            schedule_.stages - 1, ", (s + ", schedule_.stages - 1, ") % ", schedule_.stages, ");");
  rows_.WriteRowValuesBefore(0);
  for (const ReductionGroup& group : first) rows_.NameResults(group);
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
}

void RowColumn::WriteCarry() {
  out_.Open("if (i < count)");
  out_.Unrolled("k", schedule_.unroll);
  for (const RowColumnLayout::Part& part : layout_.ring)
    out_.Line("n", part.instr, "[k] = m", part.instr, "[k];");
  for (uint32_t i : stages_.held)
    if (region_.instrs[i].stage == 0) out_.Line("n", i, "[k] = h", i, "[k];");
  out_.Close();
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
