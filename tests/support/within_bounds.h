// Holds what a kernel computed against the evaluator's double precision, within the error bounds
// that it carries beside each value.
//
// Thread-safety: pure functions.
#ifndef FUSIOND_TESTS_SUPPORT_WITHIN_BOUNDS_H_
#define FUSIOND_TESTS_SUPPORT_WITHIN_BOUNDS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "runtime/cpu/host_tensor.h"

namespace fusiond::testing {

struct BoundsOptions {
  // Where the reference is nan or infinite the result may be anything: for graphs whose algebra may
  // be rearranged.
  bool finite_only = false;
};

struct BoundsReport {
  int64_t elements = 0;
  int64_t undecided = 0;  // no bound: next to a discontinuity, out of range
};

// Requires: equal types; `reference` evaluated with track_error. Adds to `report`. ABORTED names
// the first wrong element, its value, the reference and the bound.
absl::Status CompareWithinBounds(const cpu::HostTensor& got, const cpu::HostTensor& reference,
                                 const BoundsOptions& options, BoundsReport& report);

}  // namespace fusiond::testing

#endif  // FUSIOND_TESTS_SUPPORT_WITHIN_BOUNDS_H_
