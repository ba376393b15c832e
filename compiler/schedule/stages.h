// Stages: what a kernel that walks rows computes in each of its passes over the columns.
//
// Pass s can use the results of the row reductions of passes before it. An element value of an
// earlier pass is computed again where that is cheap, else held for every column of the row. Where
// each pass reads the row anew nothing is held, and stores over what is read wait for the last
// pass.
//
// Thread-safety: pure functions. Cost: O(passes · instrs).
#ifndef FUSIOND_COMPILER_SCHEDULE_STAGES_H_
#define FUSIOND_COMPILER_SCHEDULE_STAGES_H_

#include <cstdint>
#include <limits>
#include <vector>

#include "compiler/schedule/region.h"

namespace fusiond::schedule {

struct Pass {
  std::vector<uint32_t> rows;        // computed once a row, before the pass; includes row loads
  std::vector<uint32_t> elements;    // computed in the pass, operands first; no loads
  std::vector<uint32_t> loads;       // of elements, that the pass uses
  std::vector<uint32_t> reductions;  // over the columns, complete after it
  std::vector<uint32_t> sums;        // over the rows: late, each pass adds its row's part
  std::vector<size_t> stores;        // of elements, in it
};

struct Stages {
  // The last pass may have no columns to walk: then only its `rows` are not empty.
  std::vector<Pass> passes;
  std::vector<uint32_t> held;      // elements, by instr
  std::vector<size_t> row_stores;  // stores of one value a row, after everything
  // What else is late belongs to no pass.
};

// Varies along some column dim.
bool IsElement(const Region& region, uint32_t instr);
// Whether a store writes along some column dim.
bool IsElementStore(const Region& region, const Store& store);

// For PlanStages: each pass reads the row anew.
inline constexpr int kReadAgain = std::numeric_limits<int>::max();

// `max_again`: issue slots up to which an element is computed again rather than held.
Stages PlanStages(const Region& region, int max_again);

}  // namespace fusiond::schedule

#endif  // FUSIOND_COMPILER_SCHEDULE_STAGES_H_
