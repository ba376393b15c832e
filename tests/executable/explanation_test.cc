// What people read of an explanation.
#include "runtime/executable/explanation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace fusiond::executable {
namespace {

using v1::Explanation;

DeviceInfo Device(const std::string& name) { return *ProfileByName(name); }

// Two kernels, the second a copy.
Explanation Sample() {
  Explanation e;
  e.set_arch("sm_90a");
  e.set_profile("h200");
  e.set_sm_count(132);
  e.add_inputs("bf16[64,4096]{4096,1}, 16-byte aligned");
  e.add_outputs("f32[64]{1} over input 0");
  (*e.mutable_options())["math"] = "strict";
  (*e.mutable_options())["excess_precision"] = "true";
  e.set_canonical_ir("fir 1\n%0 = input : bf16[64,4096]{4096,1}\n%1 = sum %0\noutput %1\n");
  e.set_workspace_bytes(512);
  e.add_notes("a note");
  e.add_cuts("3 nodes: too many arguments");
  Explanation::Segment* s = e.add_segments();
  s->add_nodes(1);
  s->set_space("64 rows x 4096 columns");
  s->set_last_resort(true);
  Explanation::Tensor* t = s->add_tensors();
  t->set_name("input 0");
  t->set_dtype("bf16");
  t->set_read_bytes(524288);
  t->set_access_bytes(16);
  Explanation::Choice* c = s->add_choices();
  c->set_schedule("row_persistent/warp{threads=128}");
  c->set_refused("its kernels spill 8 bytes a thread");
  c = s->add_choices();
  c->set_schedule("row_persistent/cta{threads=64}");
  c->set_meaning("a row a CTA");
  c->set_dram_bytes(524544);
  c->set_kernels(1);
  c->set_microseconds(1.625);
  c->set_chosen(true);
  c = s->add_choices();
  c->set_schedule("row_stream/cta{threads=512}");
  c->set_dram_bytes(524544);
  c->set_kernels(2);
  c->set_microseconds(3.25);
  c = s->add_choices();
  c->set_schedule("column");
  c->set_refused("it has row reductions");
  Explanation::Buffer* b = s->add_held();
  b->set_what("input 0");
  b->set_bytes(128);
  b = s->add_held();
  b->set_what("%1");
  b->set_bytes(64);
  b = s->add_held();
  b->set_what("ring of 3 stages for input 0");
  b->set_shared(true);
  b->set_bytes(24576);
  Explanation::Kernel* k = s->add_kernels();
  k->set_name("fd_k0_row_persistent");
  k->set_entry("fd_row_persistent");
  for (int64_t n : {64, 2, 1}) k->add_grid(n);
  k->set_threads(64);
  k->set_cluster(2);
  k->set_dynamic_smem_bytes(24576);
  SetResources({.registers = 40, .spill_bytes = 0, .stack_bytes = 0, .static_smem_bytes = 0},
               Device("h200"), *k);
  s = e.add_segments();
  s->set_copy(true);
  s->set_space("64 elements");
  k = s->add_kernels();
  k->set_name("fd_k1_pointwise");
  for (int i = 0; i < 3; ++i) k->add_grid(1);
  k->set_threads(128);
  k->set_cluster(1);
  k->set_pdl(true);
  k->set_problem("NVRTC not found");
  return e;
}

TEST(ExplanationTest, ReadsAtAGlance) {
  EXPECT_EQ(Print(Sample()), R"(target      h200, arch sm_90a, 132 SMs
option      excess_precision=true
option      math=strict
input 0     bf16[64,4096]{4096,1}, 16-byte aligned
output 0    f32[64]{1} over input 0
all         2 segments, 2 kernels, 524.5 kB moved, 1.62 us estimated, 512 B of workspace
cut         3 nodes: too many arguments
note        a note

canonical IR; in front, the segments that compute a node
            %0 = input : bf16[64,4096]{4096,1}
0           %1 = sum %0
            output %1

segment 0
  space       64 rows x 4096 columns
              one op, the last resort: no scheduler took it with others
  schedule    row_persistent/cta{threads=64}
              a row a CTA
  estimate    1 kernel, 524.5 kB moved, 1.62 us estimated
  kernel      fd_k0_row_persistent: grid 64x2, 64 threads, clusters of 2; 24.6 kB shared memory; 40 registers, no spills; 9 CTAs an SM
  memory      input 0 bf16, read 524.3 kB, 16 B an access
  held        input 0 128 B, %1 64 B: 192 B of a thread's registers
  held        ring of 3 stages for input 0 24.6 kB: 24.6 kB of a CTA's shared memory
  refused     row_persistent/warp{threads=128}: its kernels spill 8 bytes a thread
  other       row_stream/cta{threads=512}: 2 kernels, 524.5 kB moved, 3.25 us estimated
  refused     column: it has row reductions

segment 1
  space       64 elements
              a copy to outputs that could not be written in place
  kernel      fd_k1_pointwise: grid 1, 128 threads; no shared memory; begins before the kernel ahead has ended; registers not known: NVRTC not found
)");
}

TEST(ExplanationTest, EmptyMessageIsNoTrouble) {
  EXPECT_EQ(Chosen(Explanation::Segment()), nullptr);
  EXPECT_EQ(CostOf(Explanation()).kernels, 0);
  EXPECT_NE(Print(Explanation()), "");
  Explanation::Kernel kernel;
  SetResources({}, Device("h200"), kernel);
  EXPECT_EQ(kernel.resources().ctas_per_sm(), 0);
}

// Worked out by hand from the programming guide's table.
TEST(ExplanationTest, WhatIsShortFirstLimitsTheCtasOfAnSm) {
  const auto ctas = [](const std::string& device, int threads, int registers, int64_t smem) {
    Explanation::Kernel kernel;
    kernel.set_threads(threads);
    kernel.set_dynamic_smem_bytes(smem);
    SetResources(
        {.registers = registers, .spill_bytes = 0, .stack_bytes = 0, .static_smem_bytes = 0},
        Device(device), kernel);
    return kernel.resources().ctas_per_sm();
  };
  EXPECT_EQ(ctas("h200", 128, 32, 0), 16);  // threads
  EXPECT_EQ(ctas("l40s", 128, 32, 0), 12);
  EXPECT_EQ(ctas("h200", 32, 16, 0), 32);  // CTAs
  EXPECT_EQ(ctas("sm_86", 32, 16, 0), 16);
  EXPECT_EQ(ctas("l40s", 32, 16, 0), 24);
  EXPECT_EQ(ctas("h200", 512, 128, 0), 1);  // registers
  EXPECT_EQ(ctas("h200", 512, 64, 0), 2);
  EXPECT_EQ(ctas("h200", 512, 65, 0), 1);           // in units of 8 a thread
  EXPECT_EQ(ctas("h200", 128, 32, 100 * 1024), 2);  // shared memory
  EXPECT_EQ(ctas("h200", 128, 32, 114 * 1024), 1);  // and 1 KiB of each CTA is the system's
}

TEST(ExplanationTest, BytesAreRoundedWhereTheyAreMany) {
  EXPECT_EQ(DecimalBytes(0), "0 B");
  EXPECT_EQ(DecimalBytes(9999), "9999 B");
  EXPECT_EQ(DecimalBytes(10000), "10.0 kB");
  EXPECT_EQ(DecimalBytes(33554432), "33.6 MB");
  EXPECT_EQ(DecimalBytes(5000000000), "5.0 GB");
}

}  // namespace
}  // namespace fusiond::executable
