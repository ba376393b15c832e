// The reductions' half of RowText: chains of a thread, column sums, and how a team's partial
// results meet.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/codegen/names.h"
#include "compiler/codegen/row_text.h"
#include "compiler/schedule/online.h"

namespace fusiond::codegen {

using schedule::Instr;

void RowText::DeclareChains(size_t p) {
  for (uint32_t i : stages_.passes[p].reductions) {
    const Instr& instr = region_.instrs[i];
    const char* type = RegisterType(instr.dtype);
    if (schedule::IsOnline(instr)) {
      out_.Line(OnlineState(instr.op), "<", type, "> a", i, " = {};");
      continue;
    }
    out_.Line(type, " a", i, "[", chains_, "];");
    out_.Unrolled("e", chains_);
    out_.Line("a", i, "[e] = ", Reducer(instr.op), "::identity<", type, ">();");
    out_.Close();
  }
}

void RowText::DeclareSums() {
  for (const schedule::Pass& pass : stages_.passes) {
    for (uint32_t i : pass.sums) {
      const Instr& instr = region_.instrs[i];
      const char* type = RegisterType(instr.dtype);
      out_.Line("fd_vec<", type, ", ", schedule_.vector, "> a", i, "[", schedule_.unroll, "];");
      out_.Unrolled("k", schedule_.unroll);
      out_.Unrolled("e", schedule_.vector);
      out_.Line("a", i, "[k][e] = ", Reducer(instr.op), "::identity<", type, ">();");
      out_.Close();
      out_.Close();
    }
  }
}

std::vector<ReductionGroup> RowText::Groups(size_t p) {
  std::vector<ReductionGroup> groups;
  for (uint32_t i : stages_.passes[p].reductions) {
    const Instr& instr = region_.instrs[i];
    if (schedule::IsOnline(instr)) continue;
    const auto group = std::find_if(groups.begin(), groups.end(), [&](const ReductionGroup& g) {
      return g.op == instr.op && g.dtype == instr.dtype;
    });
    if (group != groups.end()) {
      group->reductions.push_back(i);
    } else {
      groups.push_back({instr.op, instr.dtype, {i}, groups_++});
    }
  }
  return groups;
}

void RowText::FoldChains(const ReductionGroup& group) {
  std::vector<std::string> folded;
  for (uint32_t i : group.reductions)
    folded.push_back(absl::StrCat("fd_fold<", Reducer(group.op), ">(a", i, ")"));
  out_.Line(RegisterType(group.dtype), " z", group.number, "[", folded.size(), "] = {",
            absl::StrJoin(folded, ", "), "};");
}

void RowText::PutPartials(const std::vector<ReductionGroup>& groups, int warps,
                          int64_t& smem_bytes) {
  for (const ReductionGroup& group : groups) {
    const auto elements = static_cast<int64_t>(group.reductions.size()) * warps;
    const char* type = RegisterType(group.dtype);
    out_.Line(type, "* const w", group.number, " = fd_smem<", type, ">(", smem_bytes, ", ",
              elements, ");");
    out_.Line("fd_put_partials<", warps, ">(z", group.number, ", w", group.number, ");");
    smem_bytes += (elements * ir::ByteSize(group.dtype) + 15) / 16 * 16;
  }
}

void RowText::TakePartials(const std::vector<ReductionGroup>& groups, int warps) {
  for (const ReductionGroup& group : groups) {
    out_.Line("fd_take_partials<", Reducer(group.op), ", ", warps, ">(z", group.number, ", w",
              group.number, ");");
  }
}

int64_t ClusterMeeting::Bytes(const ReductionGroup& group) const {
  return static_cast<int64_t>(group.reductions.size()) * ctas * warps * ir::ByteSize(group.dtype);
}

void RowText::WriteSlot(const ReductionGroup& group, const ClusterMeeting& meeting,
                        int64_t smem_bytes) {
  const int64_t elements = meeting.Bytes(group) / ir::ByteSize(group.dtype);
  const char* type = RegisterType(group.dtype);
  out_.Line(type, "* const w", group.number, " = fd_smem<", type, ">(", smem_bytes, ", ",
            meeting.slots * elements, ")",
            meeting.slots > 1 ? absl::StrCat(" + ", meeting.slot, " * ", elements) : "", ";");
}

void RowText::SendPartials(const std::vector<ReductionGroup>& groups, const ClusterMeeting& meeting,
                           int64_t& smem_bytes) {
  int64_t bytes = 0;
  for (const ReductionGroup& group : groups) bytes += meeting.Bytes(group);
  out_.Line("if (t == 0) fd_mbarrier_expect(", meeting.barrier, ", ", bytes, ");");
  for (const ReductionGroup& group : groups) {
    WriteSlot(group, meeting, smem_bytes);
    out_.Line("fd_send_partials<", meeting.ctas, ", ", meeting.warps, ">(z", group.number, ", w",
              group.number, ", ", meeting.barrier, ");");
    smem_bytes += (meeting.slots * meeting.Bytes(group) + 15) / 16 * 16;
  }
}

void RowText::ReceivePartials(const std::vector<ReductionGroup>& groups,
                              const ClusterMeeting& meeting, int64_t smem_bytes, bool named) {
  out_.Line("fd_mbarrier_wait_cluster(", meeting.barrier, ", ", meeting.parity, ");");
  for (const ReductionGroup& group : groups) {
    if (!named) {
      out_.Line(RegisterType(group.dtype), " z", group.number, "[", group.reductions.size(), "];");
      WriteSlot(group, meeting, smem_bytes);
      smem_bytes += (meeting.slots * meeting.Bytes(group) + 15) / 16 * 16;
    }
  }
  TakePartials(groups, meeting.ctas * meeting.warps);
}

void RowText::NameResults(const ReductionGroup& group) {
  for (size_t r = 0; r < group.reductions.size(); ++r) {
    out_.Line("const ", RegisterType(group.dtype), " v", group.reductions[r], " = z", group.number,
              "[", r, "];");
  }
}

}  // namespace fusiond::codegen
