// Each planted fault is found: by what, and with which words.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <ostream>

#include "tests/emulation/cases.h"
#include "tests/emulation/emulation.h"
#include "tests/emulation/plant.h"
#include "tests/support/status_matchers.h"

namespace fusiond::emulation {
namespace {

using ::fusiond::testing::IsOk;
using ::fusiond::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

struct Planted {
  std::string kernel;
  Fault fault;
  std::string message;  // part of what is said
  Checker checker = Checker::kPlain;
};

void PrintTo(const Planted& planted, std::ostream* out) {
  *out << planted.kernel << ": " << planted.fault.name;
}

// Most faults show without a sanitizer. Races show under ThreadSanitizer whatever the schedule.
std::vector<Planted> AllPlanted() {
  return {
      // Barriers of a CTA.
      {"row_scale",
       {"dropped barrier before the read", {{"fd_sync();  // the sums are", "//"}}},
       "tensor 1"},
      {"row_scale",
       {"dropped barrier after the read", {{"fd_sync();  // the sums have", "//"}}},
       "tensor 1"},
      {"row_scale",
       {"dropped barrier after the read, race", {{"fd_sync();  // the sums have", "//"}}},
       "data race",
       Checker::kThread},
      {"row_scale",
       {"early return of a thread",
        {{"fd_sync();  // the sums are", "if (fd_thread() == 5) return; fd_sync();  //"}}},
       "has returned"},
      {"row_scale",
       {"barrier in divergent code",
        {{"fd_sync();  // the sums are", "if (fd_warp() == 1) fd_sync(); else\nfd_sync(); //"}}},
       "while others of the CTA are at another one"},
      // Bounds and masks.
      {"row_scale",
       {"column bound", {{"c < columns; c += 128) to", "c <= columns; c += 128) to"}}},
       "past the end of tensor"},
      {"row_scale", {"row bound", {{"row < rows", "row <= rows"}}}, "past the end of tensor"},
      {"row_scale",
       {"row bound, sanitizer", {{"row < rows", "row <= rows"}}},
       "heap-buffer-overflow",
       Checker::kAddress},
      {"row_scale",
       {"shared buffer too small", {{"fd_smem<f32>(0, 4)", "fd_smem<f32>(0, 3)"}}},
       "past the shared buffer at 0"},
      {"row_scale",
       {"shared buffer too small, sanitizer", {{"fd_smem<f32>(0, 4)", "fd_smem<f32>(0, 3)"}}},
       "heap-buffer-overflow",
       Checker::kAddress},
      {"row_scale",
       {"shared buffer beyond the arena", {{"fd_smem<f32>(0, 4)", "fd_smem<f32>(16, 4)"}}},
       "leaves the 16 bytes launched"},
      {"row_scale",
       {"shared buffers overlap",
        {{"fd_smem<f32>(0, 4)", "(fd_smem<u8>(0, 8), fd_smem<f32>(0, 4))"}}},
       "overlaps [0, 8)"},
      {"row_scale",
       {"reduction over half a warp",
        {{"fd_warp_reduce<fd_sum, 32>", "fd_warp_reduce<fd_sum, 16>"}}},
       "wrong"},
      {"row_scale",
       {"shuffle from outside its mask",
        {{"fd_warp_reduce<fd_sum, 32>(sum)",
          "fd_shuffle_xor(sum[0], 16, fd_lane() < 16 ? 0xffffu : 0xffff0000u)"}}},
       "a shuffle from a lane outside its mask"},
      {"row_scale",
       {"mask without the caller",
        {{"fd_warp_reduce<fd_sum, 32>(sum)", "fd_shuffle(sum[0], 0, 0xffffu)"}}},
       "outside its own mask"},
      {"row_scale",
       {"masks that disagree",
        {{"fd_warp_reduce<fd_sum, 32>(sum)",
          "fd_shuffle(sum[0], fd_lane(), fd_lane() < 16 ? ~0u : 0xffff0000u)"}}},
       "another mask"},
      {"row_scale",
       {"one lane absent from a shuffle",
        {{"fd_warp_reduce<fd_sum, 32>(sum)", "if (fd_lane() != 7) fd_shuffle(sum[0], 0)"}}},
       "deadlock"},
      {"row_scale",
       {"shuffles of one warp in two places",
        {{"fd_warp_reduce<fd_sum, 32>(sum)",
          "fd_lane() < 16 ? fd_shuffle(sum[0], 0) :\nfd_shuffle(sum[0], 1)"}}},
       "meets another one"},
      {"pointwise", {"tail guard", {{"i + 8 <= n", "i < n"}}}, "tensor"},
      {"pointwise",
       {"tail guard, sanitizer", {{"i + 8 <= n", "i < n"}}},
       "heap-buffer-overflow",
       Checker::kAddress},
      {"pointwise",
       {"misaligned vector", {{"(x + i)", "(x + i + 1)"}}},
       "not aligned to its vector"},
      {"pointwise",
       {"index of a register array", {{"k < 8; k++) r", "k < 9; k++) r"}}},
       "stack-buffer-overflow",
       Checker::kAddress},
      {"pointwise",
       {"shift by too much", {{"u32 i = (", "u32 i = (1 << (n >> 4) & 0) + ("}}},
       "shift exponent",
       Checker::kAddress},
      // Named barriers.
      {"relay", {"dropped wait", {{"fd_sync_named(1, 128);  // full", ""}}}, "deadlock"},
      {"relay",
       {"arrives instead of waiting", {{"fd_sync_named(2, 128);", "fd_sync_arrive(2, 128);"}}},
       ""},
      {"relay",
       {"arrives instead of waiting, race",
        {{"fd_sync_named(2, 128);", "fd_sync_arrive(2, 128);"}}},
       "data race",
       Checker::kThread},
      {"relay",
       {"thread counts that disagree", {{"fd_sync_named(2, 128)", "fd_sync_named(2, 96)"}}},
       "expect"},
      {"relay",
       {"wrong barrier", {{"fd_sync_arrive(2, 128)", "fd_sync_arrive(3, 128)"}}},
       "deadlock"},
      // Barriers in shared memory and bulk copies.
      {"ring",
       {"dropped wait for the copy", {{"fd_mbarrier_wait(full", "(void)(full"}}},
       "more arrivals at an mbarrier"},
      {"ring", {"dropped wait for the row", {{"fd_mbarrier_wait(met", "(void)(met"}}}, "tensor 1"},
      {"ring",
       {"stage refilled too early",
        {{"if (t == 0 && k + kStages < mine) refill(k + kStages);", ""},
         {"const fd_vec<f32, 4> v",
          "if (t == 0 && k + kStages < mine) refill(k + kStages);\nconst fd_vec<f32, 4> v"}}},
       "of ring"},
      {"ring",
       {"stage refilled too early, race",
        {{"if (t == 0 && k + kStages < mine) refill(k + kStages);", ""},
         {"const fd_vec<f32, 4> v",
          "if (t == 0 && k + kStages < mine) refill(k + kStages);\nconst fd_vec<f32, 4> v"}}},
       "data race",
       Checker::kThread},
      {"ring",
       {"arrival before the warp has read", {{"fd_sync_warp();", ""}}},
       "data race",
       Checker::kThread},
      {"ring", {"parity", {{"k / kStages & 1", "0"}}}, "more arrivals at an mbarrier"},
      {"ring",
       {"too few bytes expected", {{"kColumns * 4);\n    fd_copy", "kColumns * 2);\n    fd_copy"}}},
       "deadlock"},
      {"ring",
       {"no fence after init", {{"fd_mbarrier_init_fence();", ""}}},
       "no fd_mbarrier_init_fence"},
      {"ring", {"no init", {{"s < 2; s++", "s < 1; s++"}}}, "nobody initialised"},
      {"ring", {"no barrier after init", {{"fd_sync();", ""}}}, "nobody initialised"},
      {"ring",
       {"too few arrivals counted",
        {{"fd_mbarrier_init(met + s, 2)", "fd_mbarrier_init(met + s, 1)"}}},
       ""},
      {"ring",
       {"copies past the row",
        {{"kColumns * 4, full", "kColumns * 4 + 16, full"},
         {"kColumns * 4);\n    fd_copy", "kColumns * 4 + 16);\n    fd_copy"}}},
       "a copy"},
      {"ring",
       {"copies too far",
        {{"k < kStages && k < mine", "k < kStages"}, {"k + kStages < mine", "true"}}},
       "a copy from outside one tensor"},
      {"ring",
       {"wait by one lane",
        {{"fd_mbarrier_wait(full", "if (fd_lane() == 0) fd_mbarrier_wait(full"}}},
       "fd_mbarrier_wait at"},
      {"ring",
       {"barrier written over", {{"fd_sync();", "fd_sync(); if (t == 0) full[1].state = 0;"}}},
       "written over"},
      {"ring",
       {"ends with a copy under way",
        {{"k < mine; k++) {\n    fd_mbarrier_wait", "k + 1 < mine; k++) {\n    fd_mbarrier_wait"}}},
       "a copy into its shared memory is under way"},
      // cp.async.
      {"pipeline",
       {"waits for one group too few", {{"fd_copy_wait<2>", "fd_copy_wait<3>"}}},
       "returns before copies"},
      {"pipeline",
       {"dropped barrier before the read", {{"fd_sync();  // everyone's", "//"}}},
       "tensor 1"},
      {"pipeline",
       {"dropped barrier after the read", {{"fd_sync();  // everyone has", "//"}}},
       "tensor 1"},
      {"pipeline", {"dropped commit", {{"fd_copy_commit();", ""}}}, "returns before copies"},
      {"pipeline", {"row guard", {{"if (row < rows)", ""}}}, "a copy from outside one tensor"},
      // Clusters.
      {"cluster",
       {"dropped first cluster barrier", {{"fd_cluster_sync();  // barriers", "//"}}},
       "before the first fd_cluster_sync"},
      {"cluster",
       {"dropped last cluster barrier", {{"fd_cluster_sync();  // nobody", "//"}}},
       "CTA that has ended"},
      {"cluster",
       {"rank beyond the cluster", {{"(rank + 1) % size", "rank + 1"}}},
       "no CTA of rank 2"},
      {"cluster",
       {"dropped wait for remote stores", {{"fd_mbarrier_wait_cluster", "(void)sizeof"}}},
       "a copy into its shared memory"},
      {"cluster",
       {"too few bytes expected", {{"size * 2 * 4", "size * 4"}}},
       "a copy into its shared memory"},
      {"cluster",
       {"one CTA misses the cluster barrier",
        {{"fd_cluster_sync();  // nobody", "if (rank == 0) fd_cluster_arrive();  //"}}},
       "between fd_cluster_arrive and fd_cluster_wait"},
      // Dependent launch.
      {"chain", {"dropped wait for the primary", {{"fd_wait_primary();", ""}}}, "tensor 2"},
      {"chain",
       {"dropped wait for the primary, race", {{"fd_wait_primary();", ""}}},
       "data race",
       Checker::kThread},
      {"chain", {"thread bound", {{"c >= columns", "c > columns"}}}, "past the end of tensor"},
      {"chain", {"count bound", {{"i < count", "i <= count"}}}, "past the end of tensor"},
      {"chain",
       {"two CTAs write one place", {{"partial[(u64)fd_cta() * columns + c] =", "partial[c] ="}}},
       "data race",
       Checker::kThread},
  };
}

class FaultsTest : public ::testing::TestWithParam<Planted> {};

TEST_P(FaultsTest, IsFound) {
  const Planted& planted = GetParam();
  for (const Case& each : AllCases()) {
    if (each.name != planted.kernel) continue;
    ASSERT_OK_AND_ASSIGN(std::string body, Plant(each.body, planted.fault));
    EXPECT_THAT(RunCase(each, body, Emulator({.checker = planted.checker, .seconds = 20})),
                StatusIs(absl::StatusCode::kAborted, HasSubstr(planted.message)));
    return;
  }
  FAIL() << "no kernel " << planted.kernel;
}

std::string TestName(const Planted& planted) {
  std::string name = planted.kernel + "_" + planted.fault.name;
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(Faults, FaultsTest, ::testing::ValuesIn(AllPlanted()),
                         [](const auto& info) { return TestName(info.param); });

TEST(PlantTest, EditsAreDoneInTurn) {
  ASSERT_OK_AND_ASSIGN(std::string text, Plant("a b a b", {"two", {{"b", "c", 1}, {"a", "", 0}}}));
  EXPECT_EQ(text, " b a c");
}

TEST(PlantTest, AbsentTextIsNotFound) {
  EXPECT_THAT(Plant("a b", {"gone", {{"b", "", 1}}}),
              StatusIs(absl::StatusCode::kNotFound, AllOf(HasSubstr("gone"), HasSubstr("\"b\""))));
}

}  // namespace
}  // namespace fusiond::emulation
