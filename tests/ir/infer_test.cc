// Shapes and strides, op class by op class.
#include "tests/ir/infer_text.h"
#include "tests/support/status_matchers.h"

namespace fusiond::ir {
namespace {

struct Case {
  const char* op;
  const char* inputs;
  const char* attributes;
  const char* expected;
};

void Check(absl::Span<const Case> cases) {
  for (const Case& c : cases) {
    EXPECT_EQ(Infer(c.op, c.inputs, c.attributes), c.expected)
        << c.op << " " << c.inputs << " " << c.attributes;
  }
}

TEST(InferTest, PointwiseAlignsOnTheRight) {
  Check({{"add", "f32[4,8] f32[4,8]", "", "f32[4,8]{8,1}"},
         {"add", "f32[4,8] f32[8]", "", "f32[4,8]{8,1}"},
         {"add", "f32[8] f32[4,1]", "", "f32[4,8]{8,1}"},
         {"add", "f32[2,1,8] f32[4,1]", "", "f32[2,4,8]{32,8,1}"},
         {"add", "f32[] f32[4]", "", "f32[4]{1}"},
         {"add", "f32[] f32[]", "", "f32[]{}"},
         {"add", "f32[] f64", "", "f32[]{}"},
         {"add", "f64 f64", "", "f64"},
         {"add", "f32[1] f32[0]", "", "f32[0]{1}"},
         {"add", "f32[0,8] f32[8]", "", "f32[0,8]{8,1}"},
         {"where", "bool[4,1] f32[8] f64", "", "f32[4,8]{8,1}"},
         {"addcmul", "f32[4] f32[4] f32[1] f64", "", "f32[4]{1}"},
         {"add", "f32[4] f32[8]", "",
          "IR-18: add: operand 1 has extent 8 at dim 0 of the result, an earlier operand has 4"},
         {"add", "f32[0] f32[8]", "",
          "IR-18: add: operand 1 has extent 8 at dim 0 of the result, an earlier operand has 0"},
         {"addcmul", "f32[4] f32[4] f32[4] f32[4]", "",
          "IR-16: addcmul: operand 3 must be a scalar, not f32[4]{1}"}});
}

TEST(InferTest, SymbolicExtentsMeetAnyOther) {
  Check({{"add", "f32[-1] f32[-1]", "", "f32[-1]{1}"},
         {"add", "f32[-1] f32[8]", "", "f32[8]{1}"},
         {"add", "f32[8] f32[-1]", "", "f32[8]{1}"},
         {"add", "f32[-1] f32[1]", "", "f32[-1]{1}"},
         {"add", "f32[1] f32[-1]", "", "f32[-1]{1}"},
         {"add", "f32[4,-1] f32[-1,8]", "", "f32[4,8]{8,1}"},
         {"neg", "f32[-1,4,8]", "", "f32[-1,4,8]{32,8,1}"},
         {"neg", "f32[4,-1,8]", "", "f32[4,-1,8]{?,8,1}"}});
}

TEST(InferTest, Reductions) {
  Check(
      {{"sum", "f32[2,3,4]", "{dims=[1]}", "f32[2,4]{4,1}"},
       {"sum", "f32[2,3,4]", "{dims=[1], keepdim=true}", "f32[2,1,4]{4,4,1}"},
       {"sum", "f32[2,3,4]", "{dims=[0,1,2]}", "f32[]{}"},
       {"sum", "f32[2,3,4]", "{dims=[0,1,2], keepdim=true}", "f32[1,1,1]{1,1,1}"},
       {"sum", "f32[]", "{dims=[]}", "f32[]{}"},
       {"max", "f32[0,4]", "{dims=[0]}", "f32[4]{1}"},
       {"prod", "f32[-1,4]", "{dims=[0]}", "f32[4]{1}"},
       {"prod", "f32[-1,4]", "{dims=[1]}", "f32[-1]{1}"},
       {"var", "f32[4]", "{dims=[0], correction=0}", "f32[]{}"},
       {"var_mean", "f32[4,2]", "{dims=[0], keepdim=true}", "f32[1,2]{2,1} f32[1,2]{2,1}"},
       {"sum", "f32[4]", "{dims=[-1]}", "IR-19: sum: dim -1 is out of range: dims=[-1] at rank 1"},
       {"sum", "f32[4]", "{dims=[1]}", "IR-19: sum: dim 1 is out of range: dims=[1] at rank 1"},
       {"sum", "f32[4,4]", "{dims=[1,0]}",
        "IR-19: sum: dims do not strictly increase: dims=[1,0] at rank 2"},
       {"sum", "f32[4,4]", "{dims=[0,0]}",
        "IR-19: sum: dims do not strictly increase: dims=[0,0] at rank 2"},
       {"sum", "f32[4,4]", "{dims=[]}", "IR-19: sum: no dim is named: dims=[] at rank 2"},
       {"sum", "f32", "{dims=[]}", "IR-16: sum: operand 0 must be a tensor, not a scalar of f32"},
       {"var", "f32[4]", "{dims=[0], correction=-1}",
        "IR-20: var: correction is -1, must be 0 or more"}});
}

TEST(InferTest, BroadcastInsertsExtentsOf1) {
  Check({{"broadcast", "f32[4]", "{is_broadcast_dim=[true,false]}", "f32[1,4]{4,1}"},
         {"broadcast", "f32[4]", "{is_broadcast_dim=[false,true]}", "f32[4,1]{1,1}"},
         {"broadcast", "f32[]", "{is_broadcast_dim=[true,true]}", "f32[1,1]{1,1}"},
         {"broadcast", "f32[4]", "{is_broadcast_dim=[false]}", "f32[4]{1}"},
         {"broadcast", "f32[4]", "{is_broadcast_dim=[true]}",
          "IR-21: broadcast: is_broadcast_dim has 0 false entries, the operand's rank is 1"}});
}

TEST(InferTest, BroadcastInDimExpandsWithStride0) {
  Check(
      {{"broadcast_in_dim", "f32[8]", "{shape=[4,8], broadcast_dims=[1]}", "f32[4,8]{0,1}"},
       {"broadcast_in_dim", "f32[4]", "{shape=[4,8], broadcast_dims=[0]}", "f32[4,8]{1,0}"},
       {"broadcast_in_dim", "f32[4,1]", "{shape=[4,8], broadcast_dims=[0,1]}", "f32[4,8]{1,0}"},
       {"broadcast_in_dim", "f32[4]", "{shape=[4,1], broadcast_dims=[0]}", "f32[4,1]{1,1}"},
       {"broadcast_in_dim", "f32[]", "{shape=[4,8], broadcast_dims=[]}", "f32[4,8]{0,0}"},
       {"broadcast_in_dim", "f32[1]", "{shape=[0], broadcast_dims=[0]}", "f32[0]{0}"},
       {"broadcast_in_dim", "f32[-1] i64", "{shape=[-1,8], broadcast_dims=[0]}", "f32[-1,8]{1,0}"},
       {"broadcast_in_dim", "f32[4] i64", "{shape=[-1,8], broadcast_dims=[0]}", "f32[4,8]{1,0}"},
       {"broadcast_in_dim", "f32[8] i64", "{shape=[-1,8], broadcast_dims=[1]}", "f32[-1,8]{0,1}"},
       {"broadcast_in_dim", "f32[1] i64", "{shape=[-1,8], broadcast_dims=[0]}", "f32[-1,8]{0,0}"},
       {"broadcast_in_dim", "f32[4]", "{shape=[3,8], broadcast_dims=[0]}",
        "IR-22: broadcast_in_dim: operand dim 0 has extent 4, result dim 0 has 3"},
       {"broadcast_in_dim", "f32[4]", "{shape=[4,8], broadcast_dims=[2]}",
        "IR-22: broadcast_in_dim: broadcast_dims=[2] must strictly increase within rank 2"},
       {"broadcast_in_dim", "f32[4,4]", "{shape=[4,4], broadcast_dims=[1,0]}",
        "IR-22: broadcast_in_dim: broadcast_dims=[1,0] must strictly increase within rank 2"},
       {"broadcast_in_dim", "f32[4]", "{shape=[4,8], broadcast_dims=[0,1]}",
        "IR-22: broadcast_in_dim: broadcast_dims=[0,1] has 2 entries, the operand's rank is 1"},
       {"broadcast_in_dim", "f32[4]", "{shape=[-1,8], broadcast_dims=[0]}",
        "IR-23: broadcast_in_dim: shape=[-1,8] has 1 symbolic extent, the node has 0 operands for "
        "that"},
       {"broadcast_in_dim", "f32[4] f64", "{shape=[-1,8], broadcast_dims=[0]}",
        "IR-23: broadcast_in_dim: operand 1, an extent, must be an integer scalar, not a scalar "
        "of f64"},
       {"broadcast_in_dim", "f32[4] i64[]", "{shape=[-1,8], broadcast_dims=[0]}",
        "IR-23: broadcast_in_dim: operand 1, an extent, must be an integer scalar, not a tensor "
        "of i64"}});
}

TEST(InferTest, ExpandKeepsAtMinus1) {
  Check({{"expand", "f32[1,8]", "{shape=[4,8]}", "f32[4,8]{0,1}"},
         {"expand", "f32[1,8]", "{shape=[4,-1]}", "f32[4,8]{0,1}"},
         {"expand", "f32[1,8]", "{shape=[1,8]}", "f32[1,8]{8,1}"},
         {"expand", "f32[1,-1]", "{shape=[4,8]}", "f32[4,8]{0,1}"},
         {"expand", "f32[1,-1]", "{shape=[4,-1]}", "f32[4,-1]{0,1}"},
         {"expand", "f32[2,8]", "{shape=[4,8]}",
          "IR-24: expand: dim 0 has extent 2 and cannot become 4"},
         {"expand", "f32[8]", "{shape=[4,8]}",
          "IR-24: expand: shape=[4,8] has 2 entries, the operand's rank is 1"}});
}

TEST(InferTest, SqueezeRemovesExtentsOf1) {
  Check({{"squeeze", "f32[1,8,1]", "{dims=[0,2]}", "f32[8]{1}"},
         {"squeeze", "f32[1]", "{dims=[0]}", "f32[]{}"},
         {"squeeze", "f32[1,8]", "{dims=[]}", "f32[1,8]{8,1}"},
         {"squeeze", "f32[1,8]", "{dims=[1]}", "IR-25: squeeze: dim 1 has extent 8, must be 1"},
         {"squeeze", "f32[-1,8]", "{dims=[0]}", "IR-25: squeeze: dim 0 has extent -1, must be 1"},
         {"squeeze", "f32[1,1]", "{dims=[1,0]}",
          "IR-25: squeeze: dims=[1,0] must strictly increase within rank 2"}});
}

TEST(InferTest, FullAndSize) {
  Check(
      {{"full", "f64", "{dtype=bf16, shape=[2,3]}", "bf16[2,3]{3,1}"},
       {"full", "f64 i64", "{dtype=i64, shape=[-1,3]}", "i64[-1,3]{3,1}"},
       {"full", "f64", "{dtype=f32, shape=[]}", "f32[]{}"},
       {"full", "f32[]", "{dtype=f32, shape=[2]}",
        "IR-16: full: operand 0, the value, must be a scalar, not f32[]{}"},
       {"full", "f64", "{dtype=f32, shape=[-2]}",
        "IR-10: full: extent of dim 0 is -2, must be -1, 0 or more"},
       {"size", "f32[4,-1]", "{dims=[1]}", "i64"},
       {"size", "f32[4]", "{dims=[1]}", "IR-26: size: dims=[1] must name one dim of rank 1"},
       {"size", "f32[4,4]", "{dims=[0,1]}", "IR-26: size: dims=[0,1] must name one dim of rank 2"},
       {"size", "f32", "{dims=[0]}",
        "IR-16: size: operand 0 must be a tensor, not a scalar of f32"}});
}

// contiguity is listed in allocation order: by descending stride, not by dim.
TEST(InferTest, InputStridesFollowContiguityInAllocationOrder) {
  Check({{"input", "", "{} : f32[2,3,4]", "f32[2,3,4]{12,4,1}"},
         {"input", "", "{stride_order=[0,1,2]} : f32[2,3,4]", "f32[2,3,4]{1,2,6}"},
         {"input", "", "{stride_order=[1,2,0]} : f32[2,3,4]", "f32[2,3,4]{4,8,1}"},
         {"input", "", "{contiguity=[t,t,f]} : f32[2,3,4]", "f32[2,3,4]{?,?,?}"},
         {"input", "", "{contiguity=[f,t,t]} : f32[2,3,4]", "f32[2,3,4]{?,4,1}"},
         {"input", "", "{contiguity=[t,f,t]} : f32[2,3,4]", "f32[2,3,4]{?,?,1}"},
         {"input", "", "{contiguity=[f,t,t], stride_order=[0,1,2]} : f32[2,3,4]",
          "f32[2,3,4]{1,2,?}"},
         {"input", "", "{contiguity=[t,b]} : f32[8,1]", "f32[8,1]{1,1}"},
         {"input", "", "{contiguity=[f,b]} : f32[8,1]", "f32[8,1]{?,1}"},
         {"input", "", "{contiguity=[t,b,t]} : f32[2,1,4]", "f32[2,1,4]{4,4,1}"},
         {"input", "", "{contiguity=[b,t]} : f32[2,4]", "f32[2,4]{0,1}"},
         {"input", "", "{contiguity=[t,b]} : f32[2,4]", "f32[2,4]{1,0}"},
         {"input", "", "{contiguity=[t,b]} : f32[-1,-1]", "f32[-1,-1]{1,0}"},
         {"input", "", "{contiguity=[b,b]} : f32[2,4]", "f32[2,4]{0,0}"},
         {"input", "", "{} : f32[-1,-1]", "f32[-1,-1]{?,1}"},
         {"input", "", "{stride_order=[0,1]} : f32[-1,-1]", "f32[-1,-1]{1,?}"},
         {"input", "", "{} : f32[2,0,4]", "f32[2,0,4]{4,4,1}"},
         {"input", "", "{} : f32[]", "f32[]{}"},
         {"input", "", ": f32", "f32"}});
}

// What a stride order puts at which allocation position: dim i stands at rank-1-stride_order[i].
TEST(InferTest, ExpandedDimIsFoundThroughTheStrideOrder) {
  EXPECT_EQ(Infer("input", "", "{contiguity=[b,t], stride_order=[0,1]} : f32[4,8]"),
            "f32[4,8]{1,0}");
  EXPECT_EQ(Infer("input", "", "{contiguity=[t,b], stride_order=[0,1]} : f32[4,8]"),
            "f32[4,8]{0,1}");
}

}  // namespace
}  // namespace fusiond::ir
