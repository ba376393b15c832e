#include "tests/support/status_matchers.h"

#include <sstream>

namespace fusiond::testing {
namespace {

using ::testing::HasSubstr;

template <typename StatusLike, typename Matcher>
std::string Explain(const Matcher& matcher, const StatusLike& status) {
  ::testing::StringMatchResultListener listener;
  const ::testing::Matcher<StatusLike> typed = matcher;
  std::ostringstream text;
  text << (typed.MatchAndExplain(status, &listener) ? "yes" : "no");
  text << "; expected: ";
  typed.DescribeTo(&text);
  text << "; actual: " << ::testing::PrintToString(status) << "; " << listener.str();
  return text.str();
}

const absl::Status kMissing = absl::NotFoundError("no key 5");

TEST(StatusMatchersTest, FailureNamesCodesAndMessage) {
  EXPECT_EQ(Explain(StatusIs(absl::StatusCode::kInternal, HasSubstr("key")), kMissing),
            "no; expected: has code INTERNAL and a message that has substring \"key\"; actual: "
            "NOT_FOUND: no key 5; whose code is NOT_FOUND");
  EXPECT_EQ(Explain(StatusIs(absl::StatusCode::kNotFound, HasSubstr("lock")), kMissing),
            "no; expected: has code NOT_FOUND and a message that has substring \"lock\"; actual: "
            "NOT_FOUND: no key 5; whose message does not match");
}

TEST(StatusMatchersTest, StatusOrIsPrintedAsItsStatus) {
  const absl::StatusOr<int> error = kMissing, fine = 3;
  EXPECT_THAT(Explain(StatusIs(absl::StatusCode::kInternal), error),
              HasSubstr("actual: NOT_FOUND: no key 5; whose code is NOT_FOUND"));
  EXPECT_THAT(Explain(IsOk(), error), HasSubstr("no; expected: is OK; actual: NOT_FOUND: no key"));
  EXPECT_THAT(Explain(IsOk(), fine), HasSubstr("yes; expected: is OK; actual: OK"));
}

TEST(StatusMatchersTest, CodeAndMessageDecide) {
  EXPECT_THAT(kMissing, StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(kMissing, StatusIs(absl::StatusCode::kNotFound, "no key 5"));
  EXPECT_THAT(kMissing, ::testing::Not(StatusIs(absl::StatusCode::kNotFound, "no key")));
  EXPECT_THAT(kMissing, ::testing::Not(IsOk()));
  EXPECT_THAT(absl::OkStatus(), ::testing::Not(StatusIs(absl::StatusCode::kNotFound)));
}

}  // namespace
}  // namespace fusiond::testing
