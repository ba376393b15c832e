#include "server/engine/engine.h"

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "compiler/import/graph_proto.h"
#include "compiler/ir/text.h"
#include "tests/server/fake_runner.h"
#include "tests/support/status_matchers.h"

namespace fusiond::server {
namespace {

using ::fusiond::testing::FakeRunner;
using ::fusiond::testing::IsOk;
using ::fusiond::testing::StatusIs;
using ::testing::HasSubstr;

constexpr char kAdd[] = "fir 1\n%a=input:f32[64,32]\n%b=input:f32[64,32]\n%c=add %a, %b\noutput %c";
// The same arithmetic as kAdd, spelt otherwise.
constexpr char kAddTwice[] =
    "fir 1\n%a=input:f32[64,32]\n%b=input:f32[64,32]\n%c=add %b, %a\n%d=neg %c\n%e=neg %d\n"
    "output %e";
constexpr char kMul[] = "fir 1\n%a=input:f32[64,32]\n%b=input:f32[64,32]\n%c=mul %a, %b\noutput %c";
// Several kernels.
constexpr char kSums[] =
    "fir 1\n%a=input:f32[512,512]\n%r=sum %a {dims=[1]}\n%c=sum %a {dims=[0]}\noutput %r\n"
    "output %c";

using Answer = absl::StatusOr<CompileAnswer>;

// A caller that waits for its answer.
class Caller {
 public:
  CompileEngine::Callback callback() {
    return [this](const Answer& answer) { promise_.set_value(answer); };
  }
  Answer Get() {
    if (future_.wait_for(std::chrono::minutes(2)) == std::future_status::ready)
      return future_.get();
    return absl::DeadlineExceededError("no answer in two minutes");
  }
  CompileEngine::Ticket ticket;

 private:
  std::promise<Answer> promise_;
  std::future<Answer> future_ = promise_.get_future();
};

class EngineTest : public ::testing::Test {
 protected:
  EngineTest()
      : cache_(cache::CacheOptions(), nullptr), engine_(EngineOptions(), &cache_, &runner_) {}

  static std::shared_ptr<const PreparedRequest> Request(const char* fir,
                                                        const std::string& target = "sm_90a",
                                                        int64_t alignment = 16) {
    absl::StatusOr<ir::Graph> graph = ir::Parse(fir);
    EXPECT_THAT(graph, IsOk());
    v1::CompileRequest request;
    request.set_graph(graph_proto::ToBytes(*graph));
    for (ir::ValueId input : graph->inputs()) {
      v1::InputLayout* layout = request.add_inputs();
      for (int64_t extent : graph->type(input).shape) layout->add_shape(extent);
      layout->set_alignment(alignment);
    }
    absl::StatusOr<executable::DeviceInfo> device = executable::ProfileByName(target);
    EXPECT_THAT(device, IsOk());
    absl::StatusOr<PreparedRequest> prepared =
        PrepareRequest(request, *device, {"compiler", "nvrtc"});
    EXPECT_THAT(prepared, IsOk());
    return std::make_shared<const PreparedRequest>(*std::move(prepared));
  }

  void Begin(Caller& caller, std::shared_ptr<const PreparedRequest> request,
             CompilePriority priority = CompilePriority::kNormal) {
    caller.ticket = engine_.Compile(std::move(request), "tenant", priority, caller.callback());
  }
  // Asks, and answers `jobs` jobs as a pool would.
  Answer Compile(std::shared_ptr<const PreparedRequest> request, int jobs) {
    Caller caller;
    Begin(caller, std::move(request));
    for (int i = 0; i < jobs; ++i) runner_.ServeOne();
    return caller.Get();
  }

  cache::Cache cache_;
  FakeRunner runner_;
  CompileEngine engine_;
};

TEST_F(EngineTest, MissCompilesAndHitDoesNot) {
  ASSERT_OK_AND_ASSIGN(const CompileAnswer compiled, Compile(Request(kAdd), 2));
  EXPECT_EQ(compiled.source, AnswerSource::kCompiled);
  EXPECT_EQ(compiled.nvrtc_calls, 1u);
  EXPECT_EQ(compiled.revision, 1u);
  EXPECT_GT(compiled.source_bytes, 0u);
  ASSERT_OK_AND_ASSIGN(const CompileAnswer hit, Compile(Request(kAdd), 0));
  EXPECT_EQ(hit.source, AnswerSource::kMemory);
  EXPECT_EQ(hit.executable, compiled.executable);
  EXPECT_EQ(*hit.bytes, *compiled.bytes);
  EXPECT_EQ(base::Sha256(*hit.bytes), hit.executable);
  EXPECT_EQ(runner_.plans(), 1);
}

TEST_F(EngineTest, CpuHasNoImages) {
  ASSERT_OK_AND_ASSIGN(const CompileAnswer answer, Compile(Request(kAdd, "cpu"), 1));
  EXPECT_EQ(answer.nvrtc_calls, 0u);
  EXPECT_EQ(runner_.images(), 0);
}

TEST_F(EngineTest, OtherArchIsAnotherRequestF15) {
  ASSERT_OK_AND_ASSIGN(const CompileAnswer hopper, Compile(Request(kAdd, "sm_90a"), 2));
  ASSERT_OK_AND_ASSIGN(const CompileAnswer ada, Compile(Request(kAdd, "sm_89"), 2));
  EXPECT_NE(hopper.key, ada.key);
  EXPECT_NE(hopper.executable, ada.executable);
}

TEST_F(EngineTest, SixtyFourCallersShareOneCompileF14) {
  std::vector<Caller> callers(64);
  for (Caller& caller : callers) Begin(caller, Request(kAdd));
  runner_.ServeOne();
  runner_.ServeOne();
  ASSERT_OK_AND_ASSIGN(const CompileAnswer first, callers[0].Get());
  for (size_t i = 1; i < callers.size(); ++i) {
    ASSERT_OK_AND_ASSIGN(const CompileAnswer answer, callers[i].Get());
    EXPECT_EQ(answer.executable, first.executable);
  }
  EXPECT_EQ(runner_.plans(), 1);
  EXPECT_EQ(runner_.images(), 1);
}

TEST_F(EngineTest, OneCallersCancelLeavesTheOthersF14) {
  Caller stays, leaves;
  Begin(stays, Request(kAdd));
  Begin(leaves, Request(kAdd));
  EXPECT_TRUE(engine_.Cancel(leaves.ticket));
  runner_.ServeOne();
  runner_.ServeOne();
  EXPECT_THAT(stays.Get(), IsOk());
  EXPECT_FALSE(engine_.Cancel(stays.ticket));
}

TEST_F(EngineTest, LastCallersCancelEndsTheWork) {
  Caller first, second;
  Begin(first, Request(kAdd));
  FakeRunner::Job plan = runner_.Take();
  EXPECT_TRUE(engine_.Cancel(first.ticket));
  EXPECT_EQ(runner_.WaitForCancelled(1)[0], plan.id);
  EXPECT_EQ(engine_.in_flight(), 0u);
  // Whoever asks now begins anew; the late answer of the old job reaches nobody.
  Begin(second, Request(kAdd));
  plan.done(FailedOutcome(absl::CancelledError("compile job cancelled")));
  runner_.ServeOne();
  runner_.ServeOne();
  EXPECT_THAT(second.Get(), IsOk());
}

TEST_F(EngineTest, SpillPlansAgain) {
  Caller caller;
  Begin(caller, Request(kAdd));
  for (int attempt = 0; attempt < 2; ++attempt) {
    FakeRunner::Job plan = runner_.Take();
    EXPECT_EQ(plan.request.job.plan().attempt(), attempt);
    plan.done(FakeRunner::Planned(plan, attempt == 0 ? "" : "// other"));
    FakeRunner::Job image = runner_.Take();
    image.done(FakeRunner::Compiled(image, /*spills=*/attempt == 0));
  }
  ASSERT_OK_AND_ASSIGN(const CompileAnswer answer, caller.Get());
  EXPECT_EQ(answer.nvrtc_calls, 2u);
  EXPECT_EQ(runner_.plans(), 2);
}

TEST_F(EngineTest, SpillsOfEveryCandidateEndWithTheLast) {
  Caller caller;
  Begin(caller, Request(kAdd));
  for (int attempt = 0; attempt < EngineOptions().max_attempts; ++attempt) {
    FakeRunner::Job plan = runner_.Take();
    plan.done(FakeRunner::Planned(plan, std::string(attempt, ' ')));
    FakeRunner::Job image = runner_.Take();
    image.done(FakeRunner::Compiled(image, /*spills=*/true));
  }
  EXPECT_THAT(caller.Get(), IsOk());
  EXPECT_EQ(runner_.plans(), EngineOptions().max_attempts);
}

TEST_F(EngineTest, PlanThatBringsNothingNewIsTaken) {
  Caller caller;
  Begin(caller, Request(kAdd));
  FakeRunner::Job plan = runner_.Take();
  plan.done(FakeRunner::Planned(plan));
  FakeRunner::Job image = runner_.Take();
  image.done(FakeRunner::Compiled(image, /*spills=*/true));
  FakeRunner::Job again = runner_.Take();
  again.done(FakeRunner::Planned(plan));  // the last candidate, once more
  EXPECT_THAT(caller.Get(), IsOk());
  EXPECT_EQ(runner_.images(), 1);
}

TEST_F(EngineTest, CrashesQuarantineTheKeyF23) {
  CompileOutcome crash = FailedOutcome(absl::InternalError("killed by signal 11 (SEGV)"));
  crash.crashed = true;
  for (int i = 0; i < EngineOptions().quarantine_after; ++i) {
    Caller caller;
    Begin(caller, Request(kAdd));
    runner_.Take().done(crash);
    EXPECT_THAT(caller.Get(), StatusIs(absl::StatusCode::kInternal,
                                       ::testing::AllOf(HasSubstr("key "), HasSubstr("SEGV"))));
  }
  EXPECT_THAT(Compile(Request(kAdd), 0),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("quarantined after 3 crashes")));
  EXPECT_EQ(runner_.plans(), EngineOptions().quarantine_after);
  EXPECT_THAT(Compile(Request(kMul), 2), IsOk());  // other keys are not concerned
}

TEST_F(EngineTest, OutOfMemoryIsNeverRememberedF22) {
  // NVRTC itself calls it a bad source.
  for (const absl::Status& failure : {absl::ResourceExhaustedError("out of memory, 2 times"),
                                      absl::InternalError("catastrophic error: out of memory")}) {
    CompileOutcome outcome = FailedOutcome(failure);
    outcome.out_of_memory = true;
    outcome.verdict = absl::IsInternal(failure);
    Caller caller;
    Begin(caller, Request(kAdd));
    runner_.Take().done(outcome);
    EXPECT_THAT(caller.Get(), StatusIs(failure.code()));
  }
  EXPECT_THAT(Compile(Request(kAdd), 2), IsOk());
}

TEST_F(EngineTest, VerdictIsRememberedF16) {
  CompileOutcome outcome = FailedOutcome(absl::UnimplementedError("no scheduler takes it"));
  outcome.verdict = true;
  Caller caller;
  Begin(caller, Request(kAdd));
  runner_.Take().done(outcome);
  EXPECT_THAT(caller.Get(), StatusIs(absl::StatusCode::kUnimplemented));
  EXPECT_THAT(Compile(Request(kAdd), 0), StatusIs(absl::StatusCode::kUnimplemented));
  EXPECT_EQ(runner_.plans(), 1);
}

TEST_F(EngineTest, PassingFailureIsTriedAgain) {
  Caller caller;
  Begin(caller, Request(kAdd));
  runner_.Take().done(FailedOutcome(absl::DeadlineExceededError("60 s")));
  EXPECT_THAT(caller.Get(), StatusIs(absl::StatusCode::kDeadlineExceeded));
  EXPECT_THAT(Compile(Request(kAdd), 2), IsOk());
}

TEST_F(EngineTest, FullQueueReachesTheCaller) {
  runner_.Refuse(absl::ResourceExhaustedError("compile queue full: limit is 1 jobs, 1 wait"));
  EXPECT_THAT(Compile(Request(kAdd), 0),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("limit is 1")));
  EXPECT_EQ(engine_.in_flight(), 0u);
}

TEST_F(EngineTest, CanonicalFormIsCompiledOnce) {
  ASSERT_OK_AND_ASSIGN(const CompileAnswer plain, Compile(Request(kAdd), 2));
  ASSERT_OK_AND_ASSIGN(const CompileAnswer twice, Compile(Request(kAddTwice), 1));
  EXPECT_NE(plain.key, twice.key);
  EXPECT_EQ(plain.executable, twice.executable);
  EXPECT_EQ(twice.source, AnswerSource::kMemory);
  EXPECT_EQ(runner_.images(), 1);
  ASSERT_OK_AND_ASSIGN(const CompileAnswer linked, Compile(Request(kAddTwice), 0));
  EXPECT_EQ(linked.executable, plain.executable);
}

TEST_F(EngineTest, EqualImagesOfDifferentGraphsCompileOnce) {
  for (const char* fir : {kAdd, kMul}) {
    Caller caller;
    Begin(caller, Request(fir));
    FakeRunner::Job plan = runner_.Take();
    CompileOutcome planned = FakeRunner::Planned(plan);
    planned.reply.mutable_plan()->mutable_sources(0)->set_text("one kernel for all");
    plan.done(std::move(planned));
    if (fir == kAdd) runner_.ServeOne();
    ASSERT_OK_AND_ASSIGN(const CompileAnswer answer, caller.Get());
    EXPECT_EQ(answer.nvrtc_calls, fir == kAdd ? 1u : 0u);
  }
}

TEST_F(EngineTest, GuardThatFailsMakesANewRevision) {
  ASSERT_OK_AND_ASSIGN(const CompileAnswer aligned, Compile(Request(kAdd, "sm_90a", 16), 2));
  ASSERT_OK_AND_ASSIGN(const CompileAnswer loose, Compile(Request(kAdd, "sm_90a", 4), 2));
  EXPECT_EQ(loose.key, aligned.key);  // alignment is a guard, not part of the key
  EXPECT_EQ(loose.revision, 2u);
  EXPECT_NE(loose.executable, aligned.executable);
  for (int64_t alignment : {16, 4}) {
    ASSERT_OK_AND_ASSIGN(const CompileAnswer hit, Compile(Request(kAdd, "sm_90a", alignment), 0));
    EXPECT_EQ(hit.executable, alignment == 16 ? aligned.executable : loose.executable);
  }
}

TEST_F(EngineTest, FailedImageEndsItsSiblings) {
  Caller caller;
  Begin(caller, Request(kSums));
  FakeRunner::Job plan = runner_.Take();
  CompileOutcome planned = FakeRunner::Planned(plan);
  ASSERT_THAT(planned.status, IsOk());
  const int images = planned.reply.plan().sources_size();
  ASSERT_GE(images, 2);
  plan.done(std::move(planned));
  FakeRunner::Job image = runner_.Take();
  CompileOutcome refused = FailedOutcome(absl::InternalError("NVRTC: expected a ;"));
  refused.verdict = true;
  while (runner_.images() < images) std::this_thread::yield();
  image.done(refused);
  EXPECT_THAT(caller.Get(), StatusIs(absl::StatusCode::kInternal, HasSubstr("expected a ;")));
  runner_.WaitForCancelled(static_cast<size_t>(images) - 1);
}

TEST_F(EngineTest, WhoWaitsRaisesWhatWarmBegan) {
  Caller warm, waits;
  Begin(warm, Request(kAdd), CompilePriority::kLow);
  FakeRunner::Job plan = runner_.Take();
  EXPECT_EQ(plan.request.priority, CompilePriority::kLow);
  Begin(waits, Request(kAdd));
  // Maybe a moment later, by the thread that is still submitting the job.
  EXPECT_THAT(runner_.WaitForRaised(1), ::testing::Contains(plan.id));
  plan.done(FakeRunner::Planned(plan));
  FakeRunner::Job image = runner_.Take();
  EXPECT_EQ(image.request.priority, CompilePriority::kNormal);
  image.done(FakeRunner::Compiled(image));
  EXPECT_THAT(warm.Get(), IsOk());
  EXPECT_THAT(waits.Get(), IsOk());
}

TEST_F(EngineTest, PeekCompilesAndCountsNothing) {
  EXPECT_FALSE(engine_.Peek(*Request(kAdd)).has_value());
  ASSERT_THAT(Compile(Request(kAdd), 2), IsOk());
  const uint64_t hits = cache_.Stats().requests.memory_hits;
  EXPECT_TRUE(engine_.Peek(*Request(kAdd)).has_value());
  EXPECT_EQ(cache_.Stats().requests.memory_hits, hits);
}

TEST_F(EngineTest, EngineResponds) { EXPECT_TRUE(engine_.Responds(absl::InfiniteDuration())); }

}  // namespace
}  // namespace fusiond::server
