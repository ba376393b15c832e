// Faults planted into generated kernels: each must be found, or the emulation proves nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/codegen/plan_runner.h"
#include "tests/codegen/variant_cases.h"
#include "tests/support/status_matchers.h"

namespace fusiond::codegen {
namespace {

using ::fusiond::testing::PlanRunOptions;
using ::fusiond::testing::RunPlan;
using ::fusiond::testing::StatusIs;
using ::fusiond::testing::VariantCase;
using ::fusiond::testing::VariantCases;
using schedule::SchedulerId;

struct Planted {
  SchedulerId scheduler;
  std::string variant;
  std::string name;
  emulation::Edit edit;
  emulation::Checker checker = emulation::Checker::kPlain;
};

void PrintTo(const Planted& planted, std::ostream* out) { *out << planted.name; }

std::vector<Planted> AllPlanted() {
  constexpr SchedulerId kRow = SchedulerId::kRowPersistent;
  constexpr SchedulerId kFlat = SchedulerId::kPointwise;
  return {
      {kFlat, "flat", "bound_of_the_vectors", {"if (i < n)", "if (i <= n)", 1}},
      {kFlat, "flat", "step_of_the_unrolled_vectors", {"first + v * ", "first + v * 2 * ", 0}},
      {kFlat,
       "flat_tail",
       "cut_of_the_last_load",
       {"if (i + 8 <= n)", "if (i <= n)", 0},
       emulation::Checker::kAddress},
      {kFlat, "flat_tail", "cut_of_the_last_store", {"if (i + 8 <= n)", "if (i <= n)", 1}},
      {kFlat, "flat_tail", "length_of_the_last_store", {", n - i)", ", n - i - 1)", 1}},
      {kFlat, "vector", "coordinate_of_the_columns", {"i % 64", "i % 32", 0}},
      {kRow, "part", "rows_behind_the_end", {"live ? mine : n - 1", "mine", 0}},
      {kRow,
       "part",
       "lanes_of_a_team",
       {"fd_warp_reduce<fd_sum, 8>", "fd_warp_reduce<fd_sum, 4>", 0}},
      {kRow, "part_masked", "vectors_behind_the_row", {"if (j < 40)", "if (true)", 1}},
      {kRow, "part_shifted", "elements_before_the_row", {"j < 0 ? -j : 0", "0", 2}},
      {kRow, "warp", "rows_of_a_cta", {"if (row >= n) return;", "", 0}},
      {kRow,
       "warp",
       "operator_of_the_maximum",
       {"fd_warp_reduce<fd_max", "fd_warp_reduce<fd_min", 0}},
      {kRow, "warp_masked", "vectors_behind_the_row", {"if (j < 328)", "if (j < 336)", 2}},
      {kRow, "warp_shifted", "phase_of_the_row", {"% 8)", "% 4)", 0}},
      {kRow, "warp_shifted", "elements_behind_the_row", {"e < end", "e <= end", 1}},
      {kRow, "cta", "barrier_of_the_first_pass", {"fd_sync();", "", 0}},
      {kRow, "cta", "barrier_of_the_second_pass", {"fd_sync();", "", 1}},
      {kRow, "cta", "shared_buffers_of_two_passes", {"fd_smem<f32>(32", "fd_smem<f32>(0", 0}},
      {kRow,
       "cta",
       "warps_that_are_combined",
       {"fd_take_partials<fd_sum, 8>", "fd_take_partials<fd_sum, 4>", 0}},
      {kRow, "cta_masked", "vectors_behind_the_row", {"if (j < 4008)", "if (true)", 0}},
      {kRow, "cta_shifted", "whole_vectors", {"end - begin == 8", "true", 3}},
  };
}

class GeneratedFaultTest : public ::testing::TestWithParam<Planted> {};

TEST_P(GeneratedFaultTest, IsFound) {
  const Planted& planted = GetParam();
  for (const VariantCase& the_case : VariantCases()) {
    if (the_case.scheduler != planted.scheduler || the_case.variant != planted.variant) continue;
    PlanRunOptions options;
    options.device = the_case.archs.back();
    options.emulation.checker = planted.checker;
    options.fault = {planted.name, {planted.edit}};
    EXPECT_THAT(RunPlan(the_case.graph, options), StatusIs(absl::StatusCode::kAborted));
  }
}

INSTANTIATE_TEST_SUITE_P(All, GeneratedFaultTest, ::testing::ValuesIn(AllPlanted()),
                         [](const auto& info) {
                           return absl::StrCat(schedule::Name(info.param.scheduler), "_",
                                               info.param.variant, "_", info.param.name);
                         });

}  // namespace
}  // namespace fusiond::codegen
