// The commands that tell why kernels are what they are, against the real daemon.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/e2e/fusionctl_fixture.h"

namespace fusiond {
namespace {

using ::fusiond::testing::FusionctlTest;
using ::fusiond::testing::Ran;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

class ExplainTest : public FusionctlTest {};

TEST_F(ExplainTest, ScheduleTellsWhyKernelsAreWhatTheyAre) {
  daemon_.Serve();
  const Ran ran = Ctl({"explain", Good(), "--schedule", "--target", "h200"});
  EXPECT_EQ(ran.code, 0) << ran.output;
  EXPECT_THAT(ran.output, AllOf(HasSubstr("target      h200, arch sm_90a, 132 SMs\n"),
                                HasSubstr("0           %1 = neg %0 : f32[8]{1}\n"),
                                HasSubstr("  schedule    pointwise/flat{threads=128,"),
                                HasSubstr("  refused     column: it has no column reductions\n"),
                                ContainsRegex("fd_k0_pointwise: grid 1, 128 threads; no shared "
                                              "memory; [0-9]+ registers, no spills; [0-9]+ CTAs"),
                                Not(HasSubstr("signature"))));
  const Ran json = Ctl({"--json", "explain", Good(), "--schedule", "--target", "h200"});
  EXPECT_EQ(json.code, 0) << json.output;
  EXPECT_THAT(json.output,
              AllOf(HasSubstr("\"key\": \""), HasSubstr("\"registers\": "),
                    HasSubstr("\"canonical_ir\": \"fir 1\\n"), HasSubstr("\"microseconds\": "),
                    HasSubstr("\"refused\": \"it has no column reductions\"")));
  EXPECT_EQ(Ctl({"cache", "list"}).output, "no entries\n");  // nothing is stored
  const Ran cpu = Ctl({"explain", Good(), "--schedule"});
  EXPECT_EQ(cpu.code, 0) << cpu.output;
  EXPECT_THAT(cpu.output, HasSubstr("note        arch cpu has no kernels"));
  EXPECT_EQ(Ctl({"explain", Good(), "--schedule", "-o", "math=no"}).code, 1);
}

}  // namespace
}  // namespace fusiond
