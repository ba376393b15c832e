#include "tests/gpu/graphs.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "compiler/ir/specialise.h"
#include "compiler/ir/text.h"
#include "runtime/base/file.h"
#include "runtime/base/status_macros.h"

namespace fusiond::testing {

absl::StatusOr<ir::Graph> GraphAtSize(const std::string& path, int64_t rows, int64_t columns,
                                      const std::string& dtype) {
  FUSIOND_ASSIGN_OR_RETURN(std::string text, base::ReadFile("tests/data/" + path + ".fir"));
  const std::string r = absl::StrCat(rows), c = absl::StrCat(columns);
  text = absl::StrReplaceAll(text, {{"[8192,8192]", absl::StrCat("[", r, ",", c, "]")},
                                    {"[8192,4096]", absl::StrCat("[", r, ",", c, "]")},
                                    {"[2048,8192]", absl::StrCat("[", r, ",", c, "]")},
                                    {"[2048,", absl::StrCat("[", r, ",")},
                                    {"[8192]", absl::StrCat("[", c, "]")},
                                    {"[1024]", absl::StrCat("[", c, "]")},
                                    {"value=8192.0", absl::StrCat("value=", c, ".0")}});
  if (!dtype.empty()) text = absl::StrReplaceAll(text, {{"bf16", dtype}});
  FUSIOND_ASSIGN_OR_RETURN(const ir::Graph graph, ir::Parse(text));
  std::vector<ir::Dims> extents;
  for (ir::ValueId input : graph.inputs()) {
    ir::Dims shape = graph.type(input).shape;
    for (size_t d = 0; d < shape.size(); ++d) {
      if (shape[d] == ir::kSymbolic) shape[d] = d == 0 && shape.size() == 2 ? rows : columns;
    }
    extents.push_back(std::move(shape));
  }
  return ir::Specialise(graph, extents);
}

absl::StatusOr<ir::Graph> GraphOfExtents(const std::string& path, const std::string& extents) {
  FUSIOND_ASSIGN_OR_RETURN(const std::string text, base::ReadFile("tests/data/" + path + ".fir"));
  FUSIOND_ASSIGN_OR_RETURN(const ir::Graph graph, ir::Parse(text));
  FUSIOND_ASSIGN_OR_RETURN(const std::vector<ir::Dims> dims, ir::ParseExtents(extents, graph));
  return ir::Specialise(graph, dims);
}

}  // namespace fusiond::testing
