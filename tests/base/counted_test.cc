#include "runtime/base/counted.h"

#include <gtest/gtest.h>

namespace fusiond::base {
namespace {

TEST(CountedTest, OneIsSingular) {
  EXPECT_EQ(Counted(0, "operand"), "0 operands");
  EXPECT_EQ(Counted(1, "operand"), "1 operand");
  EXPECT_EQ(Counted(size_t{2}, "operand"), "2 operands");
  EXPECT_EQ(Counted(1, "entry", "entries"), "1 entry");
  EXPECT_EQ(Counted(2u, "entry", "entries"), "2 entries");
}

}  // namespace
}  // namespace fusiond::base
