// Bad requests to the real daemon: each is refused with its code and words that carry rule, limit
// and actual value, and the daemon goes on. Graphs: tests/support/bad_graphs.cc.
#include <google/protobuf/text_format.h>
#include <grpcpp/grpcpp.h>

#include <functional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/cc/paths.h"
#include "client/cc/status_convert.h"
#include "compiler/import/graph_proto.h"
#include "proto/fusiond/v1/service.grpc.pb.h"
#include "tests/e2e/test_daemon.h"
#include "tests/support/bad_graphs.h"
#include "tests/support/status_matchers.h"

namespace fusiond {
namespace {

using ::fusiond::testing::AddGraph;
using ::fusiond::testing::BadGraph;
using ::fusiond::testing::BadGraphs;
using ::fusiond::testing::Graph;
using ::fusiond::testing::IsOk;
using ::fusiond::testing::StatusIs;
using ::fusiond::testing::TestDaemon;
using ::testing::AllOf;
using ::testing::HasSubstr;

// Rows that pass limits which only tests have.
bool NeedsSmallLimits(const BadGraph& bad) {
  return bad.rule == ir::Rule::kNodeLimit || bad.rule == ir::Rule::kInterfaceLimit ||
         (bad.rule == ir::Rule::kElementLimit && std::string(bad.name) != "ElementsOverflow");
}

using Stub = v1::Fusiond::Stub;

std::unique_ptr<Stub> Connect(const TestDaemon& daemon) {
  return v1::Fusiond::NewStub(grpc::CreateChannel("unix:" + client::ControlSocket(daemon.sockets()),
                                                  grpc::InsecureChannelCredentials()));
}

template <typename Request, typename Response>
absl::Status Call(Stub& stub,
                  grpc::Status (Stub::*rpc)(grpc::ClientContext*, const Request&, Response*),
                  const Request& request) {
  grpc::ClientContext context;
  Response response;
  return client::FromGrpc((stub.*rpc)(&context, request, &response));
}

absl::Status Compile(Stub& stub, const v1::CompileRequest& request) {
  return Call(stub, &Stub::Compile, request);
}
absl::Status CompileBytes(Stub& stub, const std::string& graph) {
  v1::CompileRequest request;
  request.set_graph(graph);
  request.set_target("cpu");
  return Compile(stub, request);
}

v1::CompileRequest Add() { return client::Client::MakeRequest(AddGraph(), "cpu", {}, {}); }

TEST(BadInputTest, BadGraphsAreRefusedAndTheDaemonServesOnF41) {
  TestDaemon daemon;
  daemon.Serve();
  std::unique_ptr<Stub> stub = Connect(daemon);
  int refused = 0;
  for (const BadGraph& bad : BadGraphs()) {
    if (bad.proto == nullptr || NeedsSmallLimits(bad)) continue;
    v1::Graph graph;
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
        absl::StrCat("version: 1 ", bad.proto), &graph));
    EXPECT_THAT(
        CompileBytes(*stub, graph.SerializeAsString()),
        StatusIs(testing::CodeOf(bad.rule), AllOf(HasSubstr(std::string(ir::RuleName(bad.rule))),
                                                  HasSubstr(bad.words), HasSubstr(bad.more_words))))
        << bad.name;
    ++refused;
  }
  EXPECT_GE(refused, 60);
  EXPECT_THAT(Compile(*stub, Add()), IsOk());
}

// What is wrong around a graph.
struct BadCall {
  const char* name;
  absl::StatusCode code;
  const char* words;
  std::function<absl::Status(Stub&)> call;
};

absl::Status With(Stub& stub, const std::function<void(v1::CompileRequest&)>& spoil) {
  v1::CompileRequest request = Add();
  spoil(request);
  return Compile(stub, request);
}

absl::Status WithLayouts(Stub& stub, const std::function<void(v1::CompileRequest&)>& spoil) {
  return With(stub, [&](v1::CompileRequest& request) {
    for (int i = 0; i < 2; ++i) request.add_inputs()->add_shape(1024);
    spoil(request);
  });
}

// neg of f32[-1], spoiled.
absl::Status Execute(Stub& stub, const std::function<void(v1::ExecuteRequest&)>& spoil) {
  v1::ExecuteRequest request;
  request.set_graph(graph_proto::ToBytes(Graph("%a=input:f32[-1]\n%b=neg %a\noutput %b")));
  request.set_target("cpu");
  v1::InlineTensor* input = request.add_inputs();
  input->set_dtype(v1::FLOAT);
  input->add_shape(2);
  input->set_data(std::string(8, '\0'));
  spoil(request);
  return Call(stub, &Stub::Execute, request);
}

absl::Status EvictPrefix(Stub& stub, const std::string& digits) {
  v1::CacheEvictRequest request;
  request.set_key_prefix(digits);
  return Call(stub, &Stub::CacheEvict, request);
}

const BadCall kBadCalls[] = {
    {"Garbage", absl::StatusCode::kInvalidArgument, "malformed graph",
     [](Stub& c) { return CompileBytes(c, "\xff\xff\xff"); }},
    {"TooManyNodes", absl::StatusCode::kResourceExhausted, "65537 nodes, limit 65536",
     [](Stub& c) {
       v1::Graph graph;
       graph.set_version(1);
       graph.add_inputs()->set_dtype(v1::FLOAT);
       for (int i = 0; i < 65537; ++i) {
         v1::Node* node = graph.add_nodes();
         node->set_op("neg");
         node->add_operands(0);
       }
       return CompileBytes(c, graph.SerializeAsString());
     }},
    {"TooManyInputs", absl::StatusCode::kResourceExhausted, "1025 inputs and outputs, limit 1024",
     [](Stub& c) {
       v1::Graph graph;
       graph.set_version(1);
       for (int i = 0; i < 1025; ++i) graph.add_inputs()->set_dtype(v1::FLOAT);
       return CompileBytes(c, graph.SerializeAsString());
     }},
    {"TooManyBytes", absl::StatusCode::kResourceExhausted, "limit 16777216",
     [](Stub& c) { return CompileBytes(c, std::string((16 << 20) + 1, '\0')); }},
    {"Target", absl::StatusCode::kNotFound, "sm_1",
     [](Stub& c) { return With(c, [](auto& r) { r.set_target("sm_1"); }); }},
    {"TargetUuid", absl::StatusCode::kNotFound, "no device GPU-x here; there are: cpu",
     [](Stub& c) { return With(c, [](auto& r) { r.set_target("GPU-x"); }); }},
    {"TargetUuidWithControls", absl::StatusCode::kNotFound, "no device GPU-\\n\\033[2J here",
     [](Stub& c) { return With(c, [](auto& r) { r.set_target("GPU-\n\033[2J"); }); }},
    {"TargetWithControls", absl::StatusCode::kNotFound, "device profile 'a\\nb' is unknown",
     [](Stub& c) { return With(c, [](auto& r) { r.set_target("a\nb"); }); }},
    {"LongTarget", absl::StatusCode::kNotFound, "tt' is unknown; known: ",
     [](Stub& c) { return With(c, [](auto& r) { r.set_target(std::string(1 << 20, 't')); }); }},
    {"LongOption", absl::StatusCode::kInvalidArgument, "vv' is none of strict, default, fast",
     [](Stub& c) {
       return With(c, [](auto& r) { (*r.mutable_options())["math"] = std::string(1 << 20, 'v'); });
     }},
    {"LongOptionName", absl::StatusCode::kInvalidArgument, "nn' is unknown; known: ",
     [](Stub& c) {
       return With(c, [](auto& r) { (*r.mutable_options())[std::string(1 << 20, 'n')] = "1"; });
     }},
    {"Option", absl::StatusCode::kInvalidArgument, "speed",
     [](Stub& c) { return With(c, [](auto& r) { (*r.mutable_options())["speed"] = "max"; }); }},
    {"Layouts", absl::StatusCode::kInvalidArgument, "2 layouts expected (or none), given 1",
     [](Stub& c) { return With(c, [](auto& r) { r.add_inputs(); }); }},
    {"LayoutRank", absl::StatusCode::kInvalidArgument, "inputs[0]: rank 1 expected, given 2",
     [](Stub& c) { return WithLayouts(c, [](auto& r) { r.mutable_inputs(0)->add_shape(1024); }); }},
    {"LayoutExtent", absl::StatusCode::kInvalidArgument, "declared 1024, 1023 given",
     [](Stub& c) {
       return WithLayouts(c, [](auto& r) { r.mutable_inputs(1)->set_shape(0, 1023); });
     }},
    {"LayoutStrides", absl::StatusCode::kInvalidArgument, "inputs[1]: 1 stride expected, given 2",
     [](Stub& c) {
       return WithLayouts(c, [](auto& r) {
         for (int i = 0; i < 2; ++i) r.mutable_inputs(1)->add_strides(1);
       });
     }},
    {"NegativeStride", absl::StatusCode::kInvalidArgument,
     "inputs[1]: dim 0: strides are ≥ 0, given -1",
     [](Stub& c) { return WithLayouts(c, [](auto& r) { r.mutable_inputs(1)->add_strides(-1); }); }},
    {"Alignment", absl::StatusCode::kInvalidArgument,
     "inputs[0]: alignment: a power of two up to 4096 expected, given 24",
     [](Stub& c) {
       return WithLayouts(c, [](auto& r) { r.mutable_inputs(0)->set_alignment(24); });
     }},
    {"InlineCount", absl::StatusCode::kInvalidArgument, "1 layout expected (or none), given 2",
     [](Stub& c) { return Execute(c, [](auto& r) { *r.add_inputs() = r.inputs(0); }); }},
    {"InlineDtype", absl::StatusCode::kInvalidArgument,
     "inputs[0]: expected f32 tensor of rank 1, given i64 tensor of rank 1",
     [](Stub& c) { return Execute(c, [](auto& r) { r.mutable_inputs(0)->set_dtype(v1::INT); }); }},
    {"InlineBytes", absl::StatusCode::kInvalidArgument, "8 bytes of data expected, given 7",
     [](Stub& c) {
       return Execute(c, [](auto& r) { r.mutable_inputs(0)->mutable_data()->resize(7); });
     }},
    {"InlineDtypeUnknown", absl::StatusCode::kInvalidArgument,
     "inputs[0]: expected f32 tensor of rank 1, given dtype 0 tensor of rank 1",
     [](Stub& c) { return Execute(c, [](auto& r) { r.mutable_inputs(0)->clear_dtype(); }); }},
    {"InlineExtentsBeyondAllData", absl::StatusCode::kInvalidArgument,
     "inputs[0]: more than 4611686018427387904 bytes of data expected, given 8",
     [](Stub& c) {
       return Execute(c, [](auto& r) { r.mutable_inputs(0)->set_shape(0, int64_t{1} << 62); });
     }},
    {"InlineExtent", absl::StatusCode::kInvalidArgument, "given -2",
     [](Stub& c) { return Execute(c, [](auto& r) { r.mutable_inputs(0)->set_shape(0, -2); }); }},
    {"InlineSize", absl::StatusCode::kResourceExhausted,
     "inputs: limit is 16777216 bytes, are 16777217",
     [](Stub& c) {
       return Execute(c, [](auto& r) {
         r.clear_graph();
         r.mutable_inputs(0)->mutable_data()->resize((16 << 20) + 1);
       });
     }},
    {"WarmOfNothing", absl::StatusCode::kInvalidArgument, "1 to 65536 expected, given 0",
     [](Stub& c) {
       grpc::ClientContext context;
       v1::WarmEvent event;
       auto events = c.Warm(&context, {});
       while (events->Read(&event)) {
       }
       return client::FromGrpc(events->Finish());
     }},
    {"LongArtifactKind", absl::StatusCode::kInvalidArgument, "kk' is none of",
     [](Stub& c) {
       v1::GetArtifactsRequest request;
       *request.mutable_request() = Add();
       request.add_kinds(std::string(1 << 20, 'k'));
       return Call(c, &Stub::GetArtifacts, request);
     }},
    {"ArtifactKind", absl::StatusCode::kInvalidArgument, "'assembler' is none of",
     [](Stub& c) {
       v1::GetArtifactsRequest request;
       *request.mutable_request() = Add();
       request.add_kinds("assembler");
       return Call(c, &Stub::GetArtifacts, request);
     }},
    {"PageSize", absl::StatusCode::kInvalidArgument, "page_size: limit is 1000, is 1001",
     [](Stub& c) {
       v1::CacheListRequest request;
       request.set_page_size(1001);
       return Call(c, &Stub::CacheList, request);
     }},
    {"PageToken", absl::StatusCode::kInvalidArgument, "page_token",
     [](Stub& c) {
       v1::CacheListRequest request;
       request.set_page_token("zz");
       return Call(c, &Stub::CacheList, request);
     }},
    {"EvictNothing", absl::StatusCode::kInvalidArgument, "one of key, key_prefix and all is needed",
     [](Stub& c) { return Call(c, &Stub::CacheEvict, v1::CacheEvictRequest()); }},
    {"EvictKey", absl::StatusCode::kInvalidArgument, "32",
     [](Stub& c) {
       v1::CacheEvictRequest request;
       request.set_key("short");
       return Call(c, &Stub::CacheEvict, request);
     }},
    {"EvictUnknownKey", absl::StatusCode::kNotFound, "no entry's key begins with 6b6b6b6b",
     [](Stub& c) {
       v1::CacheEvictRequest request;
       request.set_key(std::string(32, 'k'));
       return Call(c, &Stub::CacheEvict, request);
     }},
    {"EvictEmptyPrefix", absl::StatusCode::kInvalidArgument, "key_prefix: no digits",
     [](Stub& c) { return EvictPrefix(c, ""); }},
    {"EvictPrefixOfOtherCase", absl::StatusCode::kInvalidArgument,
     "at most 64 lower-case hex digits, not 'AB'", [](Stub& c) { return EvictPrefix(c, "AB"); }},
    {"EvictUnknownPrefix", absl::StatusCode::kNotFound, "no entry's key begins with 0",
     [](Stub& c) { return EvictPrefix(c, "0"); }},
};

TEST(BadInputTest, BadCallsAreRefusedAndTheDaemonServesOnF41) {
  TestDaemon daemon;
  daemon.Serve();
  std::unique_ptr<Stub> stub = Connect(daemon);
  for (const BadCall& bad : kBadCalls)
    EXPECT_THAT(bad.call(*stub), StatusIs(bad.code, HasSubstr(bad.words))) << bad.name;
  EXPECT_THAT(Compile(*stub, Add()), IsOk());
}

// Its call is over on our side before the refusal is sent.
TEST(BadInputTest, RefusedWarmWhoseCallerLeavesHarmsNobody) {
  TestDaemon daemon;
  daemon.Serve();
  std::unique_ptr<Stub> stub = Connect(daemon);
  absl::Status refused;
  for (int i = 0; i < 1000 && !absl::IsResourceExhausted(refused); ++i)
    refused = CompileBytes(*stub, "no graph");
  ASSERT_THAT(refused, StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("failing calls")));
  for (int i = 0; i < 1000; ++i) {
    grpc::ClientContext context;
    auto events = stub->Warm(&context, v1::WarmRequest());
    absl::SleepFor(absl::Microseconds(i));  // so that some leave at the wrong moment
    context.TryCancel();
    events->Finish();
  }
  grpc::ClientContext context;
  v1::StatusResponse status;
  EXPECT_TRUE(stub->Status(&context, {}, &status).ok());
}

}  // namespace
}  // namespace fusiond
