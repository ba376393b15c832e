// The control plane as clients see it: real sockets, real gRPC, parts of the daemon behind it.
#include "server/control/control_server.h"

#include <google/protobuf/text_format.h>
#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <future>
#include <memory>
#include <semaphore>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "compiler/import/graph_proto.h"
#include "proto/fusiond/v1/service.grpc.pb.h"
#include "runtime/base/mutex.h"
#include "tests/server/fake_runner.h"
#include "tests/support/bad_graphs.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_folder.h"

namespace fusiond::server {
namespace {

using ::fusiond::testing::BadGraph;
using ::fusiond::testing::BadGraphs;
using ::fusiond::testing::FakeRunner;
using ::fusiond::testing::IsOk;
using ::testing::HasSubstr;

class ControlServerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    CompilePoolOptions pool;
    pool.spawn.program = "/nonexistent";
    ASSERT_OK_AND_ASSIGN(pool_, CompilePool::Create(std::move(pool)));
    LogicOptions logic;
    logic.limits = testing::kBadGraphLimits;
    logic_ = std::make_unique<FusiondLogic>(logic, &engine_, &cache_, pool_.get(), &devices_,
                                            &grants_, [](v1::StatusResponse&) {});
    ASSERT_OK_AND_ASSIGN(channel::UnixListener listener,
                         channel::UnixListener::Listen(path(), SOCK_STREAM, 0600));
    server_ = std::make_unique<ControlServer>(
        options_, std::move(listener),
        [this](const channel::PeerIdentity& peer) -> absl::StatusOr<Identity> {
          if (!admit_) return absl::PermissionDeniedError("not you");
          return Identity{"domain", peer.uid, administrator_};
        },
        ServiceParts{logic_.get(), &executor_, &tracker_, &gate_, &quotas_,
                     [](const CallRecord&) {}});
    ASSERT_THAT(server_->Start(), IsOk());
  }

  std::string path() const { return folder_.path() + "/control.sock"; }
  std::unique_ptr<v1::Fusiond::Stub> Connect() {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return v1::Fusiond::NewStub(
        grpc::CreateCustomChannel("unix:" + path(), grpc::InsecureChannelCredentials(), arguments));
  }
  static grpc::Status Compile(v1::Fusiond::Stub& stub, const v1::CompileRequest& request) {
    grpc::ClientContext context;
    v1::CompileResponse response;
    return stub.Compile(&context, request, &response);
  }
  static grpc::Status GetStatus(v1::Fusiond::Stub& stub) {
    grpc::ClientContext context;
    v1::StatusResponse response;
    return stub.Status(&context, {}, &response);
  }

  testing::TempFolder folder_;
  bool admit_ = true, administrator_ = false;
  ControlOptions options_;
  DeviceRegistry devices_;
  Grants grants_;
  Quotas quotas_;
  StartGate gate_;
  CallTracker tracker_;
  cache::Cache cache_{cache::CacheOptions(), nullptr};
  FakeRunner runner_;
  CompileEngine engine_{EngineOptions(), &cache_, &runner_};
  std::unique_ptr<CompilePool> pool_;
  std::unique_ptr<FusiondLogic> logic_;
  InlineExecutor executor_{[](const Identity&) { return absl::UnavailableError("no channel"); }};
  std::unique_ptr<ControlServer> server_;
};

TEST_F(ControlServerTest, BadGraphsAreRefusedWithCodeRuleAndValuesF41) {
  gate_.Open();
  std::unique_ptr<v1::Fusiond::Stub> stub = Connect();
  int refused = 0;
  for (const BadGraph& bad : BadGraphs()) {
    if (bad.proto == nullptr) continue;
    v1::Graph graph;
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
        absl::StrCat("version: 1 ", bad.proto), &graph));
    v1::CompileRequest request;
    request.set_graph(graph.SerializeAsString());
    request.set_target("cpu");
    const grpc::Status status = Compile(*stub, request);
    EXPECT_EQ(static_cast<int>(status.error_code()), static_cast<int>(testing::CodeOf(bad.rule)))
        << bad.name;
    EXPECT_THAT(status.error_message(), HasSubstr(std::string(ir::RuleName(bad.rule)))) << bad.name;
    EXPECT_THAT(status.error_message(), HasSubstr(bad.words)) << bad.name;
    EXPECT_THAT(status.error_message(), HasSubstr(bad.more_words)) << bad.name;
    ++refused;
  }
  EXPECT_GE(refused, 60);
  EXPECT_TRUE(GetStatus(*stub).ok());  // still serving
}

TEST_F(ControlServerTest, MessageAboveTheLimitIsResourceExhaustedF41) {
  gate_.Open();
  std::unique_ptr<v1::Fusiond::Stub> stub = Connect();
  v1::CompileRequest request;
  request.set_graph(std::string(size_t{18} << 20, 'x'));
  request.set_target("cpu");
  EXPECT_EQ(Compile(*stub, request).error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_TRUE(GetStatus(*stub).ok());
}

TEST_F(ControlServerTest, FullQuotaSaysWhenToTryAgain) {
  gate_.Open();
  std::unique_ptr<v1::Fusiond::Stub> stub = Connect();
  const std::string identity = Identity{"domain", ::geteuid(), false}.Name();
  while (quotas_.Begin(identity, 0).ok()) {
  }
  grpc::ClientContext context;
  v1::CompileRequest request;
  v1::CompileResponse response;
  const grpc::Status status = stub->Compile(&context, request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), HasSubstr("limit is 256, are 257; try again in 250 ms"));
  const auto hint = context.GetServerTrailingMetadata().find("grpc-retry-pushback-ms");
  ASSERT_NE(hint, context.GetServerTrailingMetadata().end());
  EXPECT_EQ(std::string(hint->second.data(), hint->second.size()), "250");
}

// What the watchdog asks before it is fed.
TEST_F(ControlServerTest, ThreadThatDoesNotTurnDoesNotRespondF53) {
  EXPECT_TRUE(server_->Responds(absl::InfiniteDuration()));
  server_->Stop(absl::ZeroDuration());
  EXPECT_FALSE(server_->Responds(absl::ZeroDuration()));
}

TEST_F(ControlServerTest, StrangersAreClosedUnread) {
  admit_ = false;
  std::unique_ptr<v1::Fusiond::Stub> stub = Connect();
  EXPECT_EQ(GetStatus(*stub).error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(server_->connections(), 0u);
}

TEST_F(ControlServerTest, EvictionIsTheAdministrators) {
  std::unique_ptr<v1::Fusiond::Stub> stub = Connect();
  grpc::ClientContext context;
  v1::CacheEvictRequest request;
  v1::CacheEvictResponse response;
  request.set_all(true);
  const grpc::Status status = stub->CacheEvict(&context, request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED);
}

TEST_F(ControlServerTest, WhatDependsOnNvrtcOrDevicesWaitsForTheGate) {
  std::unique_ptr<v1::Fusiond::Stub> stub = Connect();
  EXPECT_TRUE(GetStatus(*stub).ok());
  const auto soon = std::chrono::system_clock::now() + std::chrono::milliseconds(50);
  grpc::ClientContext compile, devices;
  compile.set_deadline(soon);
  devices.set_deadline(soon);
  v1::CompileRequest request;
  request.set_target("nowhere");
  v1::CompileResponse compiled;
  v1::DevicesResponse found;
  EXPECT_EQ(stub->Compile(&compile, request, &compiled).error_code(),
            grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(stub->Devices(&devices, {}, &found).error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  gate_.Open();
  EXPECT_EQ(Compile(*stub, request).error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_TRUE(tracker_.WaitUntilIdle(absl::Minutes(1)));  // those that nobody waits for too
}

TEST_F(ControlServerTest, CallersDeadlineCancelsTheWork) {
  gate_.Open();
  std::unique_ptr<v1::Fusiond::Stub> stub = Connect();
  v1::CompileRequest request;
  v1::Graph graph;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
      "version: 1 inputs{dtype:FLOAT shape:4} nodes{op:'neg' operands:0} outputs{value:1}",
      &graph));
  request.set_graph(graph.SerializeAsString());
  request.set_target("cpu");
  // A call whose deadline passes on its way to the server starts no work: then a longer one.
  for (auto limit = std::chrono::milliseconds(50); runner_.plans() == 0; limit *= 2) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + limit);
    v1::CompileResponse response;
    EXPECT_EQ(stub->Compile(&context, request, &response).error_code(),
              grpc::StatusCode::DEADLINE_EXCEEDED);
  }
  runner_.WaitForCancelled(1);
  EXPECT_TRUE(tracker_.WaitUntilIdle(absl::Minutes(1)));
}

TEST_F(ControlServerTest, CallThatWaitsBehindStuckOnesEndsWithItsCaller) {
  gate_.Open();
  std::unique_ptr<v1::Fusiond::Stub> stub = Connect();
  v1::Graph graph;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
      "version: 1 inputs{dtype:FLOAT shape:4} nodes{op:'neg' operands:0} outputs{value:1}",
      &graph));
  v1::CompileRequest compile;
  compile.set_graph(graph.SerializeAsString());
  compile.set_target("cpu");
  std::thread pool([this] { runner_.ServeOne(); });
  EXPECT_TRUE(Compile(*stub, compile).ok());
  pool.join();

  const Identity identity{"domain", ::geteuid(), false};
  std::counting_semaphore<> begun(0);
  absl::Notification release;
  std::promise<void> ended[InlineExecutor::kThreadsPerIdentity];
  for (std::promise<void>& one : ended) {
    InlineExecutor::Call stuck;
    stuck.identity = identity;
    stuck.cancelled = [&] {
      begun.release();
      release.WaitForNotification();
      return true;
    };
    executor_.Run(std::move(stuck), [&](const auto&) { one.set_value(); });
  }
  for (size_t i = 0; i < std::size(ended); ++i) begun.acquire();

  v1::ExecuteRequest request;
  request.set_graph(compile.graph());
  request.set_target("cpu");
  v1::InlineTensor* x = request.add_inputs();
  x->set_dtype(v1::FLOAT);
  x->add_shape(4);
  x->set_data(std::string(16, '\0'));
  const auto execute = [&](grpc::ClientContext& context) {
    v1::ExecuteResponse response;
    return stub->Execute(&context, request, &response).error_code();
  };
  grpc::ClientContext late, cancelled;
  late.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(50));
  EXPECT_EQ(execute(late), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_TRUE(tracker_.WaitUntilIdle(absl::Minutes(1)));
  std::thread caller([&] { EXPECT_EQ(execute(cancelled), grpc::StatusCode::CANCELLED); });
  while (tracker_.counts().active == 0) std::this_thread::yield();
  cancelled.TryCancel();
  caller.join();
  EXPECT_TRUE(tracker_.WaitUntilIdle(absl::Minutes(1)));
  int free = 0;
  while (quotas_.Begin(identity.Name(), 0).ok()) ++free;
  EXPECT_EQ(free, QuotaOptions().calls);

  release.Notify();
  for (std::promise<void>& one : ended) one.get_future().wait();
}

TEST_F(ControlServerTest, DrainRefusesNewConnectionsAndCalls) {
  gate_.Open();
  std::unique_ptr<v1::Fusiond::Stub> stub = Connect();
  ASSERT_TRUE(GetStatus(*stub).ok());
  logic_->SetState(FusiondLogic::State::kDraining);
  server_->BeginDrain();
  v1::CompileRequest request;
  request.set_target("cpu");
  EXPECT_EQ(Compile(*stub, request).error_code(), grpc::StatusCode::UNAVAILABLE);
  grpc::ClientContext context;
  v1::StatusResponse response;
  ASSERT_TRUE(stub->Status(&context, {}, &response).ok());
  EXPECT_EQ(response.state(), v1::StatusResponse::DRAINING);
}

TEST_F(ControlServerTest, HangUpsAreCounted) {
  {
    std::unique_ptr<v1::Fusiond::Stub> stub = Connect();
    ASSERT_TRUE(GetStatus(*stub).ok());
    EXPECT_EQ(server_->connections(), 1u);
  }
  while (server_->connections() > 0) std::this_thread::yield();
  EXPECT_TRUE(server_->Responds(absl::InfiniteDuration()));
}

class CrowdedControlServerTest : public ControlServerTest {
 protected:
  CrowdedControlServerTest() {
    options_.connections_per_identity = 1;
    options_.log = [this](const std::string&, const std::string& line) {
      const base::MutexLock lock(&mutex_);
      log_.push_back(line);
    };
  }
  std::vector<std::string> log() {
    const base::MutexLock lock(&mutex_);
    return log_;
  }

  base::Mutex mutex_;
  std::vector<std::string> log_ ABSL_GUARDED_BY(mutex_);
};

TEST_F(CrowdedControlServerTest, RefusedConnectionsAreLoggedOnceInAWhile) {
  std::unique_ptr<v1::Fusiond::Stub> first = Connect();
  ASSERT_TRUE(GetStatus(*first).ok());
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(GetStatus(*Connect()).error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(log(), ::testing::ElementsAre(HasSubstr("limit is 1, are 2")));
}

}  // namespace
}  // namespace fusiond::server
