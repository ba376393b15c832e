#include "runtime/base/sha256.h"

#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"

namespace fusiond::base {
namespace {

using ::fusiond::testing::StatusIs;

TEST(Sha256Test, MatchesFips180Example) {
  EXPECT_EQ(Sha256("abc").Hex(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Sha256Test, HexRoundTrips) {
  Digest digest = Sha256("x");
  ASSERT_OK_AND_ASSIGN(Digest back, DigestFromHex(digest.Hex()));
  EXPECT_EQ(back, digest);
  EXPECT_THAT(DigestFromHex("zz"), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(DigestFromHex(std::string(64, 'g')), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(FieldHasherTest, F11_FieldBoundariesMatter) {
  auto hash = [](std::initializer_list<absl::string_view> fields) {
    FieldHasher hasher;
    for (absl::string_view field : fields) hasher.Field(field);
    return hasher.Finish();
  };
  EXPECT_NE(hash({"ab", "c"}), hash({"a", "bc"}));
  EXPECT_NE(hash({"", "abc"}), hash({"abc", ""}));
  EXPECT_NE(hash({"abc"}), hash({"abc", ""}));
}

}  // namespace
}  // namespace fusiond::base
