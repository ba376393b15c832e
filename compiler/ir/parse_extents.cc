#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "compiler/ir/text.h"
#include "runtime/base/status_macros.h"

namespace fusiond::ir {
namespace {

absl::StatusOr<Dims> ParseShape(absl::string_view text, size_t input) {
  Dims extents;
  for (const absl::string_view extent : absl::StrSplit(text, 'x')) {
    int64_t value = 0;
    if (!absl::SimpleAtoi(extent, &value) || value < 0) {
      return absl::InvalidArgumentError(absl::StrFormat("input %d: '%s' is no extent", input,
                                                        absl::CHexEscape(extent.substr(0, 64))));
    }
    extents.push_back(value);
  }
  return extents;
}

}  // namespace

absl::StatusOr<std::vector<Dims>> ParseExtents(absl::string_view text, const Graph& graph) {
  std::vector<absl::string_view> entries;
  if (!text.empty()) entries = absl::StrSplit(text, ',');
  if (entries.size() > graph.inputs().size()) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "extents of %d inputs given, the graph has %d", entries.size(), graph.inputs().size()));
  }
  std::vector<Dims> shapes;
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    const Type& type = graph.type(graph.inputs()[i]);
    if (i < entries.size() && !entries[i].empty() && entries[i] != "-") {
      FUSIOND_ASSIGN_OR_RETURN(shapes.emplace_back(), ParseShape(entries[i], i));
      continue;
    }
    for (const int64_t extent : type.shape) {
      if (extent != kSymbolic) continue;
      return absl::InvalidArgumentError(
          absl::StrFormat("input %d is %s: say its extents", i, Print(type)));
    }
    shapes.push_back(type.shape);
  }
  return shapes;
}

}  // namespace fusiond::ir
