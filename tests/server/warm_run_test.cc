#include "server/service/warm_run.h"

#include <future>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/status_matchers.h"

namespace fusiond::server {
namespace {

using ::fusiond::testing::IsOk;
using ::fusiond::testing::StatusIs;
using ::testing::HasSubstr;

constexpr int64_t kMaxItems = 100000;

v1::WarmRequest Request(int items, std::vector<std::string> targets = {"cpu"}) {
  v1::WarmRequest request;
  for (int i = 0; i < items; ++i) request.add_items()->set_name(std::to_string(i));
  request.mutable_targets()->Assign(targets.begin(), targets.end());
  return request;
}

v1::CompileResponse Cached() {
  v1::CompileResponse response;
  response.set_source(v1::DISK);
  response.set_key("key");
  return response;
}

// Keeps what is written; acknowledges at once, or when told to.
class FakeOutput : public WarmRun::Output {
 public:
  void Write(const v1::WarmEvent* event) override {
    events.push_back(*event);
    // From another place than inside Write, as gRPC does.
    if (read)
      acknowledgements.push_back(std::async(std::launch::async, [this] { run->Written(true); }));
  }
  void End(const absl::Status& status) override { ended.set_value(status); }

  bool read = true;
  WarmRun* run = nullptr;
  std::vector<v1::WarmEvent> events;
  std::promise<absl::Status> ended;
  std::vector<std::future<void>> acknowledgements;
};

class WarmRunTest : public ::testing::Test {
 protected:
  WarmRun::Compiler Compiler() {
    WarmRun::Compiler compiler;
    compiler.max_items = kMaxItems;
    compiler.compile = [this](const v1::CompileRequest& request, WarmRun::Compiler::Callback done) {
      targets.push_back(request.target());
      if (hold) {
        held.push_back(std::move(done));
      } else {
        done(Cached());
      }
      return CompileEngine::Ticket();
    };
    compiler.cancel = [this](const CompileEngine::Ticket&) {
      ++cancels;
      return cancel_works;
    };
    compiler.draining = [this] { return draining; };
    return compiler;
  }
  std::shared_ptr<WarmRun> Make(const v1::WarmRequest& request) {
    auto run = std::make_shared<WarmRun>(Compiler(), request, &output);
    output.run = run.get();
    return run;
  }
  absl::Status Ended() { return output.ended.get_future().get(); }

  bool hold = false, draining = false, cancel_works = true;
  int cancels = 0;
  std::vector<std::string> targets;
  std::vector<WarmRun::Compiler::Callback> held;
  FakeOutput output;
};

TEST_F(WarmRunTest, EveryItemMeetsEveryTarget) {
  auto run = Make(Request(3, {"cpu", "sm_90a"}));
  run->Start();
  EXPECT_THAT(Ended(), IsOk());
  ASSERT_EQ(output.events.size(), 7u);
  std::map<std::string, int> seen;
  for (int i = 0; i < 6; ++i) {
    const v1::WarmEvent::Item& item = output.events[i].item();
    ++seen[item.name() + item.target()];
    EXPECT_EQ(item.code(), 0);
    EXPECT_EQ(item.source(), v1::DISK);
  }
  EXPECT_EQ(seen.size(), 6u);
  EXPECT_EQ(output.events[6].summary().total(), 6u);
  EXPECT_EQ(output.events[6].summary().cached(), 6u);
}

// Answers that come inside Compile must not nest: this many would overflow the stack.
TEST_F(WarmRunTest, EverythingCachedDoesNotRecurse) {
  output.read = false;
  auto run = Make(Request(static_cast<int>(kMaxItems)));
  run->Start();
  while (output.events.empty() || !output.events.back().has_summary()) run->Written(true);
  run->Written(true);
  EXPECT_THAT(Ended(), IsOk());
  EXPECT_EQ(output.events.size(), static_cast<size_t>(kMaxItems) + 1);
}

TEST_F(WarmRunTest, CallerThatDoesNotReadStopsNewWork) {
  output.read = false;
  auto run = Make(Request(1000));
  run->Start();
  EXPECT_EQ(output.events.size(), 1u);
  EXPECT_LE(targets.size(), WarmRun::kMaxUnread + WarmRun::kInFlight + 1);
  run->Cancel();
  run->Written(false);
  EXPECT_THAT(Ended(), IsOk());
}

TEST_F(WarmRunTest, AFewCompileAtOnce) {
  hold = true;
  auto run = Make(Request(100));
  run->Start();
  EXPECT_EQ(held.size(), static_cast<size_t>(WarmRun::kInFlight));
  const WarmRun::Compiler::Callback done = held[0];
  done(Cached());
  EXPECT_EQ(held.size(), static_cast<size_t>(WarmRun::kInFlight) + 1);
  run->Cancel();
  EXPECT_EQ(cancels, WarmRun::kInFlight);
  EXPECT_THAT(Ended(), IsOk());
}

TEST_F(WarmRunTest, BadItemFailsAloneF55) {
  hold = true;
  auto run = Make(Request(2));
  run->Start();
  held[0](absl::InvalidArgumentError("inputs[0]: rank \xff expected"));
  held[1](Cached());
  EXPECT_THAT(Ended(), IsOk());
  ASSERT_EQ(output.events.size(), 3u);
  EXPECT_EQ(output.events[0].item().code(), 3);
  EXPECT_EQ(output.events[0].item().message(), "inputs[0]: rank ? expected");  // valid UTF-8
  EXPECT_EQ(output.events[2].summary().failed(), 1u);
  EXPECT_EQ(output.events[2].summary().cached(), 1u);
}

TEST_F(WarmRunTest, DrainingEndsEarlyWithASummaryF51) {
  hold = true;
  auto run = Make(Request(100));
  run->Start();
  draining = true;
  for (size_t i = 0; i < static_cast<size_t>(WarmRun::kInFlight); ++i) held[i](Cached());
  EXPECT_THAT(Ended(), IsOk());
  EXPECT_TRUE(output.events.back().summary().draining());
  EXPECT_EQ(output.events.back().summary().cached(), static_cast<uint32_t>(WarmRun::kInFlight));
}

TEST_F(WarmRunTest, ItemsGivenUpByADrainAreForTheNextRunF51) {
  hold = true;
  auto run = Make(Request(2));
  run->Start();
  draining = true;
  held[0](Cached());
  held[1](absl::UnavailableError("the compile pool shuts down"));
  EXPECT_THAT(Ended(), IsOk());
  EXPECT_TRUE(output.events.back().summary().draining());
}

TEST_F(WarmRunTest, CancelWaitsForWhatCannotBeCancelled) {
  hold = true;
  cancel_works = false;
  auto run = Make(Request(2));
  run->Start();
  run->Cancel();
  std::future<absl::Status> ended = output.ended.get_future();
  EXPECT_EQ(ended.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  held[0](Cached());
  held[1](Cached());
  EXPECT_THAT(ended.get(), IsOk());
  EXPECT_TRUE(output.events.empty());
}

TEST_F(WarmRunTest, AnswersFromManyThreadsAreAllTold) {
  hold = true;
  auto run = Make(Request(WarmRun::kInFlight));
  run->Start();
  std::vector<std::thread> threads;
  for (WarmRun::Compiler::Callback& done : held) threads.emplace_back([&done] { done(Cached()); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(Ended(), IsOk());
  EXPECT_EQ(output.events.size(), static_cast<size_t>(WarmRun::kInFlight) + 1);
}

TEST_F(WarmRunTest, NothingAndTooMuchAreRefused) {
  for (int items : {0, static_cast<int>(kMaxItems) + 1}) {
    FakeOutput refused;
    auto run = std::make_shared<WarmRun>(Compiler(), Request(items), &refused);
    run->Start();
    EXPECT_THAT(refused.ended.get_future().get(),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("1 to 100000 expected, given " + std::to_string(items))));
  }
}

// A caller may leave before the daemon has started, or while it is refused.
TEST_F(WarmRunTest, WhoeverLeavesEndsItOnce) {
  for (int items : {0, 1, static_cast<int>(kMaxItems) + 1}) {
    FakeOutput left;
    auto run = std::make_shared<WarmRun>(Compiler(), Request(items), &left);
    run->Cancel();
    run->Start();  // a second End would throw
    run->Refuse(absl::ResourceExhaustedError("calls at once"));
    EXPECT_THAT(left.ended.get_future().get(), IsOk());
  }
  FakeOutput refused;
  auto run = std::make_shared<WarmRun>(Compiler(), Request(1), &refused);
  run->Refuse(absl::ResourceExhaustedError("calls at once"));
  run->Cancel();
  EXPECT_THAT(refused.ended.get_future().get(),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("calls at once")));
}

}  // namespace
}  // namespace fusiond::server
