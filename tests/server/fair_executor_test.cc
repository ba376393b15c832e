#include "server/service/fair_executor.h"

#include <gtest/gtest.h>

#include <future>
#include <string>
#include <vector>

#include "absl/synchronization/notification.h"

namespace fusiond::server {
namespace {

// What works refer to stands before the executor, which waits for them as it goes.

TEST(FairExecutorTest, StuckKeyHoldsUpNoOther) {
  absl::Notification release;
  std::promise<void> done;
  FairExecutor executor(4, 2);
  std::vector<std::future<void>> stuck;
  for (int i = 0; i < 8; ++i) {
    auto promise = std::make_shared<std::promise<void>>();
    stuck.push_back(promise->get_future());
    executor.Run("alice", [&release, promise] {
      release.WaitForNotification();
      promise->set_value();
    });
  }
  executor.Run("bob", [&done] { done.set_value(); });
  done.get_future().get();
  release.Notify();
  for (std::future<void>& one : stuck) one.get();
}

TEST(FairExecutorTest, KeysTakeTurns) {
  std::vector<std::string> order;  // one thread's
  {
    absl::Notification begun, release;
    FairExecutor executor(1, 1);
    executor.Run("alice", [&begun, &release] {
      begun.Notify();
      release.WaitForNotification();
    });
    begun.WaitForNotification();
    for (const char* name : {"alice 1", "alice 2", "alice 3", "bob 1"}) {
      const std::string work = name;
      executor.Run(work.substr(0, work.find(' ')), [&order, work] { order.push_back(work); });
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
    executor.Run("alice", [&arrived, &all, i] {
      arrived[i].set_value();
      for (std::shared_future<void>& other : all) other.wait();
    });
  }
}

}  // namespace
}  // namespace fusiond::server
