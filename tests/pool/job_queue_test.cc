#include "server/pool/job_queue.h"

#include <gtest/gtest.h>

namespace fusiond::server {
namespace {

PendingJob MakeJob(CompileJobId id, CompilePriority priority = CompilePriority::kNormal,
                   absl::Duration deadline = absl::InfiniteDuration()) {
  PendingJob job;
  job.id = id;
  job.request.priority = priority;
  job.deadline = deadline;
  return job;
}

std::vector<CompileJobId> Drain(JobQueue& queue) {
  std::vector<CompileJobId> ids;
  for (PendingJob& job : queue.TakeAll([](const PendingJob&) { return true; })) {
    ids.push_back(job.id);
  }
  return ids;
}

TEST(JobQueueTest, NormalBeforeLowAndEachInOrder) {
  JobQueue queue;
  queue.Add(MakeJob(1, CompilePriority::kLow));
  queue.Add(MakeJob(2));
  queue.Add(MakeJob(3));
  queue.Add(MakeJob(4, CompilePriority::kLow));
  queue.AddFirst(MakeJob(5));
  EXPECT_EQ(queue.size(), 5u);
  EXPECT_EQ(queue.size(CompilePriority::kLow), 2u);
  EXPECT_EQ(Drain(queue), (std::vector<CompileJobId>{5, 2, 3, 1, 4}));
  EXPECT_EQ(queue.size(), 0u);
}

PendingJob JobOf(const std::string& tenant, CompileJobId id) {
  PendingJob job = MakeJob(id);
  job.request.tenant = tenant;
  return job;
}

std::vector<CompileJobId> TakeInTurn(JobQueue& queue) {
  std::vector<CompileJobId> ids;
  while (auto job = queue.TakeNext([](const PendingJob&) { return true; })) ids.push_back(job->id);
  return ids;
}

TEST(JobQueueTest, TenantsTakeTurns) {
  JobQueue queue;
  for (CompileJobId id : {1, 2, 3, 4}) queue.Add(JobOf("alice", id));
  for (CompileJobId id : {5, 6}) queue.Add(JobOf("bob", id));
  queue.Add(JobOf("carol", 7));
  EXPECT_EQ(queue.tenants().at("alice"), 4u);
  EXPECT_EQ(TakeInTurn(queue), (std::vector<CompileJobId>{1, 5, 7, 2, 6, 3, 4}));
  EXPECT_TRUE(queue.tenants().empty());
  // Whoever comes anew waits for one of each that waits already, and no more.
  for (CompileJobId id : {1, 2, 3}) queue.Add(JobOf("alice", id));
  EXPECT_EQ(queue.TakeNext([](const PendingJob&) { return true; })->id, 1u);
  queue.Add(JobOf("bob", 4));
  EXPECT_EQ(TakeInTurn(queue), (std::vector<CompileJobId>{2, 4, 3}));
}

TEST(JobQueueTest, TurnEndsOnlyWhenAJobStarts) {
  JobQueue queue;
  for (CompileJobId id : {1, 2, 3}) queue.Add(JobOf("alice", id));
  for (CompileJobId id : {4, 5}) queue.Add(JobOf("bob", id));
  // Cancelled, and not served.
  EXPECT_EQ(queue.Take([](const PendingJob& job) { return job.id == 1; })->id, 1u);
  // A job that cannot start now holds up nobody; its tenant stays in front.
  EXPECT_EQ(queue.TakeNext([](const PendingJob& job) { return job.id != 2; })->id, 4u);
  queue.AddFirst(JobOf("bob", 6));  // has had its turn
  EXPECT_EQ(TakeInTurn(queue), (std::vector<CompileJobId>{6, 2, 5, 3}));
}

TEST(JobQueueTest, FirstWantedJobIsTakenFromAnywhere) {
  JobQueue queue;
  for (CompileJobId id : {1, 2, 3}) queue.Add(MakeJob(id));
  EXPECT_EQ(queue.Take([](const PendingJob& job) { return job.id == 2; })->id, 2u);
  EXPECT_FALSE(queue.Take([](const PendingJob& job) { return job.id == 2; }).has_value());
  EXPECT_EQ(Drain(queue), (std::vector<CompileJobId>{1, 3}));
}

TEST(JobQueueTest, EarliestDeadlineIsTold) {
  JobQueue queue;
  EXPECT_EQ(queue.NextDeadline(), absl::InfiniteDuration());
  queue.Add(MakeJob(1, CompilePriority::kNormal, absl::Seconds(5)));
  queue.Add(MakeJob(2, CompilePriority::kLow, absl::Seconds(3)));
  EXPECT_EQ(queue.NextDeadline(), absl::Seconds(3));
}

}  // namespace
}  // namespace fusiond::server
