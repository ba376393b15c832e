#include "server/cache/single_flight.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>

#include "tests/support/status_matchers.h"

namespace fusiond::cache {
namespace {

using ::fusiond::testing::StatusIs;
using Flights = SingleFlight<int, std::string>;

Flights::Callback AppendTo(std::vector<std::string>& out) {
  return [&out](const Flights::Result& result) {
    out.push_back(result.ok() ? *result : result.status().ToString());
  };
}

TEST(SingleFlightTest, FirstLeadsOthersWaitAllGetTheResult) {
  Flights flights;
  std::vector<std::string> got;
  Flights::Joined first = flights.JoinOrLead(1, AppendTo(got));
  Flights::Joined second = flights.JoinOrLead(1, AppendTo(got));
  Flights::Joined other = flights.JoinOrLead(2, AppendTo(got));
  ASSERT_TRUE(first.lead.has_value());
  EXPECT_FALSE(second.lead.has_value());
  EXPECT_TRUE(other.lead.has_value());
  EXPECT_EQ(flights.InFlight(), 2u);
  first.lead->Finish(std::string("done"));
  EXPECT_THAT(got, ::testing::ElementsAre("done", "done"));
  EXPECT_TRUE(flights.JoinOrLead(1, AppendTo(got)).lead.has_value());
}

TEST(SingleFlightTest, FailureReachesWaitersTyped) {
  Flights flights;
  absl::Status got;
  auto keep = [&got](const Flights::Result& result) { got = result.status(); };
  Flights::Joined joined = flights.JoinOrLead(1, keep);
  joined.lead->Finish(absl::ResourceExhaustedError("compile process: 2 GiB"));
  EXPECT_THAT(got, StatusIs(absl::StatusCode::kResourceExhausted, "compile process: 2 GiB"));
}

TEST(SingleFlightTest, F14_CancelledWaiterTakesNothingFromTheOthers) {
  Flights flights;
  std::vector<std::string> leader, cancelled, stays;
  Flights::Joined first = flights.JoinOrLead(1, AppendTo(leader));
  Flights::Joined second = flights.JoinOrLead(1, AppendTo(cancelled));
  flights.JoinOrLead(1, AppendTo(stays));
  EXPECT_TRUE(flights.Cancel(second.ticket));
  EXPECT_FALSE(flights.Cancel(second.ticket));
  EXPECT_TRUE(flights.Cancel(first.ticket));  // the leader's own request; its work goes on
  first.lead->Finish(std::string("done"));
  EXPECT_THAT(leader, ::testing::IsEmpty());
  EXPECT_THAT(cancelled, ::testing::IsEmpty());
  EXPECT_THAT(stays, ::testing::ElementsAre("done"));
}

TEST(SingleFlightTest, LastCancelAbandonsTheWork) {
  Flights flights;
  int abandoned = 0;
  std::vector<std::string> old_waiter, new_waiter;
  Flights::Joined first = flights.JoinOrLead(1, AppendTo(old_waiter));
  first.lead->OnAbandoned([&] { ++abandoned; });
  EXPECT_TRUE(flights.Cancel(first.ticket));
  EXPECT_EQ(abandoned, 1);
  // Whoever asks now leads anew, and the old work's result is not his.
  Flights::Joined second = flights.JoinOrLead(1, AppendTo(new_waiter));
  ASSERT_TRUE(second.lead.has_value());
  first.lead->Finish(std::string("old"));
  EXPECT_THAT(new_waiter, ::testing::IsEmpty());
  second.lead->Finish(std::string("new"));
  EXPECT_THAT(new_waiter, ::testing::ElementsAre("new"));
  EXPECT_THAT(old_waiter, ::testing::IsEmpty());
}

TEST(SingleFlightTest, AbandonmentBeforeTheCallbackIsSetRunsItAtOnce) {
  Flights flights;
  int abandoned = 0;
  Flights::Joined first = flights.JoinOrLead(1, [](const Flights::Result&) {});
  flights.Cancel(first.ticket);
  first.lead->OnAbandoned([&] { ++abandoned; });
  EXPECT_EQ(abandoned, 1);
}

TEST(SingleFlightTest, LeadDroppedUnfinishedEndsInAborted) {
  Flights flights;
  absl::Status got;
  {
    auto keep = [&got](const Flights::Result& result) { got = result.status(); };
    Flights::Joined joined = flights.JoinOrLead(1, keep);
    Flights::Lead moved = *std::move(joined.lead);
  }
  EXPECT_THAT(got, StatusIs(absl::StatusCode::kAborted));
  EXPECT_EQ(flights.InFlight(), 0u);
}

TEST(SingleFlightTest, CancelAfterTheResultIsFalse) {
  Flights flights;
  std::vector<std::string> got;
  Flights::Joined joined = flights.JoinOrLead(1, AppendTo(got));
  joined.lead->Finish(std::string("done"));
  EXPECT_FALSE(flights.Cancel(joined.ticket));
  EXPECT_FALSE(flights.Cancel(Flights::Ticket()));
}

TEST(SingleFlightTest, CallbackMayJoinAgain) {
  Flights flights;
  bool leads = false;
  Flights::Joined joined = flights.JoinOrLead(1, [&](const Flights::Result&) {
    leads = flights.JoinOrLead(1, [](const Flights::Result&) {}).lead.has_value();
  });
  joined.lead->Finish(std::string("done"));
  EXPECT_TRUE(leads);
}

// Threads join, cancel and finish at random: each waiter hears exactly once or has cancelled, and
// never two leads of one key at a time.
TEST(SingleFlightTest, F14_EveryWaiterIsAnsweredOnceUnderThreads) {
  Flights flights;
  constexpr int kThreads = 8;
  constexpr int kRounds = 500;
  constexpr int kKeys = 3;
  std::atomic<int> answered{0};
  std::atomic<int> cancelled{0};
  std::atomic<int> leading[kKeys] = {};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kRounds; ++i) {
        const int key = (t + i) % kKeys;
        Flights::Joined joined =
            flights.JoinOrLead(key, [&answered](const Flights::Result&) { ++answered; });
        if (joined.lead.has_value()) {
          // An abandoned flight is over before its Finish, so only this order may be counted.
          EXPECT_EQ(leading[key].fetch_add(1), 0);
          leading[key].fetch_sub(1);
          joined.lead->Finish(std::string("done"));
        } else if (i % 2 == 0 && flights.Cancel(joined.ticket)) {
          ++cancelled;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(answered + cancelled, kThreads * kRounds);
  EXPECT_EQ(flights.InFlight(), 0u);
}

}  // namespace
}  // namespace fusiond::cache
