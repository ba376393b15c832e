// Every pointwise op of the op table has a helper, and it means what the evaluator means; so do the
// conversions.
#include "tests/emulation/op_cases.h"

#include <gtest/gtest.h>

#include "tests/emulation/emulation.h"
#include "tests/support/status_matchers.h"

namespace fusiond::emulation {
namespace {

using ::fusiond::testing::IsOk;

class OpCasesTest : public ::testing::TestWithParam<Case> {};

TEST_P(OpCasesTest, HelpersAgreeWithTheEvaluator) {
  EXPECT_THAT(RunCase(GetParam(), GetParam().body, Emulator({.interleavings = {Interleaving{}}})),
              IsOk());
}

INSTANTIATE_TEST_SUITE_P(Conversions, OpCasesTest, ::testing::ValuesIn(ConversionCases()),
                         [](const auto& info) { return info.param.name; });
INSTANTIATE_TEST_SUITE_P(Types, OpCasesTest, ::testing::ValuesIn(OpCases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace fusiond::emulation
