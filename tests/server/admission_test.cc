// Who may have what, and how much: Grants, Quotas, StartGate; error texts.
#include <string>

#include "runtime/base/retry_hint.h"
#include "server/service/grants.h"
#include "server/service/quotas.h"
#include "server/service/start_gate.h"
#include "server/status_convert.h"
#include "tests/support/fake_clock.h"
#include "tests/support/status_matchers.h"

namespace fusiond::server {
namespace {

using ::fusiond::testing::FakeClock;
using ::fusiond::testing::IsOk;
using ::fusiond::testing::StatusIs;
using ::testing::HasSubstr;

base::Digest Number(uint64_t n) { return base::Sha256(std::to_string(n)); }

TEST(GrantsTest, AnIdentityNamesWhatItWasToldF37) {
  Grants grants;
  const Identity alice{"/run/fusiond", 1000, false}, bob{"/run/fusiond", 1001, false};
  const Identity pod{"/run/fusiond/pod", 1000, false};
  grants.Add(alice, Number(1));
  EXPECT_TRUE(grants.Allow(alice, Number(1)));
  EXPECT_FALSE(grants.Allow(alice, Number(2)));
  EXPECT_FALSE(grants.Allow(bob, Number(1)));
  EXPECT_FALSE(grants.Allow(pod, Number(1)));  // the same uid behind another socket
  EXPECT_TRUE(grants.Allow({"/run/fusiond", 0, true}, Number(3)));
}

TEST(GrantsTest, OldestGrantsAreForgotten) {
  Grants grants(/*limit=*/2);
  const Identity alice{"/run/fusiond", 1000, false};
  for (uint64_t n : {1, 2, 2, 3}) grants.Add(alice, Number(n));
  EXPECT_FALSE(grants.Allow(alice, Number(1)));
  EXPECT_TRUE(grants.Allow(alice, Number(2)));
  EXPECT_TRUE(grants.Allow(alice, Number(3)));
}

TEST(QuotasTest, CallsAtOnceAreLimited) {
  FakeClock clock;
  Quotas quotas({.calls = 2}, clock);
  EXPECT_THAT(quotas.Begin("a", 1), IsOk());
  EXPECT_THAT(quotas.Begin("a", 1), IsOk());
  EXPECT_THAT(quotas.Begin("a", 1), StatusIs(absl::StatusCode::kResourceExhausted,
                                             HasSubstr("calls of a at once: limit is 2, are 3")));
  EXPECT_EQ(quotas.refused(), 1u);
  EXPECT_THAT(quotas.Begin("b", 1), IsOk());
  quotas.End("a", 1, absl::OkStatus());
  EXPECT_THAT(quotas.Begin("a", 1), IsOk());
}

TEST(QuotasTest, MemoryOfCallsIsLimitedButForOneAlone) {
  FakeClock clock;
  Quotas quotas({.bytes = 100}, clock);
  EXPECT_THAT(quotas.Begin("a", 1000), IsOk());
  EXPECT_THAT(quotas.Begin("a", 1),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("bytes that calls of a take at once: limit is 100, are 1001; try "
                                 "again in 250 ms")));
  EXPECT_THAT(quotas.Begin("b", 60), IsOk());
  EXPECT_THAT(quotas.Begin("b", 40), IsOk());
  EXPECT_FALSE(quotas.Begin("b", 1).ok());
  quotas.End("b", 40, absl::OkStatus());
  EXPECT_THAT(quotas.Begin("b", 39), IsOk());
  quotas.End("a", 1000, absl::OkStatus());
  EXPECT_THAT(quotas.Begin("a", 100), IsOk());
}

TEST(QuotasTest, FailuresInALoopAreLimitedF16) {
  FakeClock clock;
  Quotas quotas({.calls = 10, .failures = 3, .failures_per_second = 2}, clock);
  const auto fail = [&](const absl::Status& with) {
    EXPECT_THAT(quotas.Begin("a", 1), IsOk());
    quotas.End("a", 1, with);
  };
  for (int i = 0; i < 10; ++i) fail(absl::UnavailableError("not the request's fault"));
  for (int i = 0; i < 10; ++i)
    fail(base::WithRetryHint(absl::ResourceExhaustedError("nor this"), absl::Seconds(1)));
  for (int i = 0; i < 3; ++i) fail(absl::InvalidArgumentError("bad graph"));
  EXPECT_THAT(quotas.Begin("a", 1),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("limit is 3 and 2 a second, are 3; try again in 500 ms")));
  EXPECT_THAT(quotas.Begin("b", 1), IsOk());
  clock.Advance(absl::Seconds(1));
  fail(absl::OkStatus());
}

TEST(StartGateTest, CallsWaitUntilItOpens) {
  StartGate gate;
  std::string order;
  EXPECT_TRUE(gate.Pass([&] { order += "a"; }));
  EXPECT_TRUE(gate.Pass([&] { order += "b"; }));
  EXPECT_EQ(order, "");
  gate.Open();
  EXPECT_EQ(order, "ab");
  EXPECT_TRUE(gate.Pass([&] { order += "c"; }));
  EXPECT_EQ(order, "abc");
}

TEST(StartGateTest, WaitingIsBounded) {
  StartGate gate;
  for (size_t i = 0; i < StartGate::kMaxWaiting; ++i) EXPECT_TRUE(gate.Pass([] {}));
  EXPECT_FALSE(gate.Pass([] { FAIL(); }));
  gate.Open();
}

TEST(StatusConvertTest, CodeStaysAndTextIsUtf8AndShort) {
  const grpc::Status status =
      ToGrpc(absl::InvalidArgumentError(std::string("name \xff") + std::string(5000, 'x')));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(status.error_message().substr(0, 6), "name ?");
  EXPECT_LT(status.error_message().size(), 2100u);
  EXPECT_TRUE(ToGrpc(absl::OkStatus()).ok());
}

}  // namespace
}  // namespace fusiond::server
