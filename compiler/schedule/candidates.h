// Candidates: every scheduler asked about a region, in one ordered table, reasons kept.
//
// Thread-safety: pure function.
#ifndef FUSIOND_COMPILER_SCHEDULE_CANDIDATES_H_
#define FUSIOND_COMPILER_SCHEDULE_CANDIDATES_H_

#include <string>
#include <vector>

#include "compiler/schedule/scheduler.h"

namespace fusiond::schedule {

struct Candidate {
  KernelSchedule schedule;
  Cost cost;
};

struct Candidates {
  // Best first: schedulers by the estimate of their own first choice, each one's in its order.
  std::vector<Candidate> accepted;
  std::vector<std::string> refused;  // "row_persistent: rows of 400 KB do not fit", table order
};

Candidates FindCandidates(const Region& region, const executable::DeviceInfo& device);

}  // namespace fusiond::schedule

#endif  // FUSIOND_COMPILER_SCHEDULE_CANDIDATES_H_
