#include "compiler/import/graph_proto.h"

#include "compiler/ir/hash.h"
#include "compiler/ir/text.h"
#include "tests/support/status_matchers.h"

namespace fusiond::graph_proto {
namespace {

using ::fusiond::testing::StatusIs;
using ir::Graph;
using ::testing::HasSubstr;

constexpr char kEveryForm[] = R"(fir 1
%0 = input : bf16[2048,8192]{8192,1}
%1 = input {contiguity=[f,b]} : f32[-1,1]{?,1}
%2 = input {contiguity=[b,t], stride_order=[0,1]} : f32[4,8]{1,0}
%3 = input {host=true} : f64[]{}
%4 = input : i64
%5 = input : f32[2048]{1}
%6 = constant {value=3.0} : f64
%7 = constant {value=-0.0, dtype=f32} : f32
%8 = constant {value=9007199254740993} : i64
%9 = constant {value=true} : bool
%10 = cast %0 {dtype=f32} : f32[2048,8192]{8192,1}
%11, %12 = var_mean %10 {dims=[1], keepdim=true, correction=0} : f32[2048,1]{1,1}, f32[2048,1]{1,1}
%13 = size %1 {dims=[0]} : i64
%14 = broadcast_in_dim %1, %13 {shape=[-1,7], broadcast_dims=[0,1]} : f32[-1,7]{1,0}
%15 = full %6, %13 {dtype=f16, shape=[-1,2]} : f16[-1,2]{2,1}
%16 = broadcast %2 {is_broadcast_dim=[true,false,false]} : f32[1,4,8]{32,8,1}
%17 = sum %10 {dims=[1]} : f32[2048]{1}
output %11
output %14
output %17 alias %5
)";

TEST(GraphProtoTest, EveryFormRoundTrips) {
  ASSERT_OK_AND_ASSIGN(const Graph graph, ir::Parse(kEveryForm));
  ASSERT_OK_AND_ASSIGN(const Graph from_proto, FromProto(ToProto(graph)));
  EXPECT_EQ(ir::Print(from_proto), kEveryForm);
  ASSERT_OK_AND_ASSIGN(const Graph from_bytes, FromBytes(ToBytes(graph)));
  EXPECT_EQ(ir::Print(from_bytes), kEveryForm);
  EXPECT_EQ(ToBytes(from_bytes), ToBytes(graph));
  EXPECT_EQ(ir::GraphHash(from_bytes), ir::GraphHash(graph));
}

TEST(GraphProtoTest, EveryPrefixOfAMessageIsRefused) {
  ASSERT_OK_AND_ASSIGN(const Graph graph, ir::Parse(kEveryForm));
  const std::string bytes = ToBytes(graph);
  size_t accepted = 0;
  for (size_t length = 0; length < bytes.size(); ++length) {
    // A cut between outputs leaves a smaller, valid graph.
    if (FromBytes(absl::string_view(bytes).substr(0, length)).ok()) ++accepted;
  }
  EXPECT_EQ(accepted, 2);
}

TEST(GraphProtoTest, OversizedPartIsRefusedBeforeItIsRead) {
  v1::Graph proto;
  proto.set_version(1);
  v1::Node* node = proto.add_nodes();
  node->set_op("add");
  for (int i = 0; i < 3000; ++i) node->add_attributes();
  EXPECT_THAT(FromBytes(proto.SerializeAsString()),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("IR-03: an input, node or output of 6005 bytes, limit 4096")));
}

TEST(GraphProtoTest, PartsOutOfOrderAreRefused) {
  ASSERT_OK_AND_ASSIGN(const Graph graph, ir::Parse(kEveryForm));
  const std::string bytes = ToBytes(graph);
  EXPECT_THAT(FromBytes(bytes + bytes),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("input 6: IR-06: an input stands behind a node")));
  EXPECT_THAT(FromBytes(absl::string_view(bytes).substr(2)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("graph version 0 is not supported, this is version 1")));
}

TEST(GraphProtoTest, UnknownFieldsAreSkipped) {
  ASSERT_OK_AND_ASSIGN(const Graph graph, ir::Parse(kEveryForm));
  const std::string unknown = "\x98\x06\x01";  // field 99, varint 1
  ASSERT_OK_AND_ASSIGN(const Graph back, FromBytes(ToBytes(graph) + unknown));
  EXPECT_EQ(ir::Print(back), kEveryForm);
}

// An output of value 0 that carries groups nested that deep, of a field that nobody knows.
std::string OutputWithGroups(int depth) {
  std::string groups;
  for (int i = 0; i < depth; ++i) groups += "\x9b\x06";
  for (int i = 0; i < depth; ++i) groups += "\x9c\x06";
  std::string bytes = "\x22";
  for (size_t length = groups.size(); bytes.size() < 3; length >>= 7) {
    bytes += static_cast<char>((length & 0x7f) | (bytes.size() == 1 ? 0x80 : 0));
  }
  return bytes + groups;
}

TEST(GraphProtoTest, BytesThatProtobufRefusesAreRefused) {
  ASSERT_OK_AND_ASSIGN(const Graph graph, ir::Parse("fir 1\n%a = input : f32[4]\noutput %a\n"));
  const struct {
    const char* name;
    std::string appended;
    bool accepted;
  } cases[] = {
      {"tag of 5 bytes", {"\x98\x86\x80\x80\x00\x01", 6}, true},
      {"tag of 6 bytes", {"\x98\x86\x80\x80\x80\x00\x01", 7}, false},
      {"output, length of 5 bytes", {"\x22\x80\x80\x80\x80\x00", 6}, true},
      {"output, length of 6 bytes", {"\x22\x80\x80\x80\x80\x80\x00", 7}, false},
      {"unknown, length of 5 bytes", {"\x9a\x06\x81\x80\x80\x80\x00x", 8}, true},
      {"unknown, length of 6 bytes", {"\x9a\x06\x81\x80\x80\x80\x80\x00x", 9}, false},
      {"unknown, longer than the rest", "\x9a\x06\x02x", false},
      {"field 0", {"\x02\x00", 2}, false},
      {"groups 99 deep in a part", OutputWithGroups(99), true},
      {"groups 100 deep in a part", OutputWithGroups(100), false},
      {"end of a group that never began", "\x9c\x06", false},
  };
  for (const auto& test : cases) {
    const std::string bytes = ToBytes(graph) + test.appended;
    EXPECT_EQ(v1::Graph().ParseFromString(bytes), test.accepted) << test.name;
    EXPECT_EQ(FromBytes(bytes).ok(), test.accepted) << test.name;
  }
  EXPECT_FALSE(
      FromBytes(ToBytes(graph) + "\x9b\x06\x9c\x06").ok());  // a group, which nothing writes
}

}  // namespace
}  // namespace fusiond::graph_proto
