#include "runtime/base/retry_hint.h"

#include "tests/support/status_matchers.h"

namespace fusiond::base {
namespace {

using ::fusiond::testing::StatusIs;

TEST(RetryHintTest, HintIsInTextAndPayload) {
  const absl::Status full = absl::ResourceExhaustedError("queue full");
  EXPECT_FALSE(RetryHint(full).has_value());
  EXPECT_FALSE(RetryHint(absl::OkStatus()).has_value());
  const absl::Status hinted = WithRetryHint(full, absl::Microseconds(1200));
  EXPECT_THAT(hinted, StatusIs(absl::StatusCode::kResourceExhausted,
                               ::testing::Eq("queue full; try again in 2 ms")));
  EXPECT_EQ(RetryHint(hinted), absl::Milliseconds(2));
}

}  // namespace
}  // namespace fusiond::base
