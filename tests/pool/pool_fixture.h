// A CompilePool whose processes are this test binary (fake_compile_role.h), and ways to wait for
// it.
#ifndef FUSIOND_TESTS_POOL_POOL_FIXTURE_H_
#define FUSIOND_TESTS_POOL_POOL_FIXTURE_H_

#include <gtest/gtest.h>
#include <sched.h>

#include <functional>
#include <future>
#include <memory>
#include <string>
#include <utility>

#include "server/pool/compile_pool.h"

namespace fusiond::server {

class PoolTest : public ::testing::Test {
 protected:
  // Before Create: change what the case is about.
  PoolTest() {
    options_.spawn.arguments = {"--role=compile"};
    options_.setup.set_nvrtc_path("/nonexistent");
    options_.setup.set_memory_limit_bytes(256 << 20);
    options_.processes = 2;
  }

  void Create() {
    auto pool = CompilePool::Create(options_);
    ASSERT_TRUE(pool.ok()) << pool.status();
    pool_ = *std::move(pool);
  }

  struct Job {
    CompileJobId id = 0;
    std::future<CompileOutcome> outcome;
  };

  Job Submit(CompileRequest request) {
    auto promise = std::make_shared<std::promise<CompileOutcome>>();
    Job job;
    job.outcome = promise->get_future();
    auto id = pool_->Submit(std::move(request), [promise](CompileOutcome outcome) {
      promise->set_value(std::move(outcome));
    });
    EXPECT_TRUE(id.ok()) << id.status();
    job.id = id.value_or(0);
    return job;
  }

  static CompileRequest Plan(const std::string& command, const std::string& tenant = "alice") {
    CompileRequest request;
    request.job.mutable_plan()->set_graph(command);
    request.tenant = tenant;
    return request;
  }

  CompileOutcome Run(CompileRequest request) { return Submit(std::move(request)).outcome.get(); }
  CompileOutcome Run(const std::string& command, const std::string& tenant = "alice") {
    return Run(Plan(command, tenant));
  }

  // Until the status is as wanted; the test's own time limit ends a wait that never does.
  CompilePoolStatus WaitFor(const std::function<bool(const CompilePoolStatus&)>& wanted) {
    while (true) {
      CompilePoolStatus status = pool_->GetStatus();
      if (wanted(status)) return status;
      ::sched_yield();
    }
  }
  static int Count(const CompilePoolStatus& status, CompileProcess::State state) {
    int count = 0;
    for (const auto& process : status.processes) count += process.state == state;
    return count;
  }
  CompilePoolStatus WaitForBusy(int count) {
    return WaitFor([count](const CompilePoolStatus& status) {
      return Count(status, CompileProcess::State::kBusy) == count;
    });
  }

  CompilePoolOptions options_;
  std::unique_ptr<CompilePool> pool_;
};

}  // namespace fusiond::server

#endif  // FUSIOND_TESTS_POOL_POOL_FIXTURE_H_
