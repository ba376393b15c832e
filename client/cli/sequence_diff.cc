#include "client/cli/sequence_diff.h"

#include <algorithm>
#include <cstdint>

namespace fusiond::cli {
namespace {

constexpr size_t kMostPairs = size_t{4} << 20;

class Differ {
 public:
  Differ(absl::Span<const std::string> a, absl::Span<const std::string> b) : a_(a), b_(b) {}

  std::vector<DiffRun> Run() && {
    size_t prefix = 0, suffix = 0;
    const size_t shorter = std::min(a_.size(), b_.size());
    while (prefix < shorter && a_[prefix] == b_[prefix]) ++prefix;
    while (suffix < shorter - prefix && a_[a_.size() - 1 - suffix] == b_[b_.size() - 1 - suffix])
      ++suffix;
    for (size_t i = 0; i < prefix; ++i) Take(true, 1, 1);
    Middle(a_.size() - prefix - suffix, b_.size() - prefix - suffix);
    for (size_t i = 0; i < suffix; ++i) Take(true, 1, 1);
    return std::move(runs_);
  }

 private:
  // The next so many entries of either list.
  void Take(bool same, size_t of_a, size_t of_b) {
    if (runs_.empty() || runs_.back().same != same)
      runs_.push_back({same, a_taken_, a_taken_, b_taken_, b_taken_});
    runs_.back().a_end = a_taken_ += of_a;
    runs_.back().b_end = b_taken_ += of_b;
  }

  void Middle(size_t of_a, size_t of_b) {
    if (of_a == 0 && of_b == 0) return;
    if (of_a == 0 || of_b == 0 || of_a > kMostPairs / of_b) return Take(false, of_a, of_b);
    const absl::Span<const std::string> a = a_.subspan(a_taken_, of_a);
    const absl::Span<const std::string> b = b_.subspan(b_taken_, of_b);
    // common[i][j]: of what is left behind i and j.
    std::vector<std::vector<uint32_t>> common(of_a + 1, std::vector<uint32_t>(of_b + 1, 0));
    for (size_t i = of_a; i-- > 0;) {
      for (size_t j = of_b; j-- > 0;) {
        common[i][j] =
            a[i] == b[j] ? common[i + 1][j + 1] + 1 : std::max(common[i + 1][j], common[i][j + 1]);
      }
    }
    for (size_t i = 0, j = 0; i < of_a || j < of_b;) {
      if (i < of_a && j < of_b && a[i] == b[j]) {
        Take(true, 1, 1), ++i, ++j;
      } else if (j == of_b || (i < of_a && common[i + 1][j] >= common[i][j + 1])) {
        Take(false, 1, 0), ++i;
      } else {
        Take(false, 0, 1), ++j;
      }
    }
  }

  const absl::Span<const std::string> a_, b_;
  size_t a_taken_ = 0, b_taken_ = 0;
  std::vector<DiffRun> runs_;
};

}  // namespace

std::vector<DiffRun> DiffSequences(absl::Span<const std::string> a,
                                   absl::Span<const std::string> b) {
  return Differ(a, b).Run();
}

}  // namespace fusiond::cli
