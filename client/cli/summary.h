// What `fusionctl run` shows of a tensor: its first elements, and its extremes and mean.
#ifndef FUSIOND_CLIENT_CLI_SUMMARY_H_
#define FUSIOND_CLIENT_CLI_SUMMARY_H_

#include <cstdint>
#include <limits>
#include <string>
#include <variant>
#include <vector>

#include "client/cli/tensors.h"

namespace fusiond::cli {

struct Summary {
  base::DType dtype = base::DType::kFloat;
  std::vector<int64_t> shape;
  uint64_t elements = 0;
  std::vector<std::variant<int64_t, double>> first;  // in row-major order
  // Of those that are finite; NaN where none is.
  double min = std::numeric_limits<double>::quiet_NaN();
  double max = std::numeric_limits<double>::quiet_NaN();
  double mean = std::numeric_limits<double>::quiet_NaN();
  uint64_t not_finite = 0;
};
// Requires: a tensor. Cost: one pass over its elements.
Summary Summarise(const HostArray& array);

// f32[4,128] = 0.25 -1.5 3 0.125 ...; min -4.5, max 4.25, mean 0.0125; 3 not finite
std::string ToText(const Summary& summary);
// The members of a JSON object: "dtype", "shape", "first", "min", "max", "mean", "not_finite". What
// is not finite is null.
std::string ToJsonMembers(const Summary& summary);

}  // namespace fusiond::cli

#endif  // FUSIOND_CLIENT_CLI_SUMMARY_H_
