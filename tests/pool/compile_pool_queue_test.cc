// Whose turn it is where more is asked for than there are processes. As compile_pool_test.cc.
#include <string>
#include <utility>
#include <vector>

#include "server/pool/compile_pool.h"
#include "tests/pool/pool_fixture.h"
#include "tests/support/status_matchers.h"

namespace fusiond::server {
namespace {

using ::fusiond::testing::IsOk;
using ::fusiond::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

using State = CompileProcess::State;

class CompilePoolQueueTest : public PoolTest {};

TEST_F(CompilePoolQueueTest, DeadlineInTheQueueNamesTheLoad) {
  options_.processes = 1;
  Create();
  Job hog = Submit(Plan("hang"));
  WaitForBusy(1);
  CompileRequest request = Plan("echo:late");
  request.timeout = absl::Milliseconds(50);
  EXPECT_THAT(Run(std::move(request)).status,
              StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("1 of 1 at work")));
  pool_->Cancel(hog.id);
}

TEST_F(CompilePoolQueueTest, FullQueueNamesLimitAndActual) {
  options_.processes = 1;
  options_.queue_limit = 2;
  Create();
  Job running = Submit(Plan("hang"));
  WaitForBusy(1);
  std::vector<Job> waiting;
  for (int i = 0; i < 2; ++i) waiting.push_back(Submit(Plan("echo:x")));
  EXPECT_THAT(pool_->Submit(Plan("echo:x"), [](CompileOutcome) {}),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       AllOf(HasSubstr("limit is 2 jobs"), HasSubstr("2 wait"))));
  pool_->Cancel(running.id);
  for (Job& job : waiting) EXPECT_THAT(job.outcome.get().status, IsOk());
}

TEST_F(CompilePoolQueueTest, OneTenantLeavesRoomForOthersF16) {
  options_.processes = 1;
  options_.queue_limit = 4;
  options_.queue_limit_per_tenant = 2;
  Create();
  Job running = Submit(Plan("hang"));
  WaitForBusy(1);
  std::vector<Job> waiting;
  const auto with = [](const std::string& tenant) {
    CompileRequest request = Plan("echo:x");
    request.tenant = tenant;
    return request;
  };
  for (const char* tenant : {"alice", "alice", "bob"}) waiting.push_back(Submit(with(tenant)));
  EXPECT_THAT(pool_->Submit(with("alice"), [](CompileOutcome) {}),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("limit of alice is 2 jobs, 2 wait; try again in")));
  waiting.push_back(Submit(with("bob")));
  pool_->Cancel(running.id);
  for (Job& job : waiting) EXPECT_THAT(job.outcome.get().status, IsOk());
  EXPECT_THAT(Submit(with("alice")).outcome.get().status, IsOk());
}

TEST_F(CompilePoolQueueTest, LowPriorityLeavesOnePlaceFree) {
  Create();
  std::vector<Job> low;
  for (int i = 0; i < 2; ++i) {
    CompileRequest request = Plan("hang");
    request.priority = CompilePriority::kLow;
    low.push_back(Submit(std::move(request)));
  }
  WaitFor(
      [](const CompilePoolStatus& s) { return Count(s, State::kBusy) == 1 && s.queued_low == 1; });
  EXPECT_THAT(Run("echo:urgent").status, IsOk());
  for (Job& job : low) pool_->Cancel(job.id);
}

TEST_F(CompilePoolQueueTest, NormalJobsOvertakeLowOnes) {
  options_.processes = 1;
  Create();
  Job running = Submit(Plan("hang"));
  WaitForBusy(1);
  CompileRequest request = Plan("echo:low");
  request.priority = CompilePriority::kLow;
  Job low = Submit(std::move(request));
  Job normal = Submit(Plan("echo:normal"));
  WaitFor([](const CompilePoolStatus& s) { return s.queued_low == 1 && s.queued_normal == 1; });
  pool_->Cancel(running.id);
  EXPECT_EQ(normal.outcome.get().reply.plan().explanation(), "1");
  EXPECT_EQ(low.outcome.get().reply.plan().explanation(), "2");
}

TEST_F(CompilePoolQueueTest, OneTenantsQueueHoldsUpAnothersByOneJobOnly) {
  options_.processes = 1;
  Create();
  Job running = Submit(Plan("hang", "alice"));
  WaitForBusy(1);
  std::vector<std::string> order;  // the pool's thread's, until the last outcome
  std::vector<std::future<void>> done;
  for (const char* job : {"alice 1", "alice 2", "alice 3", "bob 1"}) {
    auto promise = std::make_shared<std::promise<void>>();
    done.push_back(promise->get_future());
    const std::string name = job;
    ASSERT_THAT(pool_->Submit(Plan("echo:" + name, name.substr(0, name.find(' '))),
                              [&order, name, promise](CompileOutcome) {
                                order.push_back(name);
                                promise->set_value();
                              }),
                IsOk());
  }
  pool_->Cancel(running.id);
  for (std::future<void>& one : done) one.get();
  EXPECT_EQ(order, (std::vector<std::string>{"alice 1", "bob 1", "alice 2", "alice 3"}));
}

TEST_F(CompilePoolQueueTest, RaisedJobIsANormalOne) {
  options_.processes = 1;
  Create();
  Job running = Submit(Plan("hang"));
  WaitForBusy(1);
  std::vector<Job> low;
  for (int i = 0; i < 2; ++i) {
    CompileRequest request = Plan("echo:low");
    request.priority = CompilePriority::kLow;
    low.push_back(Submit(std::move(request)));
  }
  pool_->Raise(low[1].id);
  pool_->Raise(running.id);  // not a low one: ignored
  WaitFor([](const CompilePoolStatus& s) { return s.queued_low == 1 && s.queued_normal == 1; });
  pool_->Cancel(running.id);
  EXPECT_EQ(low[1].outcome.get().reply.plan().explanation(), "1");
  EXPECT_EQ(low[0].outcome.get().reply.plan().explanation(), "2");
}

}  // namespace
}  // namespace fusiond::server
