// GoogleTest matchers for absl::Status and absl::StatusOr: EXPECT_THAT(s, IsOk()),
// EXPECT_THAT(s, StatusIs(absl::StatusCode::kNotFound, HasSubstr("key"))), and
// ASSERT_OK_AND_ASSIGN.
#ifndef FUSIOND_TESTS_SUPPORT_STATUS_MATCHERS_H_
#define FUSIOND_TESTS_SUPPORT_STATUS_MATCHERS_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/base/status_macros.h"

namespace fusiond::testing {

inline const absl::Status& GetStatus(const absl::Status& status) { return status; }
template <typename T>
const absl::Status& GetStatus(const absl::StatusOr<T>& status) {
  return status.status();
}

MATCHER(IsOk, "is OK") {
  *result_listener << GetStatus(arg).ToString();
  return GetStatus(arg).ok();
}

MATCHER_P2(StatusIs, code, message, "") {
  const absl::Status& status = GetStatus(arg);
  *result_listener << status.ToString();
  return status.code() == code &&
         ::testing::SafeMatcherCast<std::string>(message).Matches(std::string(status.message()));
}

MATCHER_P(StatusIs, code, "") {
  *result_listener << GetStatus(arg).ToString();
  return GetStatus(arg).code() == code;
}

}  // namespace fusiond::testing

#define ASSERT_OK_AND_ASSIGN(lhs, expr) \
  ASSERT_OK_AND_ASSIGN_INNER(FUSIOND_CONCAT(fusiond_test_statusor_, __LINE__), lhs, expr)
#define ASSERT_OK_AND_ASSIGN_INNER(var, lhs, expr)       \
  auto var = (expr);                                     \
  ASSERT_THAT(var.status(), ::fusiond::testing::IsOk()); \
  lhs = *std::move(var)

#endif  // FUSIOND_TESTS_SUPPORT_STATUS_MATCHERS_H_
