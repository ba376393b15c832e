// GoogleTest matchers for absl::Status and absl::StatusOr: EXPECT_THAT(s, IsOk()),
// EXPECT_THAT(s, StatusIs(absl::StatusCode::kNotFound, HasSubstr("key"))), and
// ASSERT_OK_AND_ASSIGN. A failure reads
//
//   Expected: has code NOT_FOUND and a message that has substring "key"
//     Actual: INTERNAL: no such lock, whose code is INTERNAL
#ifndef FUSIOND_TESTS_SUPPORT_STATUS_MATCHERS_H_
#define FUSIOND_TESTS_SUPPORT_STATUS_MATCHERS_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/base/status_macros.h"

namespace absl {  // NOLINT(abseil-no-namespace): where GoogleTest looks

// GoogleTest finds it by the argument's namespace, and would print bytes.
template <typename T>
void PrintTo(const StatusOr<T>& result, std::ostream* out) {
  *out << result.status();
}

}  // namespace absl

namespace fusiond::testing {

inline const absl::Status& GetStatus(const absl::Status& status) { return status; }
template <typename T>
const absl::Status& GetStatus(const absl::StatusOr<T>& status) {
  return status.status();
}

MATCHER(IsOk, negation ? "is an error" : "is OK") { return GetStatus(arg).ok(); }

// Of a Status or StatusOr, whatever it holds.
class StatusIsMatcher {
 public:
  using is_gtest_matcher = void;

  StatusIsMatcher(absl::StatusCode code, ::testing::Matcher<std::string> message)
      : code_(code), message_(std::move(message)) {}

  template <typename StatusLike>
  bool MatchAndExplain(const StatusLike& actual, ::testing::MatchResultListener* listener) const {
    const absl::Status& status = GetStatus(actual);
    if (status.code() != code_) {
      *listener << "whose code is " << absl::StatusCodeToString(status.code());
      return false;
    }
    ::testing::StringMatchResultListener why;
    if (message_.MatchAndExplain(std::string(status.message()), &why)) return true;
    *listener << "whose message does not match";
    if (!why.str().empty()) *listener << ", " << why.str();
    return false;
  }

  void DescribeTo(std::ostream* out) const { Describe("has", out); }
  void DescribeNegationTo(std::ostream* out) const { Describe("does not have", out); }

 private:
  void Describe(const char* verb, std::ostream* out) const {
    *out << verb << " code " << absl::StatusCodeToString(code_) << " and a message that ";
    message_.DescribeTo(out);
  }

  const absl::StatusCode code_;
  const ::testing::Matcher<std::string> message_;
};

template <typename Message>
StatusIsMatcher StatusIs(absl::StatusCode code, const Message& message) {
  return {code, ::testing::SafeMatcherCast<std::string>(message)};
}
inline StatusIsMatcher StatusIs(absl::StatusCode code) { return StatusIs(code, ::testing::_); }

}  // namespace fusiond::testing

#define ASSERT_OK_AND_ASSIGN(lhs, expr) \
  ASSERT_OK_AND_ASSIGN_INNER(FUSIOND_CONCAT(fusiond_test_statusor_, __LINE__), lhs, expr)
#define ASSERT_OK_AND_ASSIGN_INNER(var, lhs, expr)       \
  auto var = (expr);                                     \
  ASSERT_THAT(var.status(), ::fusiond::testing::IsOk()); \
  lhs = *std::move(var)

#endif  // FUSIOND_TESTS_SUPPORT_STATUS_MATCHERS_H_
