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

struct Refusal {
  std::string schedule;  // a printed schedule, or the name of a scheduler that proposes none
  std::string reason;
};

struct Candidates {
  // Best first: schedulers by the estimate of their own first choice, each one's in its order.
  std::vector<Candidate> accepted;
  std::vector<Refusal> refused;  // table order
};

// Why no launch of the schedule is possible there, whatever it computes: a CTA that no SM has room
// for, clusters that the device has not. Empty: it is.
std::string WhyNotResident(const KernelSchedule& schedule, const executable::DeviceInfo& device);

Candidates FindCandidates(const Region& region, const executable::DeviceInfo& device);

}  // namespace fusiond::schedule

#endif  // FUSIOND_COMPILER_SCHEDULE_CANDIDATES_H_
