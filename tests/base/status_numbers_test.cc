#include "runtime/base/status_numbers.h"

#include "tests/support/status_matchers.h"

namespace fusiond::base {
namespace {

using ::fusiond::testing::StatusIs;

TEST(StatusNumbersTest, NumbersGoWithTheStatus) {
  const absl::Status plain = absl::InternalError("broken");
  EXPECT_FALSE(NumberOf(plain, "a").has_value());
  EXPECT_FALSE(NumberOf(absl::OkStatus(), "a").has_value());
  const absl::Status with = WithNumber(WithNumber(plain, "a", 7), "b", ~uint64_t{0});
  EXPECT_EQ(NumberOf(with, "a"), 7u);
  EXPECT_EQ(NumberOf(with, "b"), ~uint64_t{0});
}

TEST(StatusNumbersTest, MemoryNeedIsInTextAndNumbers) {
  EXPECT_FALSE(MemoryNeedOf(absl::ResourceExhaustedError("no memory")).has_value());
  const absl::Status status =
      WithMemoryNeed(absl::ResourceExhaustedError("workspace"), {3000, 2000, 500});
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted,
                               ::testing::Eq("workspace; 3000 bytes needed, 500 free of 2000")));
  const std::optional<MemoryNeed> need = MemoryNeedOf(status);
  ASSERT_TRUE(need.has_value());
  EXPECT_EQ(need->needed_bytes, 3000u);
  EXPECT_EQ(need->limit_bytes, 2000u);
  EXPECT_EQ(need->free_bytes, 500u);
}

}  // namespace
}  // namespace fusiond::base
