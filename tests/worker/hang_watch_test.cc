#include "runtime/worker/hang_watch.h"

#include <gtest/gtest.h>

#include <semaphore>

#include "runtime/base/clock.h"
#include "tests/support/no_threads.h"
#include "tests/support/status_matchers.h"

namespace fusiond::worker {
namespace {

using ::fusiond::testing::IsOk;
using ::fusiond::testing::StatusIs;

TEST(HangWatchTest, PastExpectationIsReportedOnce) {
  std::counting_semaphore<2> called(0);
  {
    HangWatch watch(absl::Milliseconds(1), [&] { called.release(); });
    ASSERT_THAT(watch.Start(), IsOk());
    watch.Expect(base::MonotonicNanos() - 1);
    called.acquire();
    watch.Expect(0);
  }
  EXPECT_FALSE(called.try_acquire());
}

TEST(HangWatchTest, NothingExpectedIsNothingReported) {
  std::atomic<bool> called = false;
  {
    HangWatch watch(absl::ZeroDuration(), [&] { called = true; });
    ASSERT_THAT(watch.Start(), IsOk());
    watch.Expect(HangWatch::kNever);
    watch.Expect(HangWatch::kNever - 1);
  }
  EXPECT_FALSE(called);
}

TEST(HangWatchTest, WithoutAThreadItSaysSo) {
  HangWatch watch(absl::ZeroDuration(), [] {});
  const testing::NoThreads none;
  EXPECT_THAT(watch.Start(), StatusIs(absl::StatusCode::kResourceExhausted));
}

}  // namespace
}  // namespace fusiond::worker
