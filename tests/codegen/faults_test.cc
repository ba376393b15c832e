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
  constexpr emulation::Checker kRaces = emulation::Checker::kThread;
  constexpr emulation::Checker kBounds = emulation::Checker::kAddress;
  constexpr SchedulerId kRow = SchedulerId::kRowPersistent;
  constexpr SchedulerId kStream = SchedulerId::kRowStream;
  constexpr SchedulerId kFlat = SchedulerId::kPointwise;
  constexpr SchedulerId kTile = SchedulerId::kTranspose;
  constexpr SchedulerId kColumn = SchedulerId::kColumn;
  constexpr SchedulerId kBoth = SchedulerId::kRowColumn;
  return {
      {kFlat, "flat", "bound_of_the_vectors", {"if (i < n)", "if (i <= n)", 1}},
      {kFlat, "flat", "step_of_the_unrolled_vectors", {"first + v * ", "first + v * 2 * ", 0}},
      {kFlat, "flat_tail", "cut_of_the_last_load", {"if (i + 8 <= n)", "if (i <= n)", 0}, kBounds},
      {kFlat, "flat_tail", "cut_of_the_last_store", {"if (i + 8 <= n)", "if (i <= n)", 1}},
      {kFlat, "flat_tail", "length_of_the_last_store", {", n - i)", ", n - i - 1)", 1}},
      {kFlat, "vector", "coordinate_of_the_columns", {"i % 64", "i % 32", 0}},
      {kTile, "tile", "barrier_before_the_tile_is_read", {"fd_sync();", "", 0}},
      {kTile, "tile", "pitch_of_the_tile", {"+ y, 66)", "+ y, 64)", 0}},
      {kTile, "tile", "neighbours_of_a_tile", {"% 3 * 64", "% 2 * 64", 0}},
      {kTile, "tile_masked", "elements_behind_the_end", {"c1 < 100", "c1 < 104", 0}, kBounds},
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
      {kColumn, "whole", "barrier_before_the_sums_meet", {"fd_sync();", "", 0}},
      {kColumn, "whole", "parts_of_a_column", {"i < 8; i++", "i < 7; i++", 0}},
      {kColumn,
       "whole_masked",
       "threads_behind_the_columns",
       {"if (j < 504)", "if (true)", 0},
       kBounds},
      {kColumn, "split", "rows_behind_the_part", {"if (row < end)", "if (true)", 0}},
      {kColumn, "split", "wait_for_the_parts", {"fd_wait_primary();", "", 0}},
      {kColumn, "split_masked", "columns_behind_the_end", {"if (j >= 248) break;", "", 0}},
      {kBoth, "bulk_warp", "lanes_that_still_read", {"fd_sync_warp();", "", 0}, kRaces},
      {kBoth, "bulk_warp", "parity_of_the_stages", {"phase ^= 1;", "", 0}},
      {kBoth, "bulk_team", "wait_for_the_row", {"fd_mbarrier_wait(full + s, phase);", "", 0}},
      {kBoth, "bulk_team", "barrier_of_a_team", {"fd_sync_named(1 + team, 128);", "", 0}},
      {kBoth, "bulk_team", "rows_behind_the_last", {"i + 3 < count", "true", 0}},
      {kBoth, "bulk_team", "bytes_of_a_row", {"p0 + b0, 4096", "p0 + b0, 4080", 0}},
      {kBoth, "bulk_team", "wait_for_the_parts", {"fd_wait_primary();", "", 0}},
      {kBoth, "bulk_cta", "slots_in_turn", {"(u32)(i & 1)", "0", 0}, kRaces},
      {kBoth,
       "bulk_cluster",
       "wait_for_the_cluster",
       {"fd_mbarrier_wait_cluster(meetings + 0 + (u32)((i - 1) % 4), (u32)((i - 1) / 4) & 1);", "",
        0}},
      {kBoth, "bulk_cluster", "slot_of_the_row", {"+ (u32)(i % 4) * 32", "+ 0", 0}},
      {kBoth, "bulk_cluster", "statistics_of_the_row_before", {"((i - 1) % 32)", "(i % 32)", 0}},
      {kBoth, "bulk_cluster", "columns_of_another_cta", {"if (j < right)", "if (true)", 2}},
      {kBoth,
       "bulk_cluster",
       "stage_of_the_row_before",
       {"before = (s + 5)", "before = (s + 4)", 0}},
      {kBoth,
       "bulk_cluster",
       "warps_that_have_read",
       {"if (fd_lane() == 0) fd_mbarrier_arrive(empty + before);", "", 0}},
      {kBoth, "bulk_cluster", "part_of_the_cluster", {"q0 + first *", "q0 + fd_cta() *", 0}},
      {kBoth, "bulk_cluster", "barriers_that_are_there", {"fd_cluster_sync();", "fd_sync();", 0}},
      {kRow, "cluster", "barriers_that_are_there", {"fd_cluster_sync();", "fd_sync();", 0}},
      {kRow, "cluster", "bytes_of_the_parts", {"(barriers + 0, 256)", "(barriers + 0, 252)", 0}},
      {kRow, "cluster", "writer_of_a_row", {"t == 0 && rank == 0", "t == 0 && rank == 8", 0}},
      {kRow, "cluster_masked", "columns_of_another_cta", {"if (j < right)", "if (true)", 0}},
      {kRow, "cluster_shifted", "columns_of_another_cta", {" && (u32)(j + shift) < right", "", 2}},
      {kBoth, "bulk_team", "end_of_the_rows", {"fd_sync();  // the arena is free", "", 0}},
      {kBoth, "async_warp", "copies_that_have_landed", {"fd_copy_wait<2>", "fd_copy_wait<3>", 0}},
      {kBoth,
       "async_team",
       "rows_behind_the_last",
       {"if (i < count) {\n    const", "if (true) {\n const", 0}},
      {kBoth, "async_team", "dropped_commit", {"fd_copy_commit();", "", 0}},
      {kBoth, "async_warp", "sums_that_are_there", {"fd_sync();  // every team's", "//", 0}},
      {kBoth, "async_team", "sums_of_the_other_team", {"fd_sync();  // team 1's", "//", 0}},
      {kBoth, "direct_warp", "statistics_behind_the_rows", {"mine < n ? mine : n - 1", "mine", 0}},
      {kBoth, "bulk_team", "statistics_of_another_row", {"(u32)(i % 32)", "0", 0}},
      {kBoth, "direct_team", "teams_that_are_added", {"q < 4; q++", "q < 3; q++", 0}},
      {kBoth, "direct_team", "columns_behind_the_end", {"if (j < 2047)", "if (true)", 1}},
      {kStream, "cta", "barrier_of_the_first_pass", {"fd_sync();", "", 0}},
      {kStream, "cta", "barrier_of_the_second_pass", {"fd_sync();", "", 1}},
      {kStream, "cta", "shared_buffers_of_two_passes", {"fd_smem<f32>(64", "fd_smem<f32>(0", 0}},
      {kStream,
       "cta",
       "warps_that_are_combined",
       {"fd_take_partials<fd_sum, 16>", "fd_take_partials<fd_sum, 8>", 0}},
      {kStream, "cta", "steps_of_a_row", {"left * 16384", "left * 8192", 0}},
      {kStream, "cta_masked", "bound_of_the_row", {"first < 120008", "first < 98304", 0}},
      {kStream,
       "cta_masked",
       "vectors_behind_the_row",
       {"if (j < 120008)", "if (true)", 0},
       kBounds},
      {kStream, "cta_masked", "barrier_of_the_moments", {"fd_sync();", "", 0}},
      {kStream,
       "cta_masked",
       "warps_that_are_merged",
       {"fd_take_online<16>", "fd_take_online<15>", 0}},
      {kStream,
       "cta_shifted",
       "elements_behind_the_row",
       {"if (i < begin || i >= end) v[i] = fd_lowest<T>();", "", 0}},
      {kStream, "split", "place_of_a_partial_result", {"+ fd_cta()]", "+ fd_cta() / 2]", 0}},
      {kStream, "split", "turns_of_the_ctas", {"(left * 6 + fd_cta())", "(left * 6)", 0}},
      {kStream, "split", "wait_for_the_kernel_ahead", {"fd_wait_primary();", "", 0}},
      {kStream,
       "split",
       "partial_results_that_are_combined",
       {"fd_combine_partials<fd_max, 6", "fd_combine_partials<fd_max, 2", 0}},
      {kStream,
       "split",
       "operator_that_combines",
       {"fd_combine_partials<fd_sum", "fd_combine_partials<fd_max", 0}},
      {kStream, "split_masked", "bound_of_the_row", {"first < 100008", "first < 98304", 0}},
      {kStream, "split_masked", "place_of_the_moments", {"(row * 6 + fd_cta())", "(row * 6)", 0}},
      {kStream,
       "split_masked",
       "moments_that_are_merged",
       {"fd_combine_online<fd_welford, 6>", "fd_combine_online<fd_welford, 5>", 0}},
      {kStream,
       "split_shifted",
       "place_of_the_exponentials",
       {"(row * 6 + fd_cta()), a", "(row * 6), a", 0}},
      {kStream,
       "split_shifted",
       "exponentials_of_another_maximum",
       {"a.sum * fd_exp(a.max - r.max)", "a.sum", 0}},
      {kStream, "split_shifted", "whole_vectors", {"end - begin == 8", "true", 0}, kBounds},
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
