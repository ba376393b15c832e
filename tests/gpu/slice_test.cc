// A sampled output is the sample of the whole output.
#include "tests/gpu/slice.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "compiler/ir/text.h"
#include "runtime/cpu/evaluate.h"
#include "tests/gpu/graphs.h"
#include "tests/gpu/samples.h"
#include "tests/support/status_matchers.h"

namespace fusiond::testing {
namespace {

cpu::HostTensor Sampled(const ir::Type& type, const Samples& samples, const ir::Dims& whole,
                        const std::vector<Kept>& kept) {
  cpu::HostTensor tensor;
  tensor.type = type;
  ForEachKept(whole, ir::ContiguousStrides(whole), kept,
              [&](int64_t i) { samples.AppendTo(tensor, i); });
  return tensor;
}

void ExpectSampleOfWhole(const ir::Graph& graph, int64_t elements) {
  std::vector<Samples> samples;
  std::vector<cpu::HostTensor> whole;
  for (ir::ValueId input : graph.inputs()) {
    const ir::Type& type = graph.type(input);
    samples.emplace_back(type.dtype, samples.size() + 1, false);
    whole.push_back(
        Sampled(type, samples.back(), type.shape, std::vector<Kept>(type.shape.size())));
  }
  ASSERT_OK_AND_ASSIGN(const auto expected, cpu::Evaluate(graph, whole));
  for (size_t o = 0; o < graph.outputs().size(); ++o) {
    SCOPED_TRACE(o);
    ASSERT_OK_AND_ASSIGN(const Slice slice, SliceOutput(graph, o, elements, 1));
    std::vector<cpu::HostTensor> inputs;
    for (size_t i = 0; i < samples.size(); ++i) {
      inputs.push_back(Sampled(slice.graph.type(slice.graph.inputs()[i]), samples[i],
                               graph.type(graph.inputs()[i]).shape, slice.inputs[i]));
    }
    inputs.insert(inputs.end(), slice.coordinates.begin(), slice.coordinates.end());
    ASSERT_OK_AND_ASSIGN(const auto got, cpu::Evaluate(slice.graph, inputs));
    EXPECT_LE(got[0].size(), expected[o].size());
    size_t at = 0;
    const ir::Dims& shape = expected[o].type.shape;
    ForEachKept(shape, ir::ContiguousStrides(shape), slice.output, [&](int64_t i) {
      ASSERT_LT(at, got[0].floats.size());
      EXPECT_EQ(got[0].floats[at++], expected[o].floats[static_cast<size_t>(i)]);
    });
    EXPECT_EQ(at, got[0].floats.size());
  }
}

TEST(SliceTest, SampleIsThatOfTheWholeForEveryDataGraph) {
  for (const char* name :
       {"add", "column_sum", "gelu_bias", "gelu_bias_backward", "transpose_add",
        "layer_norm_backward", "layer_norm_forward", "rms_norm_backward_manual",
        "rms_norm_backward_thunder", "rms_norm_backward_prims", "rms_norm_backward_llama2c",
        "dropout_add_layer_norm", "dropout_add_layer_norm_backward", "dropout_layer_norm_backward",
        "rms_norm_forward", "softmax", "swiglu"}) {
    SCOPED_TRACE(name);
    ASSERT_OK_AND_ASSIGN(const ir::Graph graph, GraphAtSize(absl::StrCat("graphs/", name), 40, 50));
    ExpectSampleOfWhole(graph, 200);
  }
}

TEST(SliceTest, MapsKeepWhatTheyMove) {
  const std::pair<const char*, const char*> kGraphs[] = {
      {"kernel_counts/cross_entropy", "40x50,40"},
      {"kernel_counts/cross_entropy_backward", "40x50,40,40x1,40x1"},
      {"kernel_counts/permute_add", "4x6x5x7,4x5x6x7"},
      {"kernel_counts/dropout_rms_norm_drawn", "40x50,40x50,50,,"},
      {"kernel_counts/dropout_layer_norm_backward_drawn", "40x50,40x50,50,40x1,40x1,,"},
      {"graphs/group_norm_silu", "9x3x2x320,320,320"},
      {"graphs/batch_norm_backward", "4x5x6x16,4x5x6x16,16,16,16"},
  };
  for (const auto& [path, given] : kGraphs) {
    SCOPED_TRACE(path);
    ASSERT_OK_AND_ASSIGN(const ir::Graph graph, GraphOfExtents(path, given));
    ExpectSampleOfWhole(graph, 300);
  }
}

TEST(SliceTest, OnlyDimsThatNothingReducesAreSampled) {
  ASSERT_OK_AND_ASSIGN(const ir::Graph graph, GraphAtSize("graphs/softmax", 64, 32));
  ASSERT_OK_AND_ASSIGN(const Slice slice, SliceOutput(graph, 0, 128, 1));
  EXPECT_EQ(slice.output[0].size(), 4u);
  EXPECT_EQ(slice.output[0].front(), 0);
  EXPECT_EQ(slice.output[0].back(), 63);
  EXPECT_TRUE(slice.output[1].empty());
}

TEST(SliceTest, ShapeOpsKeepTheirAxes) {
  ASSERT_OK_AND_ASSIGN(const ir::Graph graph, ir::Parse(R"(fir 1
%x = input : f32[20,30]
%w = input : f32[30]
%b = broadcast %x {is_broadcast_dim=[false,true,false]}
%e = expand %b {shape=[20,4,30]}
%y = mul %e, %w
%s = sum %y {dims=[1], keepdim=true}
%q = squeeze %s {dims=[1]}
%t = broadcast_in_dim %w {shape=[20,30], broadcast_dims=[1]}
%o = add %q, %t
output %o
output %y
)"));
  ExpectSampleOfWhole(graph, 50);
}

}  // namespace
}  // namespace fusiond::testing
