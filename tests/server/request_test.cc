#include "server/engine/request.h"

#include <functional>
#include <string>

#include "compiler/import/graph_proto.h"
#include "compiler/ir/text.h"
#include "tests/support/status_matchers.h"

namespace fusiond::server {
namespace {

using ::fusiond::testing::IsOk;
using ::fusiond::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

// Two tensors whose rows must agree, and a scalar.
constexpr char kGraph[] =
    "fir 1\n%a=input:f32[-1,32]\n%b=input:f32[-1,32]\n%s=input:f64\n%c=add %a, %b\n"
    "%d=mul %c, %s\noutput %d";

v1::CompileRequest Valid() {
  v1::CompileRequest request;
  absl::StatusOr<ir::Graph> graph = ir::Parse(kGraph);
  EXPECT_THAT(graph, IsOk());
  request.set_graph(graph_proto::ToBytes(*graph));
  for (int i = 0; i < 2; ++i) {
    v1::InputLayout* layout = request.add_inputs();
    layout->add_shape(64);
    layout->add_shape(32);
  }
  request.add_inputs();
  return request;
}

absl::StatusOr<PreparedRequest> Prepare(const v1::CompileRequest& request,
                                        const std::string& target = "sm_90a",
                                        const KeyContext& context = {"compiler", "nvrtc"}) {
  absl::StatusOr<executable::DeviceInfo> device = executable::ProfileByName(target);
  EXPECT_THAT(device, IsOk());
  return PrepareRequest(request, *device, context);
}

cache::RequestKey KeyOf(const absl::StatusOr<PreparedRequest>& prepared) {
  EXPECT_THAT(prepared, IsOk());
  return cache::RequestKeyOf(prepared->material);
}

TEST(PrepareRequestTest, LayoutsAreCompleted) {
  ASSERT_OK_AND_ASSIGN(const PreparedRequest prepared, Prepare(Valid()));
  ASSERT_EQ(prepared.layouts.size(), 3u);
  EXPECT_THAT(prepared.layouts[0].strides(), ::testing::ElementsAre(32, 1));
  EXPECT_EQ(prepared.layouts[0].alignment(), 16);
  EXPECT_EQ(prepared.arguments[0].address, 16u);
  EXPECT_EQ(prepared.layouts[2].shape_size(), 0);
}

TEST(PrepareRequestTest, WhatChangesTheExecutableChangesTheKeyF09) {
  const cache::RequestKey key = KeyOf(Prepare(Valid()));
  EXPECT_EQ(KeyOf(Prepare(Valid())), key);
  EXPECT_NE(KeyOf(Prepare(Valid(), "sm_89")), key);
  EXPECT_NE(KeyOf(Prepare(Valid(), "sm_90a", {"another compiler", "nvrtc"})), key);
  EXPECT_NE(KeyOf(Prepare(Valid(), "sm_90a", {"compiler", "another nvrtc"})), key);
  v1::CompileRequest strict = Valid();
  (*strict.mutable_options())["math"] = "strict";
  EXPECT_NE(KeyOf(Prepare(strict)), key);
  v1::CompileRequest larger = Valid();
  larger.mutable_inputs(0)->set_shape(0, 65);
  larger.mutable_inputs(1)->set_shape(0, 65);
  EXPECT_NE(KeyOf(Prepare(larger)), key);
}

TEST(PrepareRequestTest, WhatIsAGuardOrADefaultIsNotInTheKeyF10) {
  const cache::RequestKey key = KeyOf(Prepare(Valid()));
  v1::CompileRequest request = Valid();
  request.mutable_inputs(0)->set_alignment(256);
  request.mutable_inputs(0)->add_strides(40);
  request.mutable_inputs(0)->add_strides(1);
  (*request.mutable_options())["math"] = "default";
  request.set_include_executable(true);
  EXPECT_EQ(KeyOf(Prepare(request)), key);
  // The CPU device needs no NVRTC, so its executables outlive one.
  EXPECT_EQ(KeyOf(Prepare(Valid(), "cpu", {"compiler", "nvrtc"})),
            KeyOf(Prepare(Valid(), "cpu", {"compiler", "another nvrtc"})));
}

TEST(PrepareRequestTest, GraphStatesLayoutsWhenTheCallerDoesNot) {
  v1::CompileRequest request;
  absl::StatusOr<ir::Graph> graph =
      ir::Parse("fir 1\n%a=input {stride_order=[0,1]}:f32[8,4]\n%b=neg %a\noutput %b");
  ASSERT_THAT(graph, IsOk());
  request.set_graph(graph_proto::ToBytes(*graph));
  ASSERT_OK_AND_ASSIGN(const PreparedRequest prepared, Prepare(request));
  EXPECT_THAT(prepared.layouts[0].shape(), ::testing::ElementsAre(8, 4));
  EXPECT_THAT(prepared.layouts[0].strides(), ::testing::ElementsAre(1, 8));
}

struct Bad {
  const char* name;
  std::function<void(v1::CompileRequest&)> spoil;
  const char* words;
  const char* target = "sm_90a";
  absl::StatusCode code = absl::StatusCode::kInvalidArgument;
};

// What is wrong with graphs themselves: tests/import/bad_graphs_test.cc.
const Bad kBad[] = {
    {"NoGraph", [](v1::CompileRequest& r) { r.clear_graph(); }, "version"},
    {"GraphOfGarbage", [](v1::CompileRequest& r) { r.set_graph("\xff\xff\xff"); },
     "malformed graph"},
    {"GraphOfAnotherVersion", [](v1::CompileRequest& r) { (*r.mutable_graph())[1] = 2; },
     "graph version 2 is not supported, this is version 1"},
    {"UnknownOption", [](v1::CompileRequest& r) { (*r.mutable_options())["speed"] = "max"; },
     "speed"},
    {"UnknownOptionValue", [](v1::CompileRequest& r) { (*r.mutable_options())["math"] = "sloppy"; },
     "sloppy"},
    {"DoublePrecisionOnAGpu",
     [](v1::CompileRequest& r) { (*r.mutable_options())["precision"] = "double"; },
     "option precision=double is for target cpu, not sm_90a"},
    {"TooFewLayouts", [](v1::CompileRequest& r) { r.mutable_inputs()->RemoveLast(); },
     "inputs: 3 layouts expected (or none), given 2"},
    {"TooManyLayouts", [](v1::CompileRequest& r) { r.add_inputs(); },
     "inputs: 3 layouts expected (or none), given 4"},
    {"LayoutsMissing", [](v1::CompileRequest& r) { r.clear_inputs(); },
     "inputs[0]: dim 0: an extent is needed, given -1"},
    {"Rank", [](v1::CompileRequest& r) { r.mutable_inputs(1)->add_shape(2); },
     "inputs[1]: rank 2 expected, given 3"},
    {"RankOfAScalar", [](v1::CompileRequest& r) { r.mutable_inputs(2)->add_shape(1); },
     "inputs[2]: rank 0 expected, given 1"},
    {"NegativeExtent", [](v1::CompileRequest& r) { r.mutable_inputs(0)->set_shape(0, -5); },
     "inputs[0]: dim 0: an extent is needed, given -5"},
    {"ExtentOfAStaticDim", [](v1::CompileRequest& r) { r.mutable_inputs(0)->set_shape(1, 33); },
     "33"},
    {"ExtentsThatDoNotMeet", [](v1::CompileRequest& r) { r.mutable_inputs(0)->set_shape(0, 63); },
     "IR-18"},
    {"TooManyElements",
     [](v1::CompileRequest& r) {
       r.mutable_inputs(0)->set_shape(0, int64_t{1} << 60);
       r.mutable_inputs(1)->set_shape(0, int64_t{1} << 60);
     },
     "IR-04", "sm_90a", absl::StatusCode::kResourceExhausted},
    {"Strides", [](v1::CompileRequest& r) { r.mutable_inputs(0)->add_strides(1); },
     "inputs[0]: 2 strides expected, given 1"},
    {"NegativeStride",
     [](v1::CompileRequest& r) {
       r.mutable_inputs(0)->add_strides(-32);
       r.mutable_inputs(0)->add_strides(1);
     },
     "inputs[0]: dim 0: strides are ≥ 0, given -32"},
    {"NegativeAlignment", [](v1::CompileRequest& r) { r.mutable_inputs(0)->set_alignment(-16); },
     "inputs[0]: alignment: a power of two up to 4096 expected, given -16"},
    {"OddAlignment", [](v1::CompileRequest& r) { r.mutable_inputs(0)->set_alignment(24); },
     "inputs[0]: alignment: a power of two up to 4096 expected, given 24"},
    {"HugeAlignment", [](v1::CompileRequest& r) { r.mutable_inputs(0)->set_alignment(8192); },
     "inputs[0]: alignment: a power of two up to 4096 expected, given 8192"},
};

TEST(PrepareRequestTest, BadRequestsNamePartLimitAndValue) {
  for (const Bad& bad : kBad) {
    v1::CompileRequest request = Valid();
    bad.spoil(request);
    EXPECT_THAT(Prepare(request, bad.target), StatusIs(bad.code, HasSubstr(bad.words))) << bad.name;
  }
}

}  // namespace
}  // namespace fusiond::server
