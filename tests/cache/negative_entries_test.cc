#include "server/cache/negative_entries.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "server/cache/pins.h"
#include "tests/support/fake_clock.h"
#include "tests/support/status_matchers.h"

namespace fusiond::cache {
namespace {

using ::fusiond::testing::StatusIs;

RequestKey KeyOf(int i) { return {base::Sha256(absl::StrCat(i))}; }

TEST(NegativeEntriesTest, F16_FailureIsKeptUntilItExpires) {
  testing::FakeClock clock;
  NegativeEntries entries(absl::Seconds(10), clock);
  EXPECT_TRUE(entries.Add(KeyOf(1), absl::InvalidArgumentError("node 3: IR-07")));
  clock.Advance(absl::Seconds(9));
  ASSERT_TRUE(entries.Find(KeyOf(1)).has_value());
  EXPECT_THAT(*entries.Find(KeyOf(1)),
              StatusIs(absl::StatusCode::kInvalidArgument, "node 3: IR-07"));
  EXPECT_FALSE(entries.Find(KeyOf(2)).has_value());
  clock.Advance(absl::Seconds(1));
  EXPECT_FALSE(entries.Find(KeyOf(1)).has_value());
  EXPECT_EQ(entries.Size(), 0u);
}

TEST(NegativeEntriesTest, F22_OnlyWhatTheRequestDecidesIsKept) {
  testing::FakeClock clock;
  NegativeEntries entries(absl::Minutes(1), clock);
  for (absl::StatusCode code :
       {absl::StatusCode::kResourceExhausted, absl::StatusCode::kDeadlineExceeded,
        absl::StatusCode::kCancelled, absl::StatusCode::kUnavailable, absl::StatusCode::kAborted,
        absl::StatusCode::kFailedPrecondition, absl::StatusCode::kOk}) {
    EXPECT_FALSE(entries.Add(KeyOf(1), absl::Status(code, "x"))) << code;
  }
  EXPECT_TRUE(entries.Add(KeyOf(1), absl::UnimplementedError("x")));
  EXPECT_TRUE(entries.Add(KeyOf(2), absl::InternalError("x")));
  entries.Remove(KeyOf(1));
  EXPECT_FALSE(entries.Find(KeyOf(1)).has_value());
  entries.Clear();
  EXPECT_EQ(entries.Size(), 0u);
}

TEST(NegativeEntriesTest, F16_LongTextIsCutAtACharactersEdge) {
  testing::FakeClock clock;
  NegativeEntries entries(absl::Minutes(1), clock);
  // "é" has two bytes; with one byte before them the limit falls inside one.
  std::string text = "x";
  while (text.size() <= NegativeEntries::kMaxMessageBytes) text += "é";
  entries.Add(KeyOf(1), absl::InternalError(text));
  const std::string kept(entries.Find(KeyOf(1))->message());
  EXPECT_EQ(kept, absl::StrCat(text.substr(0, NegativeEntries::kMaxMessageBytes - 1), "… (",
                               text.size(), " bytes in all)"));
}

TEST(NegativeEntriesTest, OldestMakesRoomAndNewestCounts) {
  testing::FakeClock clock;
  NegativeEntries entries(absl::Minutes(1), clock);
  entries.Add(KeyOf(0), absl::InternalError("first"));
  entries.Add(KeyOf(0), absl::InternalError("second"));
  EXPECT_EQ(entries.Size(), 1u);
  EXPECT_EQ(entries.Find(KeyOf(0))->message(), "second");
  for (size_t i = 1; i <= NegativeEntries::kMaxEntries; ++i) {
    entries.Add(KeyOf(i), absl::InternalError("x"));
  }
  EXPECT_EQ(entries.Size(), NegativeEntries::kMaxEntries);
  EXPECT_FALSE(entries.Find(KeyOf(0)).has_value());
}

TEST(PinsTest, ExecutableIsPinnedUntilItsLastPinEnds) {
  auto pins = std::make_shared<Pins>();
  const base::Digest digest = base::Sha256("e");
  {
    Pins::Pin first = pins->Add(digest);
    {
      Pins::Pin second = pins->Add(digest);
      Pins::Pin moved = std::move(second);
      EXPECT_EQ(pins->Size(), 1u);
    }
    EXPECT_TRUE(pins->Contains(digest));
    first = pins->Add(base::Sha256("f"));
    EXPECT_FALSE(pins->Contains(digest));
    pins.reset();  // a pin keeps the table
  }
}

}  // namespace
}  // namespace fusiond::cache
