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

class DiffTest : public FusionctlTest {
 protected:
  // The same graph with its inputs the other way round.
  std::string One() const {
    return File("one", "%a=input:f32[64,8]\n%b=input:f32[8]\n%c=exp %a\n%d=mul %c, %b\noutput %d");
  }
  std::string Two() const {
    return File("two", "%b=input:f32[8]\n%a=input:f32[64,8]\n%c=exp %a\n%d=mul %b, %c\noutput %d");
  }
  std::string Compile(const std::string& file, const std::string& target) const {
    const Ran ran = Ctl({"compile", file, "--target", target});
    EXPECT_EQ(ran.code, 0) << ran.output;
    return ran.output.substr(std::string("key         ").size(), 64);
  }
  static std::string FirstLine(const Ran& ran) {
    return ran.output.substr(0, ran.output.find('\n'));
  }
};

TEST_F(DiffTest, FirstLineSaysWhatIsTheSame) {
  daemon_.Serve();
  EXPECT_EQ(FirstLine(Ctl({"diff", One(), One(), "--target", "h200"})),
            "canonical IR: the same; schedules: the same; kernels: the same");
  EXPECT_EQ(FirstLine(Ctl({"diff", One(), Two(), "--target", "h200"})),
            "canonical IR: different, but in the order of inputs and outputs alone: A's inputs are "
            "B's 1, 0; schedules: the same; kernels: the same");
  const std::string log =
      File("log", "%a=input:f32[64,8]\n%b=input:f32[8]\n%c=log %a\n%d=mul %c, %b\noutput %d");
  const Ran ran = Ctl({"diff", One(), log, "--target", "h200"});
  EXPECT_EQ(ran.code, 0);
  EXPECT_THAT(
      FirstLine(ran),
      ContainsRegex("^canonical IR: different, first in A's '%2 = exp %0 : .*' and B's '%2 = "
                    "log %0 : .*'; schedules: the same; kernels: different, first in "
                    "fd_k0_pointwise, line [0-9]+$"));
  EXPECT_THAT(ran.output, AllOf(HasSubstr("\nplan: the same\n"), HasSubstr("\nA %2 = exp %0"),
                                HasSubstr("\nB %2 = log %0"), HasSubstr(" the same\n")));
  const Ran open = Ctl({"diff", Open() + ":64x4", Open() + ":65x4", "--target", "h200"});
  EXPECT_THAT(FirstLine(open), HasSubstr("A's '%0 = input : f32[64,4]{4,1}'"));
  EXPECT_EQ(FirstLine(Ctl({"diff", One(), One()})),
            "canonical IR: the same; schedules: none; kernels: none");
}

TEST_F(DiffTest, JsonHasTheVerdictsAndBothSides) {
  daemon_.Serve();
  const Ran ran = Ctl({"--json", "diff", One(), Two(), "--target", "h200"});
  EXPECT_EQ(ran.code, 0) << ran.output;
  EXPECT_THAT(ran.output,
              AllOf(HasSubstr("\"canonical_ir\": {\"same\": false, \"difference\": \"but in"),
                    HasSubstr("\"kernels\": {\"same\": true, \"difference\": \"\"}"),
                    HasSubstr("\"a\": {"), HasSubstr("\"b\": {"), HasSubstr("\"digest\": ")));
}

TEST_F(DiffTest, KeysStandForWhatWasCompiledUnderThem) {
  daemon_.Serve();
  const std::string ada = Compile(One(), "l40s"), hopper = Compile(One(), "h200");
  const Ran keys = Ctl({"diff", ada.substr(0, 16), hopper});
  EXPECT_THAT(FirstLine(keys), HasSubstr("canonical IR: the same; "));
  EXPECT_THAT(FirstLine(keys), HasSubstr("kernels: different, being for arch sm_89 and sm_90a"));
  // A file takes the target of the key, on either side.
  EXPECT_THAT(FirstLine(Ctl({"diff", ada, One()})), HasSubstr("kernels: the same"));
  EXPECT_THAT(FirstLine(Ctl({"diff", One(), ada})), HasSubstr("kernels: the same"));
  EXPECT_THAT(Ctl({"diff", One(), ada, "--target", "h200"}).output, HasSubstr("being for arch"));
  const Ran both = Ctl({"diff", ada, hopper, "--target", "h200"});
  EXPECT_EQ(both.code, 2);
  EXPECT_THAT(both.output, HasSubstr("--target and --option are of files"));
  EXPECT_EQ(Ctl({"diff", One(), "0123456789abcdef"}).code, 1);
  EXPECT_EQ(Ctl({"diff", One()}).code, 2);

  const Ran explained = Ctl({"explain", ada});
  EXPECT_EQ(explained.code, 0) << explained.output;
  EXPECT_THAT(explained.output, AllOf(HasSubstr("key  " + ada), HasSubstr("profile = l40s"),
                                      HasSubstr("cached: memory")));
  const Ran flags = Ctl({"explain", ada, "--target", "h200"});
  EXPECT_EQ(flags.code, 2);
  EXPECT_THAT(flags.output, HasSubstr("says target, extents and options itself"));
  EXPECT_THAT(Ctl({"explain", ada, "--schedule"}).output, HasSubstr("target      l40s"));
}

}  // namespace
}  // namespace fusiond
