// Compiling through the real daemon: caching, restarts, many clients, the rest of the control
// plane.
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <signal.h>

#include <chrono>
#include <cstring>
#include <future>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cc/paths.h"
#include "compiler/import/graph_proto.h"
#include "proto/fusiond/v1/service.grpc.pb.h"
#include "tests/e2e/test_daemon.h"
#include "tests/support/status_matchers.h"

namespace fusiond {
namespace {

using ::fusiond::testing::AddGraph;
using ::fusiond::testing::Graph;
using ::fusiond::testing::IsOk;
using ::fusiond::testing::StatusIs;
using ::fusiond::testing::TestDaemon;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

bool HasNvrtc(client::Client& client) {
  auto status = client.GetStatus();
  return status.ok() && !status->nvrtc_version().empty();
}

TEST(CompileTest, AnswerComesFromMemoryThenFromDiskAfterKill9) {
  TestDaemon daemon;
  daemon.Serve();
  std::unique_ptr<client::Client> client = daemon.Connect();
  ASSERT_OK_AND_ASSIGN(const client::Fusion compiled, client->Compile(AddGraph(), "cpu"));
  EXPECT_EQ(compiled.response.source(), v1::COMPILED);
  ASSERT_OK_AND_ASSIGN(const client::Fusion again, client->Compile(AddGraph(), "cpu"));
  EXPECT_EQ(again.response.source(), v1::MEMORY);
  ASSERT_OK_AND_ASSIGN(const v1::CacheStatsResponse cache, client->CacheStats());
  EXPECT_EQ(cache.hits_memory(), 1u);
  EXPECT_EQ(cache.hits_memo(), 1u);
  EXPECT_EQ(cache.memo_entries(), 1u);
  EXPECT_GT(cache.memo_bytes(), 0u);
  const pid_t first = daemon.pid();
  EXPECT_EQ(daemon.Stop(SIGKILL), 128 + SIGKILL);
  daemon.Serve();  // the sockets of the dead daemon are reused (F52)
  EXPECT_NE(daemon.pid(), first);
  // The same client: its library connects anew (F31).
  ASSERT_OK_AND_ASSIGN(const client::Fusion from_disk, client->Compile(AddGraph(), "cpu"));
  EXPECT_EQ(from_disk.response.source(), v1::DISK);
  EXPECT_EQ(from_disk.key, compiled.key);
  EXPECT_EQ(from_disk.executable_digest, compiled.executable_digest);
}

TEST(CompileTest, KernelsSurviveTheirCompiler) {
  TestDaemon daemon;
  daemon.Serve();
  std::unique_ptr<client::Client> client = daemon.Connect();
  if (!HasNvrtc(*client)) GTEST_SKIP() << "no NVRTC here";
  ASSERT_OK_AND_ASSIGN(const client::Fusion compiled, client->Compile(AddGraph(), "sm_90a"));
  EXPECT_EQ(compiled.response.source(), v1::COMPILED);
  EXPECT_EQ(compiled.response.nvrtc_calls(), 1u);
  EXPECT_GT(compiled.response.cubin_bytes(), 0u);
  daemon.Stop(SIGKILL);
  daemon.Serve({.arguments = {"--nvrtc", daemon.folder() + "/nowhere"},
                .environment = {},
                .listen_fds = {}});
  client = daemon.Connect();
  ASSERT_OK_AND_ASSIGN(const client::Fusion from_disk, client->Compile(AddGraph(), "sm_90a"));
  EXPECT_EQ(from_disk.response.source(), v1::DISK);
  EXPECT_EQ(from_disk.executable_digest, compiled.executable_digest);
  // What is not there needs NVRTC, and a degraded state is visible.
  EXPECT_THAT(client->Compile(Graph("%a=input:f32[64]\n%b=tanh %a\noutput %b"), "sm_90a"),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("nowhere")));
  ASSERT_OK_AND_ASSIGN(const v1::StatusResponse status, client->GetStatus());
  EXPECT_THAT(status.degraded(), ::testing::Contains(HasSubstr("no NVRTC")));
}

TEST(CompileTest, SixtyFourClientsShareOneCompileF14) {
  TestDaemon daemon;
  daemon.Serve();
  std::unique_ptr<client::Client> watcher = daemon.Connect();
  const std::string target = HasNvrtc(*watcher) ? "sm_90a" : "cpu";
  std::vector<std::thread> clients;
  std::vector<absl::StatusOr<client::Fusion>> answers(64, absl::UnknownError("not asked"));
  for (auto& answer : answers) {
    clients.emplace_back([&answer, &daemon, &target] {
      std::unique_ptr<client::Client> client = daemon.Connect();
      if (client != nullptr) answer = client->Compile(AddGraph(), target);
    });
  }
  for (std::thread& client : clients) client.join();
  for (const auto& answer : answers) {
    ASSERT_THAT(answer, IsOk());
    EXPECT_EQ(answer->executable_digest, answers[0]->executable_digest);
  }
  ASSERT_OK_AND_ASSIGN(const v1::StatusResponse status, watcher->GetStatus());
  EXPECT_EQ(status.pool().jobs(), target == "cpu" ? 1u : 2u);  // a plan, an image
  ASSERT_OK_AND_ASSIGN(const v1::CacheStatsResponse cache, watcher->CacheStats());
  EXPECT_EQ(cache.commits(), 1u);
}

// What becomes of a key that crashes again and again: tests/server/engine_test.cc.
TEST(CompileTest, CrashEndsThatCompileAloneAndIsToldWithItsKeyF23) {
  TestDaemon daemon;
  daemon.Serve({.arguments = {"--compile-processes", "1"}, .environment = {}, .listen_fds = {}});
  std::unique_ptr<client::Client> client = daemon.Connect();
  const std::vector<pid_t> processes = daemon.CompileProcesses();
  ASSERT_EQ(processes.size(), 1u);  // the one that told of NVRTC; others start when it has a job
  ::kill(processes[0], SIGSTOP);
  std::future<absl::Status> answer =
      std::async(std::launch::async, [&] { return client->Compile(AddGraph(), "cpu").status(); });
  testing::WaitUntilBusy(*client);
  ::kill(processes[0], SIGABRT);
  ::kill(processes[0], SIGCONT);
  EXPECT_THAT(answer.get(),
              StatusIs(absl::StatusCode::kInternal, AllOf(HasSubstr("key "), HasSubstr("ABRT"))));
  ASSERT_OK_AND_ASSIGN(const v1::StatusResponse status, client->GetStatus());
  EXPECT_EQ(status.pool().crashes(), 1u);
  EXPECT_THAT(client->Compile(AddGraph(), "cpu"), IsOk());
}

TEST(CompileTest, DaemonThatEndsForGoodIsToldSoon) {
  TestDaemon daemon;
  daemon.Serve({.arguments = {"--compile-processes", "1"}, .environment = {}, .listen_fds = {}});
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<client::Client> client,
                       client::Client::Connect(daemon.sockets(), absl::Seconds(1)));
  const std::vector<pid_t> processes = daemon.CompileProcesses();
  ASSERT_EQ(processes.size(), 1u);
  ::kill(processes[0], SIGSTOP);
  std::future<absl::Status> answer = std::async(std::launch::async, [&] {
    return client->Compile(AddGraph(), "cpu", {}, {}, absl::Hours(1)).status();
  });
  testing::WaitUntilBusy(*client);
  daemon.Stop(SIGKILL);
  EXPECT_THAT(answer.get(), StatusIs(absl::StatusCode::kUnavailable, HasSubstr(daemon.sockets())));
}

// A warm-up has no deadline of its own; a daemon that dies, or stops for good, ends it.
TEST(CompileTest, WarmUpEndsWithItsDaemon) {
  for (int signal : {SIGKILL, SIGSTOP}) {
    TestDaemon daemon;
    daemon.Serve({.arguments = {"--compile-processes", "1"}, .environment = {}, .listen_fds = {}});
    std::unique_ptr<client::Client> client = daemon.Connect();
    const std::vector<pid_t> processes = daemon.CompileProcesses();
    ASSERT_EQ(processes.size(), 1u);
    ::kill(processes[0], SIGSTOP);
    v1::WarmRequest request;
    request.add_targets("cpu");
    for (int64_t elements : {16, 32}) {
      request.add_items()->set_graph(
          client::Client::MakeRequest(AddGraph(elements), "", {}, {}).graph());
    }
    std::future<absl::Status> ended = std::async(
        std::launch::async, [&] { return client->Warm(request, [](const v1::WarmEvent&) {}); });
    testing::WaitUntilBusy(*client);
    daemon.Signal(signal);
    EXPECT_THAT(ended.get(), StatusIs(absl::StatusCode::kUnavailable,
                                      AllOf(HasSubstr(daemon.sockets()), HasSubstr("0 of 2 items"),
                                            HasSubstr("run it again"))));
  }
}

TEST(CompileTest, WarmUpWithoutADaemonIsToldSoon) {
  TestDaemon daemon;
  daemon.Serve();
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<client::Client> client,
                       client::Client::Connect(daemon.sockets(), absl::Seconds(1)));
  daemon.Stop(SIGTERM);
  EXPECT_THAT(client->Warm({}, [](const v1::WarmEvent&) {}),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr(daemon.sockets())));
}

TEST(CompileTest, ArtifactsPastTheirDeadlineTakeTheirJobAlong) {
  TestDaemon daemon;
  daemon.Serve({.arguments = {"--compile-processes", "1"}, .environment = {}, .listen_fds = {}});
  std::unique_ptr<client::Client> client = daemon.Connect();
  const std::vector<pid_t> processes = daemon.CompileProcesses();
  ASSERT_EQ(processes.size(), 1u);
  ::kill(processes[0], SIGSTOP);
  const auto stub = v1::Fusiond::NewStub(grpc::CreateChannel(
      "unix:" + client::ControlSocket(daemon.sockets()), grpc::InsecureChannelCredentials()));
  v1::GetArtifactsRequest request;
  *request.mutable_request() = client::Client::MakeRequest(AddGraph(), "cpu", {}, {});
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(200));
  v1::GetArtifactsResponse response;
  EXPECT_EQ(stub->GetArtifacts(&context, request, &response).error_code(),
            grpc::StatusCode::DEADLINE_EXCEEDED);
  while (true) {
    ASSERT_OK_AND_ASSIGN(const v1::StatusResponse status, client->GetStatus());
    if (status.pool().busy() == 0 && status.pool().queued() == 0 && status.calls().active() == 0)
      break;
  }
  EXPECT_THAT(client->Compile(AddGraph(), "cpu"), IsOk());
}

TEST(CompileTest, CancelledArtifactsTakeTheirJobAlong) {
  TestDaemon daemon;
  daemon.Serve({.arguments = {"--compile-processes", "1"}, .environment = {}, .listen_fds = {}});
  std::unique_ptr<client::Client> client = daemon.Connect();
  const std::vector<pid_t> processes = daemon.CompileProcesses();
  ASSERT_EQ(processes.size(), 1u);
  ::kill(processes[0], SIGSTOP);
  const auto stub = v1::Fusiond::NewStub(grpc::CreateChannel(
      "unix:" + client::ControlSocket(daemon.sockets()), grpc::InsecureChannelCredentials()));
  v1::GetArtifactsRequest request;
  *request.mutable_request() = client::Client::MakeRequest(AddGraph(), "cpu", {}, {});
  grpc::ClientContext context;
  std::future<grpc::Status> answer = std::async(std::launch::async, [&] {
    v1::GetArtifactsResponse response;
    return stub->GetArtifacts(&context, request, &response);
  });
  testing::WaitUntilBusy(*client);
  context.TryCancel();
  EXPECT_EQ(answer.get().error_code(), grpc::StatusCode::CANCELLED);
  while (true) {
    ASSERT_OK_AND_ASSIGN(const v1::StatusResponse status, client->GetStatus());
    if (status.pool().cancelled() == 1 && status.pool().busy() == 0) break;
  }
  EXPECT_THAT(client->Compile(AddGraph(), "cpu"), IsOk());
}

TEST(CompileTest, ExplainTellsHitFromMiss) {
  TestDaemon daemon;
  daemon.Serve();
  std::unique_ptr<client::Client> client = daemon.Connect();
  const auto request = [](const client::Options& options) {
    v1::ExplainRequest explain;
    *explain.mutable_request() = client::Client::MakeRequest(AddGraph(), "cpu", {}, options);
    return explain;
  };
  ASSERT_OK_AND_ASSIGN(v1::ExplainResponse explained, client->Explain(request({})));
  EXPECT_FALSE(explained.cached());
  EXPECT_THAT(explained.reason(), HasSubstr("never compiled"));
  ASSERT_THAT(client->Compile(AddGraph(), "cpu"), IsOk());
  ASSERT_OK_AND_ASSIGN(explained, client->Explain(request({})));
  EXPECT_TRUE(explained.cached());
  EXPECT_EQ(explained.source(), v1::MEMORY);
  ASSERT_OK_AND_ASSIGN(explained, client->Explain(request({{"math", "strict"}})));
  EXPECT_FALSE(explained.cached());
  ASSERT_EQ(explained.nearest_size(), 1);
  EXPECT_THAT(explained.nearest(0), AllOf(HasSubstr("math"), HasSubstr("strict")));
}

TEST(CompileTest, ArtifactsAreMadeWithoutAGpu) {
  TestDaemon daemon;
  daemon.Serve();
  std::unique_ptr<client::Client> client = daemon.Connect();
  v1::GetArtifactsRequest request;
  *request.mutable_request() = client::Client::MakeRequest(AddGraph(), "sm_90a", {}, {});
  ASSERT_OK_AND_ASSIGN(const v1::GetArtifactsResponse all, client->GetArtifacts(request));
  std::map<std::string, std::string> contents;
  for (const auto& artifact : all.artifacts())
    contents[artifact.kind()] = artifact.contents() + artifact.missing();
  EXPECT_THAT(contents["ir"], HasSubstr("add"));
  EXPECT_THAT(contents["cuda"], HasSubstr("__global__"));
  EXPECT_THAT(contents["schedule"], HasSubstr("pointwise"));
  EXPECT_THAT(contents["sass"], HasSubstr("nvdisasm"));
  if (HasNvrtc(*client)) {
    EXPECT_THAT(contents["ptx"], HasSubstr(".target sm_90a"));
  }
  request.add_kinds("assembler");
  EXPECT_THAT(client->GetArtifacts(request),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'assembler' is none of ir")));
}

v1::InlineTensor Floats(std::vector<float> values) {
  v1::InlineTensor tensor;
  tensor.set_dtype(v1::FLOAT);
  tensor.add_shape(static_cast<int64_t>(values.size()));
  tensor.set_data(std::string(reinterpret_cast<const char*>(values.data()), 4 * values.size()));
  return tensor;
}

TEST(CompileTest, ExecuteRunsInlineTensors) {
  TestDaemon daemon;
  daemon.Serve();
  std::unique_ptr<client::Client> client = daemon.Connect();
  v1::ExecuteRequest request;
  request.set_graph(graph_proto::ToBytes(Graph("%a=input:f32[-1]\n%b=neg %a\noutput %b")));
  request.set_target("cpu");
  *request.add_inputs() = Floats({1, -2, 3});
  ASSERT_OK_AND_ASSIGN(const v1::ExecuteResponse answer, client->Execute(request));
  ASSERT_EQ(answer.outputs_size(), 1);
  EXPECT_EQ(answer.outputs(0).data(), Floats({-1, 2, -3}).data());
  EXPECT_EQ(answer.compile().source(), v1::COMPILED);
  EXPECT_TRUE(answer.compile().executable().empty());

  v1::ExecuteRequest wrong = request;
  wrong.mutable_inputs(0)->set_dtype(v1::INT);
  EXPECT_THAT(client->Execute(wrong),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("inputs[0]: expected f32")));
  wrong = request;
  wrong.mutable_inputs(0)->mutable_data()->resize(11);
  EXPECT_THAT(client->Execute(wrong),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("inputs[0]: 12 bytes of data expected, given 11")));
  wrong = request;
  wrong.set_target("sm_90a");
  EXPECT_THAT(client->Execute(wrong), Not(IsOk()));  // no such device here, or wrong driver
}

TEST(CompileTest, WarmGoesOnWhereItEnded) {
  TestDaemon daemon;
  daemon.Serve();
  std::unique_ptr<client::Client> client = daemon.Connect();
  v1::WarmRequest request;
  for (int64_t elements : {16, 32, 64}) {
    v1::WarmItem* item = request.add_items();
    item->set_name(absl::StrCat(elements));
    item->set_graph(graph_proto::ToBytes(AddGraph(elements)));
  }
  request.add_items()->set_name("bad");
  request.add_targets("cpu");
  const auto warm = [&] {
    v1::WarmEvent::Summary summary;
    EXPECT_THAT(client->Warm(request,
                             [&](const v1::WarmEvent& event) {
                               if (event.has_summary()) summary = event.summary();
                             }),
                IsOk());
    return summary;
  };
  const v1::WarmEvent::Summary first = warm(), second = warm();
  EXPECT_EQ(first.compiled(), 3u);
  EXPECT_EQ(first.failed(), 1u);
  EXPECT_EQ(second.compiled(), 0u);
  EXPECT_EQ(second.cached(), 3u);
}

TEST(CompileTest, CacheIsListedAndEvicted) {
  TestDaemon daemon;
  daemon.Serve();
  std::unique_ptr<client::Client> client = daemon.Connect();
  for (int64_t elements : {16, 32, 64})
    ASSERT_THAT(client->Compile(AddGraph(elements), "cpu"), IsOk());
  v1::CacheListRequest list;
  list.set_page_size(2);
  ASSERT_OK_AND_ASSIGN(v1::CacheListResponse page, client->CacheList(list));
  EXPECT_EQ(page.entries_size(), 2);
  list.set_page_token(page.next_page_token());
  ASSERT_OK_AND_ASSIGN(page, client->CacheList(list));
  EXPECT_EQ(page.entries_size(), 1);
  EXPECT_TRUE(page.next_page_token().empty());
  list.set_page_token("zz");
  EXPECT_THAT(client->CacheList(list),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("page_token")));
  v1::CacheEvictRequest evict;
  EXPECT_THAT(client->CacheEvict(evict), StatusIs(absl::StatusCode::kInvalidArgument));
  evict.set_all(true);
  ASSERT_OK_AND_ASSIGN(const v1::CacheEvictResponse evicted, client->CacheEvict(evict));
  EXPECT_EQ(evicted.evicted(), 3u);
  ASSERT_OK_AND_ASSIGN(const client::Fusion anew, client->Compile(AddGraph(16), "cpu"));
  EXPECT_EQ(anew.response.source(), v1::COMPILED);
}

TEST(CompileTest, ErrorTextsMayQuoteAnything) {
  TestDaemon daemon;
  daemon.Serve();
  std::unique_ptr<client::Client> client = daemon.Connect();
  v1::CompileRequest request = client::Client::MakeRequest(AddGraph(), "cpu", {}, {});
  request.set_target("no such target \n identity=root\" é");
  v1::GetArtifactsRequest artifacts;
  *artifacts.mutable_request() = request;
  EXPECT_THAT(client->GetArtifacts(artifacts),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("no such target")));
  // One line of the log, whatever is in it.
  EXPECT_THAT(daemon.log(), Not(HasSubstr("\n identity=root")));
}

// Health is there for whatever speaks grpc.health.v1; SERVING is 1.
TEST(CompileTest, HealthSaysServing) {
  TestDaemon daemon;
  daemon.Serve();
  auto channel = grpc::CreateChannel("unix:" + client::ControlSocket(daemon.sockets()),
                                     grpc::InsecureChannelCredentials());
  grpc::GenericStub stub(channel);
  for (const std::string& service : {std::string(), std::string("fusiond.v1.Fusiond")}) {
    std::string request;
    if (!service.empty())
      request = absl::StrCat("\x0a", std::string(1, static_cast<char>(service.size())), service);
    grpc::Slice slice(request);
    grpc::ByteBuffer buffer(&slice, 1), response;
    grpc::ClientContext context;
    grpc::CompletionQueue queue;
    auto call = stub.PrepareUnaryCall(&context, "/grpc.health.v1.Health/Check", buffer, &queue);
    call->StartCall();
    grpc::Status status;
    call->Finish(&response, &status, nullptr);
    void* tag;
    bool ok;
    ASSERT_TRUE(queue.Next(&tag, &ok));
    ASSERT_TRUE(status.ok()) << status.error_message();
    grpc::Slice bytes;
    ASSERT_TRUE(response.DumpToSingleSlice(&bytes).ok());
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes.begin()), bytes.size()), "\x08\x01");
  }
}

}  // namespace
}  // namespace fusiond
