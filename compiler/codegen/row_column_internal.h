// The emitter of RowColumn: row_column.cc has the frame and what brings rows, row_column_cluster.cc
// the rows of a cluster, row_column_sums.cc what becomes of the column sums.
#ifndef FUSIOND_COMPILER_CODEGEN_ROW_COLUMN_INTERNAL_H_
#define FUSIOND_COMPILER_CODEGEN_ROW_COLUMN_INTERNAL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "compiler/codegen/kernel.h"
#include "compiler/codegen/kernel_text.h"
#include "compiler/codegen/row_text.h"
#include "compiler/schedule/row_column.h"
#include "compiler/schedule/stages.h"

namespace fusiond::codegen {

class RowColumn {
 public:
  RowColumn(const schedule::Region& region, const schedule::KernelSchedule& schedule);
  Emission Emit() &&;

 private:
  const char* Index() const { return rows_.Index(); }
  // Columns that a team's vectors span.
  int64_t Span() const {
    return int64_t{schedule_.unroll} * schedule_.threads_per_row * schedule_.vector;
  }
  // Of column j in what the CTA has of a row.
  const char* Place() const { return cluster_ > 1 ? "(j - left)" : "j"; }
  void WritePlace();
  // The pointer to column `column` of a ring load in stage `stage`.
  std::string Staged(const schedule::RowColumnLayout::Part& part, absl::string_view stage,
                     absl::string_view column, bool written) const;
  void Rely(const schedule::Access& access, int64_t alignment);
  void WriteBulkRing();
  int64_t ColumnBytes(const schedule::RowColumnLayout::Part& part) const;
  // Of the CTA's part of a row, as text.
  std::string RowBytes(int64_t column_bytes) const;
  void WriteAsyncRing();
  // Element loads that are the same for all rows.
  void WriteColumns();
  // Values of 32 rows at once, a row a lane: were each row's loaded for itself, ptxas might delay
  // the load to where nothing hides it, and a division would stand in every row's way.
  void WriteAhead();
  void WriteRows();
  void WriteNextStage();
  // While a row's reductions are on their way through the cluster, the next row's are computed: in
  // turn i the first pass of row i, then what remains of row i - 1, read from the ring once more.
  void WriteRowsOfCluster();
  void WriteRefillOfCluster();
  void WriteRestOfRow(const std::vector<ReductionGroup>& first, int64_t first_slots);
  void WriteElementLoads();
  void WriteRingLoads(absl::string_view stage);
  void WriteRefill();
  static bool IsEmpty(const schedule::Pass& pass) {
    return pass.reductions.empty() && pass.stores.empty() && pass.elements.empty() &&
           pass.sums.empty();
  }
  void WritePass(size_t p);
  // Up to what each warp has reduced by itself.
  void WriteColumnsOfPass(size_t p, const std::vector<ReductionGroup>& groups);
  // What is the same for all rows is kept as in memory: the compiler may not hold it converted.
  void WriteColumnLoad(uint32_t i);
  // Two slots a reduction, taken in turn: whoever writes one has passed the barrier after which it
  // was last read.
  void WriteMeeting(const std::vector<ReductionGroup>& groups);
  // Of pass `p` of row number `row`, an expression.
  ClusterMeeting MeetingOf(size_t p, absl::string_view row) const;
  // The teams' sums of one reduction, in team order, to the CTA's part.
  void WriteSums(uint32_t number, uint32_t i);
  void WriteSumsOfOneTeam(uint32_t number, uint32_t i);
  // The CTA's part of a sum, from column `column` on.
  void WritePart(uint32_t number, uint32_t i, absl::string_view column, absl::string_view sums);
  // Of two teams the first keeps its sums in registers: half the traffic through shared memory.
  void WriteSumsOfTwoTeams(uint32_t number, uint32_t i);
  void WriteSumsOfTeams(uint32_t number, uint32_t i);

  const schedule::Region& region_;
  const schedule::KernelSchedule& schedule_;
  const schedule::Stages stages_;
  const schedule::RowColumnLayout layout_;
  const bool bulk_, async_;
  const int warps_, teams_, cluster_;
  const bool masked_;                // some vectors lie behind the CTA's part of a row
  const executable::Formula parts_;  // CTAs or clusters, each with its own column sums
  KernelText text_;
  TextBuilder& out_;
  Emission emission_;
  RowText rows_;
  int64_t slots_;  // where the next reduction group's begin
};

}  // namespace fusiond::codegen

#endif  // FUSIOND_COMPILER_CODEGEN_ROW_COLUMN_INTERNAL_H_
