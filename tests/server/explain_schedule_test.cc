// ScheduleExplainer against a runner whose jobs the test answers.
#include "server/service/explain_schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

#include "compiler/import/graph_proto.h"
#include "compiler/ir/text.h"
#include "runtime/executable/explanation.h"
#include "tests/server/fake_runner.h"
#include "tests/support/status_matchers.h"

namespace fusiond::server {
namespace {

using ::fusiond::testing::FakeRunner;
using ::fusiond::testing::IsOk;
using ::fusiond::testing::StatusIs;
using ::testing::HasSubstr;
using v1::Explanation;

// Two segments.
constexpr char kTwo[] =
    "fir 1\n%a=input:f32[64,32]\n%b=input:f32[4096]\n%c=neg %a\n%s=sum %b {dims=[0]}\n"
    "output %c\noutput %s";

class ExplainScheduleTest : public ::testing::Test {
 protected:
  void Begin(const std::string& target = "sm_90a", int max_attempts = 3) {
    const absl::StatusOr<ir::Graph> graph = ir::Parse(kTwo);
    ASSERT_THAT(graph, IsOk());
    v1::CompileRequest request;
    request.set_graph(graph_proto::ToBytes(*graph));
    absl::StatusOr<executable::DeviceInfo> device = executable::ProfileByName(target);
    ASSERT_THAT(device, IsOk());
    absl::StatusOr<PreparedRequest> prepared =
        PrepareRequest(request, *device, {"compiler", "nvrtc"});
    ASSERT_THAT(prepared, IsOk());
    cancel_ =
        ExplainSchedule(std::make_shared<const PreparedRequest>(*std::move(prepared)), "tenant",
                        max_attempts, &runner_, [this](absl::StatusOr<Explanation> answer) {
                          ++answers_;
                          answer_ = std::move(answer);
                        });
  }

  // The PLAN job, answered.
  void ServePlan() {
    FakeRunner::Job job = runner_.Take();
    ASSERT_TRUE(job.plan());
    EXPECT_TRUE(job.request.job.plan().explain());
    EXPECT_EQ(job.request.tenant, "tenant");
    job.done(FakeRunner::Planned(job));
  }

  // An IMAGE job, whose kernel has 40 registers and spills so much.
  void ServeImage(int64_t spill_bytes) {
    FakeRunner::Job job = runner_.Take();
    ASSERT_FALSE(job.plan());
    CompileOutcome outcome;
    internal::v1::EntryResources* entry = outcome.reply.mutable_image()->add_entries();
    const std::string& source = job.request.job.image().source();
    const size_t begin = source.find("fd_", source.find("__launch_bounds__"));
    entry->set_entry(source.substr(begin, source.find('(', begin) - begin));
    entry->set_registers(40);
    entry->set_spill_load_bytes(spill_bytes);
    job.done(std::move(outcome));
  }

  FakeRunner runner_;
  std::function<void()> cancel_;
  int answers_ = 0;
  absl::StatusOr<Explanation> answer_ = absl::UnknownError("none yet");
};

TEST_F(ExplainScheduleTest, KernelsGetWhatNvrtcSays) {
  Begin();
  ServePlan();
  while (answers_ == 0) ServeImage(0);
  ASSERT_THAT(answer_, IsOk());
  ASSERT_EQ(answer_->segments_size(), 2);
  for (const Explanation::Segment& segment : answer_->segments()) {
    for (const Explanation::Kernel& kernel : segment.kernels()) {
      EXPECT_EQ(kernel.resources().registers(), 40) << kernel.ShortDebugString();
      EXPECT_GT(kernel.resources().ctas_per_sm(), 0);
      EXPECT_EQ(kernel.problem(), "");
    }
  }
  EXPECT_EQ(runner_.plans(), 1);
}

TEST_F(ExplainScheduleTest, SchedulesThatSpillAreRefusedAsACompileRefusesThem) {
  Begin();
  ServePlan();
  ServeImage(24);
  while (answers_ == 0) {
    FakeRunner::Job job = runner_.Take();
    if (job.plan()) {
      EXPECT_EQ(job.request.job.plan().attempt(), 1);
      job.done(FakeRunner::Planned(job));
    } else {
      job.done(CompileOutcome());  // no entries: nothing spills
    }
  }
  ASSERT_THAT(answer_, IsOk());
  EXPECT_EQ(runner_.plans(), 2);
  const std::string text = executable::Print(*answer_);
  EXPECT_THAT(text, HasSubstr(": its kernels spill 24 bytes a thread\n"));
  EXPECT_THAT(text, HasSubstr("those of another segment do"));
  for (const Explanation::Segment& segment : answer_->segments())
    EXPECT_TRUE(segment.choices(1).chosen());
}

TEST_F(ExplainScheduleTest, LastAttemptIsKeptThoughItSpills) {
  Begin("sm_90a", 1);
  ServePlan();
  while (answers_ == 0) ServeImage(24);
  ASSERT_THAT(answer_, IsOk());
  EXPECT_EQ(runner_.plans(), 1);
  EXPECT_THAT(executable::Print(*answer_), HasSubstr("24 B of spills"));
}

TEST_F(ExplainScheduleTest, WithoutNvrtcTheRestIsToldAllTheSame) {
  Begin();
  ServePlan();
  while (answers_ == 0) {
    FakeRunner::Job job = runner_.Take();
    job.done(FailedOutcome(absl::FailedPreconditionError("no NVRTC")));
  }
  ASSERT_THAT(answer_, IsOk());
  EXPECT_FALSE(answer_->segments(0).kernels(0).has_resources());
  EXPECT_EQ(answer_->segments(0).kernels(0).problem(), "no NVRTC");
}

TEST_F(ExplainScheduleTest, CpuNeedsNoImages) {
  Begin("cpu");
  ServePlan();
  ASSERT_THAT(answer_, IsOk());
  EXPECT_EQ(runner_.images(), 0);
}

TEST_F(ExplainScheduleTest, FailuresAreTheAnswer) {
  Begin();
  FakeRunner::Job job = runner_.Take();
  job.done(FailedOutcome(absl::InternalError("crashed")));
  EXPECT_THAT(answer_, StatusIs(absl::StatusCode::kInternal, HasSubstr("crashed")));

  Begin();
  job = runner_.Take();
  CompileOutcome garbage = FakeRunner::Planned(job);
  garbage.reply.mutable_plan()->set_explanation("\xff\xff\xff");
  job.done(std::move(garbage));
  EXPECT_THAT(answer_, StatusIs(absl::StatusCode::kInternal, HasSubstr("cannot be read")));
}

// A reply that names kernels which its images do not have.
TEST_F(ExplainScheduleTest, HostileReplyHarmsNothing) {
  Begin();
  FakeRunner::Job job = runner_.Take();
  CompileOutcome outcome = FakeRunner::Planned(job);
  Explanation explanation;
  explanation.add_segments()->add_kernels()->set_name("no such image");
  outcome.reply.mutable_plan()->set_explanation(explanation.SerializeAsString());
  job.done(std::move(outcome));
  while (answers_ == 0) ServeImage(0);
  ASSERT_THAT(answer_, IsOk());
  EXPECT_THAT(answer_->segments(0).kernels(0).problem(), HasSubstr("no such image"));
}

TEST_F(ExplainScheduleTest, CancelEndsItOnce) {
  Begin();
  cancel_();
  EXPECT_EQ(answers_, 1);
  EXPECT_THAT(answer_, StatusIs(absl::StatusCode::kCancelled));

  Begin();
  ServePlan();
  cancel_();
  EXPECT_EQ(answers_, 2);
  EXPECT_THAT(answer_, StatusIs(absl::StatusCode::kCancelled));
  EXPECT_EQ(runner_.plans(), 2);
}

}  // namespace
}  // namespace fusiond::server
