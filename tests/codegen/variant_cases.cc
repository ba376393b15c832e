#include "tests/codegen/variant_cases.h"

#include "absl/strings/str_cat.h"
#include "tests/codegen/norm_graphs.h"

namespace fusiond::testing {
namespace {

using schedule::SchedulerId;

std::string BiasGelu(int rows, int columns) {
  return absl::StrCat("fir 1\n%x = input : bf16[", rows, ",", columns, "]\n%b = input : bf16[",
                      columns, R"(]
%v = add %x, %b
%e = erf %v
%y = mul %e, %v
%o = cast %y {dtype=bf16}
output %o
)");
}

std::string Silu(int count) {
  return absl::StrCat("fir 1\n%x = input : bf16[", count, R"(]
%y = silu %x
%o = cast %y {dtype=bf16}
output %o
)");
}

// One operand lies transposed; others along rows, columns, both.
std::string TransposedAdd(int rows, int columns) {
  return absl::StrCat("fir 1\n%x = input {stride_order=[0,1]} : bf16[", rows, ",", columns,
                      "]\n%y = input : bf16[", rows, ",", columns, "]\n%r = input : f32[", rows,
                      ",1]\n%c = input : bf16[", columns, R"(]
%s = add %x, %y
%p = mul %s, %r
%v = add %p, %c
%o = cast %v {dtype=bf16}
output %o
)");
}

// Two dependent reductions, a held exponential, a column tensor, row outputs.
std::string WeightedSoftmax(int rows, int columns, absl::string_view exponential = "exp") {
  return absl::StrCat("fir 1\n%x = input : bf16[", rows, ",", columns, "]\n%w = input : bf16[",
                      columns, R"(]
%f = cast %x {dtype=f32}
%m = max %f {dims=[1], keepdim=true}
%d = sub %f, %m
%e = )",
                      exponential, R"( %d
%s = sum %e {dims=[1], keepdim=true}
%q = div %e, %s
%y = mul %q, %w
%o = cast %y {dtype=bf16}
output %o
output %m
)");
}

std::string ColumnSums(int rows, int columns) {
  return absl::StrCat("fir 1\n%x = input : bf16[", rows, ",", columns, "]\n%g = input : bf16[",
                      rows, ",", columns, R"(]
%p = mul %x, %g
%s = sum %p {dims=[0]}
%m = max %g {dims=[0]}
%o = cast %s {dtype=bf16}
output %o
output %m
)");
}

}  // namespace

std::vector<VariantCase> VariantCases() {
  const std::vector<std::string> copies_by_thread = {"sm_80", "sm_86", "sm_89"};
  const std::vector<std::string> bulk_copies = {"sm_100a", "sm_120a", "sm_90a"};
  return {
      {SchedulerId::kPointwise, "flat", Silu(20008)},
      {SchedulerId::kPointwise, "flat_tail", Silu(4093)},
      {SchedulerId::kPointwise, "vector", BiasGelu(9, 64)},
      {SchedulerId::kPointwise, "element", BiasGelu(9, 61)},
      {SchedulerId::kTranspose, "tile", TransposedAdd(128, 192)},
      {SchedulerId::kTranspose, "tile_masked", TransposedAdd(72, 100)},
      {SchedulerId::kRowPersistent, "part", WeightedSoftmax(10, 64)},
      {SchedulerId::kRowPersistent, "part_masked", WeightedSoftmax(10, 40)},
      {SchedulerId::kRowPersistent, "part_shifted", WeightedSoftmax(10, 43)},
      {SchedulerId::kRowPersistent, "warp", WeightedSoftmax(6, 256)},
      {SchedulerId::kRowPersistent, "warp_masked", WeightedSoftmax(6, 328)},
      {SchedulerId::kRowPersistent, "warp_shifted", WeightedSoftmax(6, 333)},
      {SchedulerId::kRowPersistent, "cta", WeightedSoftmax(4, 4096)},
      {SchedulerId::kRowPersistent, "cta_masked", WeightedSoftmax(4, 4008)},
      {SchedulerId::kRowPersistent, "cta_shifted", WeightedSoftmax(4, 4007)},
      {SchedulerId::kRowPersistent, "cluster", WeightedSoftmax(3, 32768), bulk_copies},
      {SchedulerId::kRowPersistent, "cluster_masked", LayerNorm(3, 30008), bulk_copies},
      {SchedulerId::kRowPersistent, "cluster_shifted", WeightedSoftmax(3, 30007), bulk_copies},
      // With exp2 three passes, else an online one and another.
      {SchedulerId::kRowStream, "cta", WeightedSoftmax(4, 65536, "exp2")},
      {SchedulerId::kRowStream, "cta_masked", LayerNorm(4, 120008)},
      {SchedulerId::kRowStream, "cta_shifted", WeightedSoftmax(4, 65543)},
      {SchedulerId::kRowStream, "split", WeightedSoftmax(1, 65536, "exp2")},
      {SchedulerId::kRowStream, "split_masked", LayerNorm(1, 100008)},
      {SchedulerId::kRowStream, "split_shifted", WeightedSoftmax(1, 65543)},
      {SchedulerId::kColumn, "whole", ColumnSums(12, 512)},
      {SchedulerId::kColumn, "whole_masked", ColumnSums(12, 504)},
      {SchedulerId::kColumn, "split", ColumnSums(600, 256)},
      {SchedulerId::kColumn, "split_masked", ColumnSums(600, 248)},
      {SchedulerId::kRowColumn, "bulk_warp", LayerNormBackward(130, 256), bulk_copies},
      {SchedulerId::kRowColumn, "bulk_team", LayerNormBackward(40, 2048), bulk_copies},
      {SchedulerId::kRowColumn, "bulk_cta", RmsNormBackward(16, 8192), bulk_copies},
      {SchedulerId::kRowColumn, "bulk_cluster", RmsNormBackward(16, 12288), bulk_copies},
      {SchedulerId::kRowColumn, "async_warp", LayerNormBackward(130, 256), copies_by_thread},
      {SchedulerId::kRowColumn, "async_team", LayerNormBackward(40, 4096), copies_by_thread},
      {SchedulerId::kRowColumn, "async_cta", RmsNormBackward(16, 12288), copies_by_thread},
      {SchedulerId::kRowColumn, "direct_warp", LayerNormBackward(50, 255)},
      {SchedulerId::kRowColumn, "direct_team", LayerNormBackward(40, 2047)},
      {SchedulerId::kRowColumn, "direct_cta", RmsNormBackward(16, 12287)},
  };
}

}  // namespace fusiond::testing
