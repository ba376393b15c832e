// Two lists held against each other: what of them is the same, in order, and what stands between.
//
// Thread-safety: pure functions.
#ifndef FUSIOND_CLIENT_CLI_SEQUENCE_DIFF_H_
#define FUSIOND_CLIENT_CLI_SEQUENCE_DIFF_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/types/span.h"

namespace fusiond::cli {

// Neighbouring entries of either list: equal ones, one for one, or different ones.
struct DiffRun {
  bool same = false;
  size_t a_begin = 0, a_end = 0;
  size_t b_begin = 0, b_end = 0;
  bool operator==(const DiffRun&) const = default;
};

// Runs that cover both lists, alternately same and different; a longest common subsequence is the
// same. Cost: quadratic in what lies between the first and the last difference; where that is more
// than 4 million pairs it is one run.
std::vector<DiffRun> DiffSequences(absl::Span<const std::string> a,
                                   absl::Span<const std::string> b);

}  // namespace fusiond::cli

#endif  // FUSIOND_CLIENT_CLI_SEQUENCE_DIFF_H_
