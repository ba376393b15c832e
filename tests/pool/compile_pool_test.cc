// The pool with real processes (this binary under --role=compile) whose PLAN jobs misbehave on
// command. No NVRTC, no GPU.
#include "server/pool/compile_pool.h"

#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <set>

#include "runtime/base/clock.h"
#include "server/pool/compile_scheduler.h"
#include "server/process/harden.h"
#include "tests/pool/pool_fixture.h"
#include "tests/support/status_matchers.h"

namespace fusiond::server {
namespace {

using ::fusiond::testing::IsOk;
using ::fusiond::testing::StatusIs;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

using State = CompileProcess::State;

class CompilePoolTest : public PoolTest {};

TEST_F(CompilePoolTest, JobIsAnswered) {
  Create();
  CompileOutcome outcome = Run("echo:hello");
  ASSERT_THAT(outcome.status, IsOk());
  EXPECT_EQ(outcome.reply.plan().canonical_ir(), "hello");
  EXPECT_EQ(outcome.attempts, 1);
  EXPECT_EQ(pool_->GetStatus().jobs_done, 1u);
}

TEST_F(CompilePoolTest, LargeJobAndReplyArriveWhole) {
  Create();
  const std::string text(16 << 20, 'g');
  CompileOutcome outcome = Run("echo:" + text);
  ASSERT_THAT(outcome.status, IsOk());
  EXPECT_EQ(outcome.reply.plan().canonical_ir(), text);
}

TEST_F(CompilePoolTest, JobsErrorIsAVerdict) {
  Create();
  CompileOutcome outcome = Run("error:node 3, rule IR-07");
  EXPECT_THAT(outcome.status, StatusIs(absl::StatusCode::kInvalidArgument, "node 3, rule IR-07"));
  EXPECT_TRUE(outcome.verdict);
  EXPECT_FALSE(outcome.crashed);
}

TEST_F(CompilePoolTest, JobsRunInParallelUpToTheLimit) {
  options_.processes = 3;
  Create();
  std::vector<Job> jobs;
  for (int i = 0; i < 4; ++i) jobs.push_back(Submit(Plan("hang")));
  CompilePoolStatus status = WaitFor([](const CompilePoolStatus& s) {
    return Count(s, State::kBusy) == 3 && s.queued_normal == 1;
  });
  EXPECT_LE(status.processes.size(), 4u);
  for (Job& job : jobs) pool_->Cancel(job.id);
  for (Job& job : jobs) {
    EXPECT_THAT(job.outcome.get().status, StatusIs(absl::StatusCode::kCancelled));
  }
}

TEST_F(CompilePoolTest, F23CrashEndsThatJobAlone) {
  Create();
  Job bystander = Submit(Plan("hang", "bob"));
  WaitForBusy(1);
  for (const char* command : {"trap", "abort", "overflow", "exit"}) {
    CompileOutcome outcome = Run(command);
    EXPECT_THAT(outcome.status,
                // Sanitizers make exit codes of signals.
                StatusIs(absl::StatusCode::kInternal,
                         AnyOf(HasSubstr("killed by signal"), HasSubstr("exited with code"))))
        << command;
    EXPECT_TRUE(outcome.crashed);
    EXPECT_FALSE(outcome.verdict);
  }
  EXPECT_THAT(Run("echo:still here").status, IsOk());
  CompilePoolStatus status = pool_->GetStatus();
  EXPECT_EQ(status.crashes, 4u);
  EXPECT_EQ(Count(status, State::kBusy), 1);
  pool_->Cancel(bystander.id);
  EXPECT_THAT(bystander.outcome.get().status, StatusIs(absl::StatusCode::kCancelled));
}

TEST_F(CompilePoolTest, F22HangEndsAtTheRequestsDeadline) {
  Create();
  CompileRequest request = Plan("hang");
  request.timeout = absl::Milliseconds(300);
  EXPECT_THAT(Run(std::move(request)).status, StatusIs(absl::StatusCode::kDeadlineExceeded));
  EXPECT_THAT(Run("echo:next").status, IsOk());
}

TEST_F(CompilePoolTest, F22HangEndsAtThePoolsLimit) {
  options_.run_limit = absl::Milliseconds(100);
  Create();
  EXPECT_THAT(Run("hang").status, StatusIs(absl::StatusCode::kDeadlineExceeded,
                                           HasSubstr("the limit of one compile job is ")));
  EXPECT_EQ(pool_->GetStatus().deadline_kills, 1u);
}

TEST_F(CompilePoolTest, F22MemoryBlowUpIsResourceExhaustedAfterOneRetry) {
  if (!MemoryLimitWorks()) GTEST_SKIP() << "this build reserves address space (sanitizer)";
  Create();
  CompileOutcome outcome = Run("eat");
  EXPECT_THAT(outcome.status,
              StatusIs(absl::StatusCode::kResourceExhausted,
                       AllOf(HasSubstr("limit is 268435456 bytes"), HasSubstr("used 26"))));
  EXPECT_TRUE(outcome.out_of_memory);
  EXPECT_FALSE(outcome.verdict);
  EXPECT_FALSE(outcome.crashed);
  EXPECT_EQ(outcome.attempts, 2);
  CompilePoolStatus status = pool_->GetStatus();
  EXPECT_EQ(status.out_of_memory, 2u);
  EXPECT_EQ(status.crashes, 0u);
  EXPECT_THAT(Run("echo:next").status, IsOk());
}

// Nobody knows what a process used that the host killed.
TEST_F(CompilePoolTest, F22KilledFromOutsideIsSaidToBeThat) {
  Create();
  const CompileOutcome outcome = Run("be killed");
  EXPECT_THAT(outcome.status,
              StatusIs(absl::StatusCode::kResourceExhausted,
                       AllOf(HasSubstr("killed from outside, 2 times"),
                             HasSubstr("killed by signal 9"), Not(HasSubstr("used")))));
  EXPECT_TRUE(outcome.out_of_memory);
}

TEST_F(CompilePoolTest, F22CrashNearTheMemoryLimitIsOutOfMemory) {
  if (!MemoryLimitWorks()) GTEST_SKIP() << "this build reserves address space (sanitizer)";
  Create();
  CompileOutcome outcome = Run("eat and abort");
  EXPECT_THAT(outcome.status, StatusIs(absl::StatusCode::kResourceExhausted,
                                       HasSubstr("killed by signal 6 (ABRT)")));
  EXPECT_TRUE(outcome.out_of_memory);
  EXPECT_FALSE(outcome.crashed);
  EXPECT_EQ(pool_->GetStatus().crashes, 0u);
}

TEST_F(CompilePoolTest, ForbiddenSystemCallEndsTheProcess) {
  Create();
  CompileOutcome outcome = Run("socket");
  EXPECT_THAT(outcome.status, StatusIs(absl::StatusCode::kInternal, HasSubstr("sandbox forbids")));
  EXPECT_TRUE(outcome.crashed);
  EXPECT_EQ(pool_->GetStatus().sandbox_kills, 1u);
  EXPECT_THAT(Run("open").status, StatusIs(absl::StatusCode::kUnimplemented, "fd -1"));
}

TEST_F(CompilePoolTest, ReplyAboveTheLimitIsNonsense) {
  Create();
  CompileOutcome outcome = Run("huge");
  EXPECT_THAT(outcome.status, StatusIs(absl::StatusCode::kInternal, HasSubstr("nonsense")));
  EXPECT_TRUE(outcome.crashed);
}

TEST_F(CompilePoolTest, OversizeJobNamesLimitAndActual) {
  options_.max_job_bytes = 100;
  Create();
  EXPECT_THAT(pool_->Submit(Plan("echo:" + std::string(200, 'x')), [](CompileOutcome) {}),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("limit is 100 bytes")));
}

TEST_F(CompilePoolTest, CancelReachesWaitingAndRunningJobs) {
  options_.processes = 1;
  Create();
  Job running = Submit(Plan("hang"));
  WaitForBusy(1);
  Job waiting = Submit(Plan("echo:x"));
  pool_->Cancel(waiting.id);
  EXPECT_THAT(waiting.outcome.get().status, StatusIs(absl::StatusCode::kCancelled));
  pool_->Cancel(running.id);
  EXPECT_THAT(running.outcome.get().status, StatusIs(absl::StatusCode::kCancelled));
  pool_->Cancel(running.id);  // too late: ignored
  EXPECT_THAT(Run("echo:next").status, IsOk());
  EXPECT_EQ(pool_->GetStatus().cancel_kills, 1u);
}

TEST_F(CompilePoolTest, ProcessServesOneTenantAlone) {
  options_.processes = 1;
  Create();
  EXPECT_EQ(Run("echo:a", "alice").reply.plan().explanation(), "1");
  EXPECT_EQ(Run("echo:b", "alice").reply.plan().explanation(), "2");
  EXPECT_EQ(Run("echo:c", "bob").reply.plan().explanation(), "1");
  EXPECT_EQ(Run("echo:d", "carol").reply.plan().explanation(), "1");
}

TEST_F(CompilePoolTest, ProcessIsReplacedAfterItsJobs) {
  options_.processes = 1;
  options_.jobs_per_process = 2;
  Create();
  std::vector<std::string> counts;
  for (int i = 0; i < 4; ++i) {
    counts.push_back(Run("echo:x").reply.plan().explanation());
  }
  EXPECT_EQ(counts, (std::vector<std::string>{"1", "2", "1", "2"}));
  EXPECT_EQ(pool_->GetStatus().retired, 2u);
}

TEST_F(CompilePoolTest, SpareWaitsAndIdleProcessesEnd) {
  options_.idle_limit = absl::Milliseconds(1);
  Create();
  EXPECT_THAT(Run("echo:x").status, IsOk());
  CompilePoolStatus status = WaitFor([](const CompilePoolStatus& s) {
    return s.retired == 1 && s.processes.size() == 1 && s.processes[0].state == State::kIdle;
  });
  EXPECT_EQ(status.processes[0].jobs_done, 0);
}

TEST_F(CompilePoolTest, TwoSparesWaitWhereFourProcessesMayWork) {
  options_.processes = 4;
  options_.idle_limit = absl::Milliseconds(1);
  Create();
  EXPECT_THAT(Run("echo:x").status, IsOk());
  WaitFor([](const CompilePoolStatus& s) {
    return s.retired == 1 && s.processes.size() == 2 && Count(s, State::kIdle) == 2;
  });
}

// A process that dies while it has no job, and is not known to be dead when one comes.
TEST_F(CompilePoolTest, IdleProcessThatDiesIsNoJobsCrash) {
  options_.processes = 1;
  std::vector<std::string> log;
  options_.log = [&log](absl::string_view line) { log.emplace_back(line); };
  CompileScheduler scheduler(options_);
  const auto now = [] { return base::Clock::System().Now(); };
  const auto turn = [&] {
    scheduler.Step(now());
    std::vector<pollfd> fds = scheduler.PollFds();
    ::poll(fds.data(), fds.size(), -1);
    scheduler.HandleEvents(fds, now());
  };
  const auto add = [&](CompileJobId id) {
    PendingJob job;
    job.id = id;
    job.request = Plan("echo:hello");
    scheduler.Add(std::move(job));
  };
  const auto finish = [&] {
    while (true) {
      std::vector<FinishedJob> finished = scheduler.TakeFinished();
      if (!finished.empty()) return std::move(finished[0].outcome);
      turn();
    }
  };
  add(1);
  ASSERT_THAT(finish().status, IsOk());
  for (const CompilePoolStatus::Process& process : scheduler.GetStatus().processes) {
    if (process.state != State::kIdle) continue;
    ::kill(process.pid, SIGKILL);
    siginfo_t ended = {};
    ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(process.pid), &ended, WEXITED | WNOWAIT), 0);
  }
  add(2);
  const CompileOutcome outcome = finish();
  EXPECT_THAT(outcome.status, IsOk());
  EXPECT_EQ(outcome.attempts, 1);
  EXPECT_EQ(scheduler.GetStatus().crashes, 0u);
  EXPECT_EQ(scheduler.GetStatus().out_of_memory, 0u);
  while (log.empty()) turn();
  EXPECT_THAT(log[0], HasSubstr("while idle"));
  EXPECT_GE(scheduler.GetStatus().ended_idle, 1u);
  EXPECT_THAT(scheduler.GetStatus().last_end, HasSubstr("killed by signal 9 (KILL) while idle"));
  scheduler.Abort(now());
}

TEST_F(CompilePoolTest, RefreshReplacesIdleProcesses) {
  Create();
  EXPECT_EQ(Run("echo:x").reply.plan().explanation(), "1");
  pool_->Refresh();
  EXPECT_EQ(Run("echo:x").reply.plan().explanation(), "1");  // of another process
}

TEST_F(CompilePoolTest, WhatIsKnownOfNvrtcIsTold) {
  std::promise<void> told;
  std::atomic<int> times{0};
  options_.on_nvrtc = [&] {
    if (times++ == 0) told.set_value();
  };
  Create();
  told.get_future().wait();
  EXPECT_THAT(pool_->WaitForNvrtc(absl::ZeroDuration()), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(Run("echo:x").status, IsOk());
  pool_->Refresh();
  EXPECT_THAT(Run("echo:x", "bob").status, IsOk());
  pool_->Shutdown(absl::InfiniteDuration());
  EXPECT_EQ(times, 1);  // the second process found the same
}

TEST_F(CompilePoolTest, PoolResponds) {
  Create();
  EXPECT_TRUE(pool_->Responds(absl::InfiniteDuration()));
}

TEST_F(CompilePoolTest, ProcessesThatDoNotStartFailTheJobs) {
  for (const char* role : {"broken", "mute", "nonsense"}) {
    options_.spawn.arguments = {std::string("--role=") + role};
    options_.start_limit = absl::Milliseconds(200);
    Create();
    EXPECT_THAT(Run("echo:x").status,
                StatusIs(absl::StatusCode::kUnavailable, HasSubstr("no compile process")))
        << role;
    EXPECT_GE(pool_->GetStatus().start_failures, 1u);
    EXPECT_THAT(pool_->WaitForNvrtc(absl::InfiniteDuration()),
                StatusIs(absl::StatusCode::kUnavailable));
  }
}

TEST_F(CompilePoolTest, WhyNoProcessStartsIsSaidAndWhenTheNextDoes) {
  const std::pair<std::string, std::string> rows[] = {
      {"unfit", "limit memory: Operation not permitted"},
      {"damaged", "(BUS) before it was ready, as where a library that it loads, as NVRTC, is"}};
  for (const auto& [role, words] : rows) {
    options_.spawn.arguments = {"--role=" + role};
    Create();
    const absl::Status status = Run("echo:x").status;
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable, HasSubstr(words)));
    EXPECT_THAT(std::string(status.message()), HasSubstr("try again in"));
  }
}

TEST_F(CompilePoolTest, NvrtcThatCrashesOrHangsIsDoneWithout) {
  options_.start_limit = absl::Seconds(5);  // of those that are ready too
  for (const char* library : {FUSIOND_CRASHING_LIBRARY, FUSIOND_HANGING_LIBRARY}) {
    options_.setup.set_nvrtc_path(library);
    Create();
    EXPECT_THAT(Run("echo:x").status, IsOk()) << library;
    // Two at once, each with a successor that starts before its end is known.
    EXPECT_LE(pool_->GetStatus().start_failures, 4u);
    EXPECT_THAT(pool_->WaitForNvrtc(absl::InfiniteDuration()),
                StatusIs(absl::StatusCode::kNotFound,
                         AnyOf(HasSubstr("before it was ready"), HasSubstr("not ready within"))));
  }
}

TEST_F(CompilePoolTest, MissingProgramFailsTheJobs) {
  options_.spawn.program = "/nonexistent/fusiond";
  Create();
  EXPECT_THAT(Run("echo:x").status,
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("/nonexistent/fusiond")));
}

// F25: a burst of clients takes every descriptor. Processes that run go on; a new one cannot start,
// is told as such, and starts once there are descriptors again.
TEST_F(CompilePoolTest, F25DescriptorExhaustionIsOutlived) {
  options_.processes = 1;
  Create();
  EXPECT_THAT(Run("echo:x").status, IsOk());
  WaitFor([](const CompilePoolStatus& s) { return Count(s, State::kIdle) == 2; });
  std::vector<base::UniqueFd> hoard;
  auto take_all = [&hoard] {
    for (int fd = ::dup(0); fd >= 0; fd = ::dup(0)) hoard.emplace_back(fd);
  };
  struct rlimit before;
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const struct rlimit few = {64, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  take_all();
  absl::Status served = Run("echo:y").status;
  // Each crash gives back the two descriptors of its process, one less than a new one needs.
  CompileOutcome last = Run("trap");
  while (last.crashed) {
    take_all();
    last = Run("trap");
  }
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  hoard.clear();
  EXPECT_THAT(served, IsOk());
  EXPECT_THAT(last.status, StatusIs(absl::StatusCode::kResourceExhausted));
  WaitFor([](const CompilePoolStatus& s) { return Count(s, State::kIdle) == 1; });
  EXPECT_THAT(Run("echo:z").status, IsOk());
}

TEST_F(CompilePoolTest, ShutdownLetsJobsFinishWithinItsGrace) {
  Create();
  std::vector<Job> jobs;
  for (int i = 0; i < 8; ++i) jobs.push_back(Submit(Plan("echo:x")));
  pool_->Shutdown(absl::InfiniteDuration());
  for (Job& job : jobs) EXPECT_THAT(job.outcome.get().status, IsOk());
  EXPECT_THAT(pool_->Submit(Plan("echo:x"), [](CompileOutcome) {}),
              StatusIs(absl::StatusCode::kUnavailable));
  pool_->Shutdown(absl::ZeroDuration());
}

TEST_F(CompilePoolTest, ShutdownKillsWhatOutlastsItsGrace) {
  options_.processes = 1;
  Create();
  Job running = Submit(Plan("hang"));
  WaitForBusy(1);
  Job waiting = Submit(Plan("echo:x"));
  pool_->Shutdown(absl::Milliseconds(10));
  EXPECT_THAT(running.outcome.get().status, StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(waiting.outcome.get().status, StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(CompilePoolTest, CallbackMaySubmit) {
  Create();
  std::promise<CompileOutcome> second;
  ASSERT_THAT(pool_->Submit(Plan("echo:1"),
                            [&](CompileOutcome) {
                              EXPECT_THAT(pool_->Submit(Plan("echo:2"),
                                                        [&](CompileOutcome outcome) {
                                                          second.set_value(std::move(outcome));
                                                        }),
                                          IsOk());
                            }),
              IsOk());
  EXPECT_EQ(second.get_future().get().reply.plan().canonical_ir(), "2");
}

TEST_F(CompilePoolTest, ProcessesEndWithTheSupervisor) {
  SpawnOptions spawn;
  spawn.arguments = {"--role=supervisor"};
  ASSERT_OK_AND_ASSIGN(auto supervisor, ChildProcess::Spawn(spawn));
  pollfd told{supervisor->socket(), POLLIN, 0};
  ASSERT_EQ(::poll(&told, 1, 60'000), 1);
  pid_t pid = 0;
  ASSERT_EQ(::read(supervisor->socket(), &pid, sizeof(pid)), ssize_t{sizeof(pid)});
  ASSERT_OK_AND_ASSIGN(base::UniqueFd orphan, OpenPidfd(pid));
  supervisor->Kill();
  pollfd end{orphan.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&end, 1, 60'000), 1) << "process " << pid << " outlives its supervisor";
}

TEST_F(CompilePoolTest, WithoutNvrtcPlansWorkAndImagesFail) {
  Create();
  EXPECT_THAT(pool_->WaitForNvrtc(absl::InfiniteDuration()),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("/nonexistent")));
  EXPECT_THAT(Run("echo:plan").status, IsOk());
  CompileRequest request;
  request.job.mutable_image()->set_arch("sm_90a");
  CompileOutcome outcome = Run(std::move(request));
  EXPECT_THAT(outcome.status,
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("/nonexistent")));
  EXPECT_FALSE(outcome.verdict);
}

TEST_F(CompilePoolTest, JobOfNoKindIsRefused) {
  Create();
  EXPECT_THAT(Run(CompileRequest()).status, StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(CompilePoolOptionsTest, NoProcessIsRefused) {
  CompilePoolOptions options;
  options.processes = 0;
  EXPECT_THAT(CompilePool::Create(options), StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace fusiond::server
