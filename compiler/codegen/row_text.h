// RowText: the parts of kernels that walk rows and the columns of each row.
//
// A team of threads owns a row; thread `t` of it takes vectors of `vector` columns, the k-th at
// column j = (k · team + t) · vector. Row values are computed by every thread of the team; element
// values inside a loop over e. In shifted form j begins up to a vector before column 0, so that
// aligned vectors of tensors whose rows are not aligned are cut at both ends of a row instead.
//
// An online reduction (schedule/online.h) has a state a<i> (compiler/device/online.cuh) instead of
// chains.
//
// Names: row (the row), n (rows), t, k, j, e; b0, b1, … where a row begins in memory; m, x, v, h, o
// as in README.md; a7 the chains of reduction 7, z2 the results of reduction group 2.
//
// Thread-safety: thread-compatible. Pointers given must outlive it.
#ifndef FUSIOND_COMPILER_CODEGEN_ROW_TEXT_H_
#define FUSIOND_COMPILER_CODEGEN_ROW_TEXT_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "compiler/codegen/expression.h"
#include "compiler/codegen/text_builder.h"
#include "compiler/schedule/kernel_schedule.h"
#include "compiler/schedule/region.h"
#include "compiler/schedule/stages.h"

namespace fusiond::codegen {

// Reductions of one pass that combine alike and so travel together.
struct ReductionGroup {
  ir::Op op = ir::Op::kSum;
  ir::DType dtype = ir::DType::kFloat;
  std::vector<uint32_t> reductions;
  int number = 0;  // of z<number>
};

// How the CTAs of a cluster combine what each has of one row (compiler/device/cluster_team.cuh).
struct ClusterMeeting {
  int ctas = 1;              // of the cluster
  int warps = 1;             // of a CTA
  int slots = 1;             // of shared memory, for rows that follow each other
  std::string slot;          // the row's, an expression; unless there is one
  std::string barrier;       // fd_mbarrier* of that slot
  std::string parity = "0";  // of the barrier's phase for this row

  // Bytes that a group's parts take in a slot.
  int64_t Bytes(const ReductionGroup& group) const;
};

class RowText {
 public:
  // `alignment`: by region tensor, raised to what accesses rely on. `chains`: of each row reduction
  // in a thread, a power of two; 0: one for each element of a vector.
  RowText(const schedule::Region& region, const schedule::KernelSchedule& schedule,
          const schedule::Stages& stages, bool shifted, TextBuilder& out,
          std::vector<int64_t>& alignment, int chains = 0);

  // Runtime values and loads that are the same for every row. Before a loop over rows.
  void WriteKernelValues();
  // Coordinates and offsets of `row`; then the shift.
  void WriteRow();
  // Loads of one value a row, and what is computed from them before pass `p`. `lane`, unless empty:
  // WriteAhead came before, and lane `lane` of the warp has this row's values.
  void WriteRowValues(size_t p, absl::string_view lane = "");
  // As WriteRowValues(p, "(u32)((i - 1) % 32)") of the row before, number i - 1 of this team, after
  // WriteAhead may have come for row i: then g<i> has what l<i> was.
  void WriteRowValuesBefore(size_t p);
  // Rows ahead, a row a lane: all loads of one value a row, and what is computed from them before
  // the first pass. What the row's own turn needs of them goes to l<i>, declared "f32 l<i>;".
  bool HasAhead() const { return !Ahead().empty(); }
  // `keep`: what came before is needed once more, for WriteRowValuesBefore.
  void DeclareAhead(bool keep = false);
  void WriteAhead(bool keep = false);  // after WriteRow

  // The CTA of rank `rank` in a cluster of `ctas` takes columns left … right - 1: `columns` of
  // them, the last one what is left; in shifted form counted from where the first vector begins.
  // Declares these three, multiples of the vector.
  void ShareColumns(int ctas, int64_t columns);
  // Instead of row numbers from a first to the last column, vectors of a step: they begin behind
  // column `first`, an expression of type Index() without low operators, and where they are masked
  // end before column `limit`, that of the row unless given.
  void WalkFrom(absl::string_view first, absl::string_view limit = "") {
    first_ = std::string(first);
    limit_ = std::string(limit);
  }
  // What is the same for every row is written for these instrs alone.
  void Limit(std::vector<bool> computed) { computed_ = std::move(computed); }
  // "{" of what holds for vector k: j, coordinates, whole, begin and end. `masked`: a vector may
  // have no column at all.
  void OpenVector(bool masked);
  void CloseVector();
  // Element loads are converted when they come and live as x<i>[k] for all passes, not packed as in
  // memory. To be called before the first is declared.
  void HoldUnpacked() { unpacked_ = true; }
  // From here on element load `instr` is named m<i> without [k]: whoever uses it has just loaded
  // it.
  void LoadAtUse(uint32_t instr) { at_use_[instr] = true; }
  // m<i>[k] = …, or, `now`, const m<i> = …, inside OpenVector.
  void WriteLoad(uint32_t instr, bool now);
  // m<i>[k] = `vector`, a vector in memory's type.
  void WriteLoaded(uint32_t instr, absl::string_view vector);
  // Declarations "fd_vec<…> m<i>[unroll];" of an element load, "h<i>[unroll]" of what is held.
  void DeclareLoad(uint32_t instr);
  void DeclareHeld(uint32_t instr);
  // The elements of pass `p` for vector k, with chains, sums a<i>[k], held values and stores. Loads
  // are m<i>[k], or m<i> if `now`.
  void WriteElements(size_t p, bool now);

  // Of each reduction from here on; a power of two, at most the vector.
  void SetChains(int chains) { chains_ = chains; }
  // a<i>[chains] = identity, for each reduction of pass `p`.
  void DeclareChains(size_t p);
  // fd_vec<…> a<i>[unroll] = identity, for each sum of any pass.
  void DeclareSums();
  // Without online ones.
  std::vector<ReductionGroup> Groups(size_t p);
  // z<g>[K] = folded chains.
  void FoldChains(const ReductionGroup& group);
  // The warps of a team put what each has reduced side by side, at `smem_bytes` and on, and take
  // the whole after a barrier.
  void PutPartials(const std::vector<ReductionGroup>& groups, int warps, int64_t& smem_bytes);
  void TakePartials(const std::vector<ReductionGroup>& groups, int warps);
  // Each warp sends its part of each group to all CTAs of the cluster, at `smem_bytes` and on.
  void SendPartials(const std::vector<ReductionGroup>& groups, const ClusterMeeting& meeting,
                    int64_t& smem_bytes);
  // Awaits them and combines. `named`: behind SendPartials in one block, where z<g> and w<g> have
  // their names.
  void ReceivePartials(const std::vector<ReductionGroup>& groups, const ClusterMeeting& meeting,
                       int64_t smem_bytes, bool named);
  // v<i> = z<g>[…] for each reduction.
  void NameResults(const ReductionGroup& group);

  // Stores of one value a row, by the thread of which `writer` holds.
  void WriteRowStores(absl::string_view writer = "t == 0");

  const char* Index() const { return schedule_.wide_index ? "u64" : "u32"; }
  // Where the row begins in an access, after WriteRow: "b0", or "" where it does not vary.
  std::string Base(const schedule::Access& access) const;
  // Whether element load `instr` is a vector, not one value for all its columns.
  bool IsVector(uint32_t instr) const { return ScopeOf(instr) == Scope::kElement; }

 private:
  enum class Scope { kKernel, kRow, kVector, kElement };

  Scope ScopeOf(uint32_t instr) const;
  std::string Value(uint32_t instr) const;
  void WriteSlot(const ReductionGroup& group, const ClusterMeeting& meeting, int64_t smem_bytes);
  void WriteCompute(uint32_t instr);
  std::string Coordinate(size_t dim, bool of_element) const;
  bool GivesVector(uint32_t instr) const;
  void WriteVector(uint32_t instr);
  VectorAccess Plan(const schedule::Access& access);
  bool VariesByRow(const schedule::Access& access) const;
  bool KeepsPhase(const schedule::Access& access) const;
  std::string Offset(const schedule::Access& access) const;  // of vector k
  std::string RowLoad(const schedule::Instr& instr) const;
  std::vector<uint32_t> Ahead() const;
  bool IsAhead(uint32_t instr) const;
  bool IsShuffled(uint32_t instr) const;  // of what is ahead: needed in the row's turn
  std::string RowOwner(const schedule::Access& access) const;
  std::string ColumnOwner(const schedule::Access& access) const;
  void WriteStore(size_t store);
  void WriteCoordinates(absl::string_view index, size_t begin, size_t end);

  const schedule::Region& region_;
  const schedule::KernelSchedule& schedule_;
  const schedule::Stages& stages_;
  const bool shifted_;
  int chains_;
  TextBuilder& out_;
  std::vector<int64_t>& alignment_;
  size_t first_column_ = 0;  // dims before it are row dims
  int inner_ = -1;           // the innermost column dim, or -1
  bool phased_ = false;      // rows of some contiguous tensor may begin inside vectors
  std::string first_, limit_;
  std::map<schedule::Strides, std::string> bases_;  // row part of strides → name
  std::vector<bool> held_, at_use_, computed_;
  bool unpacked_ = false;
  size_t pass_ = 0;  // being written
  int groups_ = 0;
};

}  // namespace fusiond::codegen

#endif  // FUSIOND_COMPILER_CODEGEN_ROW_TEXT_H_
