// The graphs of tests/data at any size.
#ifndef FUSIOND_TESTS_GPU_GRAPHS_H_
#define FUSIOND_TESTS_GPU_GRAPHS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "compiler/ir/graph.h"

namespace fusiond::testing {

// The graph of tests/data/<path>.fir ("graphs/add"), specialised, with `rows` rows and `columns`
// columns in place of its own or of symbolic extents; `dtype` in place of bf16 if not empty. The
// working folder is a checkout or a bundle. INVALID_ARGUMENT where the graph does not take the
// size.
absl::StatusOr<ir::Graph> GraphAtSize(const std::string& path, int64_t rows, int64_t columns,
                                      const std::string& dtype = "");
// The same with the inputs' extents as ir::ParseExtents reads them: "40x50,,40x1".
absl::StatusOr<ir::Graph> GraphOfExtents(const std::string& path, const std::string& extents);

}  // namespace fusiond::testing

#endif  // FUSIOND_TESTS_GPU_GRAPHS_H_
