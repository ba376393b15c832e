#include "tests/support/within_bounds.h"

#include <cmath>

#include "absl/strings/str_format.h"

namespace fusiond::testing {
namespace {

absl::Status Wrong(size_t element, double value, double expected, double bound) {
  return absl::AbortedError(absl::StrFormat("element %d is %.9g, the reference %.9g, the bound %g",
                                            element, value, expected, bound));
}

}  // namespace

absl::Status CompareWithinBounds(const cpu::HostTensor& got, const cpu::HostTensor& reference,
                                 const BoundsOptions& options, BoundsReport& report) {
  report.elements += static_cast<int64_t>(got.size());
  for (size_t e = 0; e < got.integers.size(); ++e) {
    const double bound = reference.error[e];
    if (std::isinf(bound)) ++report.undecided;
    if (std::isinf(bound) || got.integers[e] == reference.integers[e]) continue;
    const auto value = static_cast<double>(got.integers[e]);
    const auto expected = static_cast<double>(reference.integers[e]);
    if (!(std::fabs(value - expected) <= bound)) return Wrong(e, value, expected, bound);
  }
  for (size_t e = 0; e < got.floats.size(); ++e) {
    const double value = got.floats[e], expected = reference.floats[e], bound = reference.error[e];
    const bool undecided =
        !std::isfinite(bound) || (options.finite_only && !std::isfinite(expected));
    if (undecided) ++report.undecided;
    if (undecided || value == expected || (std::isnan(value) && std::isnan(expected))) continue;
    if (!(std::fabs(value - expected) <= bound)) return Wrong(e, value, expected, bound);
  }
  return absl::OkStatus();
}

}  // namespace fusiond::testing
