// The hand-written kernels are right, under every interleaving and every checker.
#include "tests/emulation/cases.h"

#include <gtest/gtest.h>

#include "tests/emulation/emulation.h"
#include "tests/support/status_matchers.h"

namespace fusiond::emulation {
namespace {

using ::fusiond::testing::IsOk;

class CasesTest : public ::testing::TestWithParam<Case> {};

TEST_P(CasesTest, PlainGivesTheAnswerUnderSixInterleavings) {
  EXPECT_THAT(RunCase(GetParam(), GetParam().body, Emulator()), IsOk());
}

TEST_P(CasesTest, FurtherShufflesGiveTheSameBits) {
  RunOptions options;
  for (uint64_t seed = 100; seed < 140; seed++)
    options.interleavings.push_back({Order::kShuffled, seed % 2 == 0, seed});
  EXPECT_THAT(RunCase(GetParam(), GetParam().body, Emulator(options)), IsOk());
}

TEST_P(CasesTest, AddressSanitizerFindsNothing) {
  EXPECT_THAT(RunCase(GetParam(), GetParam().body, Emulator({.checker = Checker::kAddress})),
              IsOk());
}

TEST_P(CasesTest, ThreadSanitizerFindsNothing) {
  EXPECT_THAT(RunCase(GetParam(), GetParam().body, Emulator({.checker = Checker::kThread})),
              IsOk());
}

INSTANTIATE_TEST_SUITE_P(Kernels, CasesTest, ::testing::ValuesIn(AllCases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace fusiond::emulation
