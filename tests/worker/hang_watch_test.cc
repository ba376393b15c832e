#include "runtime/worker/hang_watch.h"

#include <gtest/gtest.h>

#include <semaphore>

#include "runtime/base/clock.h"

namespace fusiond::worker {
namespace {

TEST(HangWatchTest, PastExpectationIsReportedOnce) {
  std::counting_semaphore<2> called(0);
  {
    HangWatch watch(absl::Milliseconds(1), [&] { called.release(); });
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
    watch.Expect(HangWatch::kNever);
    watch.Expect(HangWatch::kNever - 1);
  }
  EXPECT_FALSE(called);
}

}  // namespace
}  // namespace fusiond::worker
