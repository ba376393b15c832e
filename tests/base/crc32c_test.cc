#include "runtime/base/crc32c.h"

#include <gtest/gtest.h>

#include <string>

namespace fusiond::base {
namespace {

// Vectors of RFC 3720 appendix B.4.
TEST(Crc32cTest, MatchesRfc3720Vectors) {
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(Crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  EXPECT_EQ(Crc32c("123456789"), 0xe3069283u);
}

TEST(Crc32cTest, ContinuesOverPieces) {
  std::string data = "the quick brown fox jumps over the lazy dog";
  for (size_t cut = 0; cut <= data.size(); ++cut) {
    EXPECT_EQ(Crc32c(data.substr(cut), Crc32c(data.substr(0, cut))), Crc32c(data)) << cut;
  }
}

}  // namespace
}  // namespace fusiond::base
