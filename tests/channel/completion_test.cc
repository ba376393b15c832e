#include "runtime/channel/completion.h"

#include "tests/support/status_matchers.h"

namespace fusiond::channel {
namespace {

using ::fusiond::testing::IsOk;
using ::fusiond::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(CompletionTest, StatusNamesReasonIndexLimitAndActual) {
  Outcome outcome;
  outcome.code = CompletionCode::kInvalidArgument;
  outcome.reason = CompletionReason::kBufferRange;
  outcome.index = 2;
  outcome.limit = 4096;
  outcome.actual = 5000;
  CompletionEntry entry;
  SetCompletion(7, 9, outcome, &entry);
  EXPECT_EQ(entry.cookie, 7u);
  EXPECT_EQ(entry.epoch, 9u);
  EXPECT_THAT(ToStatus(entry),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("beyond the buffer's end"), HasSubstr("index 2"),
                             HasSubstr("limit 4096"), HasSubstr("actual 5000"))));
}

TEST(CompletionTest, MemoryNamesNeedFreeAndTotalF45) {
  Outcome outcome;
  outcome.code = CompletionCode::kResourceExhausted;
  outcome.reason = CompletionReason::kMemory;
  outcome.index = 12;
  outcome.limit = uint64_t{8} << 30;
  outcome.actual = 5000;
  CompletionEntry entry;
  SetCompletion(7, 9, outcome, &entry);
  EXPECT_THAT(ToStatus(entry),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       ::testing::Eq("out of memory: 5000 bytes needed, 12 MiB free of 8192 MiB")));
  entry.actual = 0;  // unknown
  EXPECT_THAT(ToStatus(entry), StatusIs(absl::StatusCode::kResourceExhausted,
                                        ::testing::Eq("out of memory: 12 MiB free of 8192 MiB")));
  entry.limit = 0;
  EXPECT_THAT(ToStatus(entry),
              StatusIs(absl::StatusCode::kResourceExhausted, ::testing::Eq("out of memory")));
}

// The code stands before the text wherever a status is printed.
TEST(CompletionTest, TextSaysSomethingAndNotTheCodeAgain) {
  CompletionEntry entry;
  for (uint32_t code = 1; code <= static_cast<uint32_t>(CompletionCode::kDraining); ++code) {
    for (uint32_t reason = 0; reason <= static_cast<uint32_t>(CompletionReason::kArguments);
         ++reason) {
      entry.code = code;
      entry.reason = reason;
      const absl::Status status = ToStatus(entry);
      EXPECT_NE(status.message(), "");
      EXPECT_THAT(std::string(status.message()),
                  Not(HasSubstr(absl::StatusCodeToString(status.code()))));
    }
  }
}

TEST(CompletionTest, EveryCodeHasItsStatus) {
  const absl::StatusCode expected[] = {
      absl::StatusCode::kOk,
      absl::StatusCode::kInvalidArgument,
      absl::StatusCode::kNotFound,
      absl::StatusCode::kFailedPrecondition,
      absl::StatusCode::kResourceExhausted,
      absl::StatusCode::kDeadlineExceeded,
      absl::StatusCode::kUnimplemented,
      absl::StatusCode::kInternal,
      absl::StatusCode::kAborted,
      absl::StatusCode::kUnavailable,
  };
  CompletionEntry entry;
  for (uint32_t code = 0; code < std::size(expected); ++code) {
    entry.code = code;
    EXPECT_EQ(ToStatus(entry).code(), expected[code]);
  }
}

TEST(CompletionTest, UnknownNumbersAreInternal) {
  CompletionEntry entry;
  EXPECT_THAT(ToStatus(entry), IsOk());
  entry.code = 10;
  EXPECT_THAT(ToStatus(entry), StatusIs(absl::StatusCode::kInternal));
  entry.code = 1;
  entry.reason = ~0u;
  EXPECT_THAT(ToStatus(entry), StatusIs(absl::StatusCode::kInternal));
}

}  // namespace
}  // namespace fusiond::channel
