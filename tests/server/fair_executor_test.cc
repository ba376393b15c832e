#include "server/service/fair_executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <string>
#include <vector>

#include "absl/synchronization/notification.h"
#include "tests/support/no_threads.h"
#include "tests/support/status_matchers.h"

namespace fusiond::server {
namespace {

using ::fusiond::testing::IsOk;
using ::fusiond::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// What works refer to stands before the executor, which waits for them as it goes.

TEST(FairExecutorTest, StuckKeyHoldsUpNoOther) {
  absl::Notification release;
  std::promise<void> done;
  FairExecutor executor(4, 2);
  std::vector<std::future<void>> stuck;
  for (int i = 0; i < 8; ++i) {
    auto promise = std::make_shared<std::promise<void>>();
    stuck.push_back(promise->get_future());
    executor.Run("alice", [&release, promise](const absl::Status&) {
      release.WaitForNotification();
      promise->set_value();
    });
  }
  executor.Run("bob", [&done](const absl::Status&) { done.set_value(); });
  done.get_future().get();
  release.Notify();
  for (std::future<void>& one : stuck) one.get();
}

TEST(FairExecutorTest, KeysTakeTurns) {
  std::vector<std::string> order;  // one thread's
  {
    absl::Notification begun, release;
    FairExecutor executor(1, 1);
    executor.Run("alice", [&begun, &release](const absl::Status&) {
      begun.Notify();
      release.WaitForNotification();
    });
    begun.WaitForNotification();
    for (const char* name : {"alice 1", "alice 2", "alice 3", "bob 1"}) {
      const std::string work = name;
      executor.Run(work.substr(0, work.find(' ')),
                   [&order, work](const absl::Status&) { order.push_back(work); });
    }
    release.Notify();
  }  // ends when all has run
  EXPECT_EQ(order, (std::vector<std::string>{"alice 1", "bob 1", "alice 2", "alice 3"}));
}

TEST(FairExecutorTest, WorkThatComesTogetherRunsTogether) {
  // Each waits for the others: fewer threads would wait for ever.
  std::promise<void> arrived[3];
  std::shared_future<void> all[3];
  for (int i = 0; i < 3; ++i) all[i] = arrived[i].get_future().share();
  FairExecutor executor(3, 3);
  for (int i = 0; i < 3; ++i) {
    executor.Run("alice", [&arrived, &all, i](const absl::Status&) {
      arrived[i].set_value();
      for (std::shared_future<void>& other : all) other.wait();
    });
  }
}

TEST(FairExecutorTest, WorkWithoutAThreadIsRefusedAndNothingIsLost) {
  absl::Notification begun, release;
  std::vector<absl::Status> answers[4];
  {
    FairExecutor executor(8, 2);
    const auto note = [&answers](int i) {
      return [&answers, i](const absl::Status& may_run) { answers[i].push_back(may_run); };
    };
    {
      const fusiond::testing::NoThreads none;
      executor.Run("alice", note(0));
      EXPECT_THAT(answers[0], ElementsAre(StatusIs(absl::StatusCode::kResourceExhausted,
                                                   HasSubstr("starts no more threads"))));
    }
    executor.Run("alice", [&](const absl::Status& may_run) {
      answers[1].push_back(may_run);
      begun.Notify();
      release.WaitForNotification();
    });
    begun.WaitForNotification();
    {
      const fusiond::testing::NoThreads none;
      executor.Run("bob", note(2));  // alice's work may be stuck
      EXPECT_THAT(answers[2], ElementsAre(StatusIs(absl::StatusCode::kResourceExhausted)));
    }
    executor.Run("bob", note(3));
    release.Notify();
  }
  for (const std::vector<absl::Status>& answer : answers) EXPECT_THAT(answer, SizeIs(1));
  EXPECT_THAT(answers[1][0], IsOk());
  EXPECT_THAT(answers[3][0], IsOk());
}

TEST(FairExecutorTest, WhatWaitsIsWithdrawnAtOnce) {
  absl::Notification begun, release;
  std::vector<std::string> order;
  std::vector<absl::Status> withdrawn;
  {
    FairExecutor executor(4, 1);
    const uint64_t running = executor.Run("alice", [&](const absl::Status& may_run) {
      EXPECT_THAT(may_run, IsOk());
      begun.Notify();
      release.WaitForNotification();
    });
    begun.WaitForNotification();
    const auto note = [&order](const char* name) {
      return [&order, name](const absl::Status& may_run) {
        if (may_run.ok()) order.push_back(name);
      };
    };
    executor.Run("alice", note("1"));
    const uint64_t second =
        executor.Run("alice", [&](const absl::Status& may_run) { withdrawn.push_back(may_run); });
    executor.Run("alice", note("3"));
    executor.Withdraw(second);
    // While what runs is stuck.
    EXPECT_THAT(withdrawn, ElementsAre(StatusIs(absl::StatusCode::kCancelled)));
    executor.Withdraw(second);
    executor.Withdraw(running);
    release.Notify();
  }
  EXPECT_THAT(withdrawn, SizeIs(1));
  EXPECT_THAT(order, ElementsAre("1", "3"));
}

}  // namespace
}  // namespace fusiond::server
