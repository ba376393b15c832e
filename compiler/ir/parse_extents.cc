#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "compiler/ir/text.h"

namespace fusiond::ir {

absl::StatusOr<std::vector<Dims>> ParseExtents(absl::string_view text) {
  std::vector<Dims> shapes;
  for (const absl::string_view shape : absl::StrSplit(text, ',')) {
    Dims& extents = shapes.emplace_back();
    if (shape.empty()) continue;
    for (const absl::string_view extent : absl::StrSplit(shape, 'x')) {
      int64_t value = 0;
      if (!absl::SimpleAtoi(extent, &value) || value < 0) {
        return absl::InvalidArgumentError(absl::StrFormat("shape %d: '%s' is no extent",
                                                          shapes.size() - 1,
                                                          absl::CHexEscape(extent.substr(0, 64))));
      }
      extents.push_back(value);
    }
  }
  return shapes;
}

}  // namespace fusiond::ir
