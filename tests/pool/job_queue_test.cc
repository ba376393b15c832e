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

TEST(JobQueueTest, FirstWantedJobIsTakenFromAnywhere) {
  JobQueue queue;
  for (CompileJobId id : {1, 2, 3}) queue.Add(MakeJob(id));
  EXPECT_EQ(queue.TakeFirst([](const PendingJob& job) { return job.id == 2; })->id, 2u);
  EXPECT_FALSE(queue.TakeFirst([](const PendingJob& job) { return job.id == 2; }).has_value());
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
