#include "runtime/cpu/evaluate.h"

#include <cmath>
#include <random>
#include <string>

#include "compiler/ir/text.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_seed.h"

namespace fusiond::cpu {
namespace {

using ::fusiond::testing::IsOk;
using ::fusiond::testing::StatusIs;
using ir::AttributeKey;
using ir::DType;
using ir::Graph;
using ir::Op;
using ir::ValueId;

HostTensor Tensor(DType dtype, const ir::Dims& shape, std::vector<double> values) {
  HostTensor tensor;
  tensor.type = ir::TensorType(dtype, shape);
  tensor.floats = std::move(values);
  return tensor;
}

class EvaluateTest : public ::testing::Test {
 protected:
  ValueId Input(DType dtype, const ir::Dims& shape) {
    return *graph_.AddInput(ir::TensorType(dtype, shape));
  }
  ValueId Add(Op op, std::vector<ValueId> operands, ir::Attributes attributes = {}) {
    absl::StatusOr<ValueId> id = graph_.Add(op, operands, std::move(attributes));
    EXPECT_TRUE(id.ok()) << id.status();
    return id.value_or(0);
  }
  Graph graph_;
};

TEST_F(EvaluateTest, BroadcastsAndReducesOverSymbolicExtents) {
  ValueId x = Input(DType::kFloat, {ir::kSymbolic, 3}), w = Input(DType::kFloat, {3});
  ValueId product = Add(Op::kMul, {x, w});
  graph_.AddOutput(Add(Op::kSum, {product}, {{AttributeKey::kDims, std::vector<int64_t>{1}}}));
  graph_.AddOutput(
      Add(Op::kMax, {product},
          {{AttributeKey::kDims, std::vector<int64_t>{0}}, {AttributeKey::kKeepdim, true}}));
  ASSERT_OK_AND_ASSIGN(std::vector<HostTensor> out,
                       Evaluate(graph_, {Tensor(DType::kFloat, {2, 3}, {1, 2, 3, 4, 5, 6}),
                                         Tensor(DType::kFloat, {3}, {1, 10, 100})}));
  EXPECT_EQ(out[0].floats, (std::vector<double>{321, 654}));
  EXPECT_EQ(out[1].floats, (std::vector<double>{4, 50, 600}));
  EXPECT_EQ(out[1].type.shape, (ir::Dims{1, 3}));
}

TEST_F(EvaluateTest, NativePrecisionRoundsEveryStepAndDoubleNone) {
  ValueId x = Input(DType::kFloat, {1});
  ValueId narrow = Add(Op::kCast, {x}, {{AttributeKey::kDtype, DType::kBFloat16}});
  graph_.AddOutput(Add(Op::kCast, {narrow}, {{AttributeKey::kDtype, DType::kFloat}}));
  const HostTensor input = Tensor(DType::kFloat, {1}, {1 + 0x1p-10});
  ASSERT_OK_AND_ASSIGN(auto native, Evaluate(graph_, {input}));
  EXPECT_EQ(native[0].floats[0], 1);
  EvaluateOptions options;
  options.double_precision = true;
  ASSERT_OK_AND_ASSIGN(auto exact, Evaluate(graph_, {input}, options));
  EXPECT_EQ(exact[0].floats[0], 1 + 0x1p-10);
}

TEST_F(EvaluateTest, VarianceAndMeanMatchTheirDefinition) {
  ValueId x = Input(DType::kDouble, {1, 4});
  absl::StatusOr<ir::NodeId> node =
      graph_.AddNode(Op::kVarMean, {x}, {{AttributeKey::kDims, std::vector<int64_t>{1}}});
  ASSERT_TRUE(node.ok());
  for (ValueId result : graph_.node(*node).results) graph_.AddOutput(result);
  ASSERT_OK_AND_ASSIGN(auto out, Evaluate(graph_, {Tensor(DType::kDouble, {1, 4}, {1, 2, 3, 6})}));
  EXPECT_DOUBLE_EQ(out[0].floats[0], 14.0 / 3);
  EXPECT_DOUBLE_EQ(out[1].floats[0], 3);
}

TEST_F(EvaluateTest, EmptyReductionGivesTheIdentity) {
  ValueId x = Input(DType::kFloat, {2, 0});
  graph_.AddOutput(Add(Op::kSum, {x}, {{AttributeKey::kDims, std::vector<int64_t>{1}}}));
  graph_.AddOutput(Add(Op::kMax, {x}, {{AttributeKey::kDims, std::vector<int64_t>{1}}}));
  ASSERT_OK_AND_ASSIGN(auto out, Evaluate(graph_, {Tensor(DType::kFloat, {2, 0}, {})}));
  EXPECT_EQ(out[0].floats, (std::vector<double>{0, 0}));
  EXPECT_EQ(out[1].floats, (std::vector<double>{-INFINITY, -INFINITY}));
}

// The bound covers what a computation in the graph's own precision really gives, and is not
// absurdly wide.
TEST_F(EvaluateTest, ExactlyConvertedExponentLeavesNegativeBaseDecided) {
  ValueId x = Input(DType::kFloat, {2});
  graph_.AddOutput(Add(Op::kPow, {x, graph_.AddConstant(3.0, DType::kDouble)}));
  EvaluateOptions options;
  options.double_precision = options.track_error = true;
  ASSERT_OK_AND_ASSIGN(auto exact,
                       Evaluate(graph_, {Tensor(DType::kFloat, {2}, {-2.0, 2.0})}, options));
  EXPECT_EQ(exact[0].floats, (std::vector<double>{-8.0, 8.0}));
  for (const double error : exact[0].error) EXPECT_LE(error, 0x1p-18);
}

TEST_F(EvaluateTest, ErrorBoundCoversNativeResults) {
  std::mt19937 random(::fusiond::testing::TestSeed());
  std::normal_distribution<double> normal;
  ValueId x = Input(DType::kFloat, {4, 257});
  ValueId square = Add(Op::kMul, {x, x});
  ValueId mean =
      Add(Op::kDiv,
          {Add(Op::kSum, {square},
               {{AttributeKey::kDims, std::vector<int64_t>{1}}, {AttributeKey::kKeepdim, true}}),
           graph_.AddConstant(257.0, DType::kDouble)});
  ValueId y = Add(Op::kMul, {x, Add(Op::kRsqrt, {mean})});
  graph_.AddOutput(
      Add(Op::kCast, {Add(Op::kTanh, {y})}, {{AttributeKey::kDtype, DType::kBFloat16}}));
  std::vector<double> values(4 * 257);
  for (double& v : values) v = static_cast<float>(normal(random));
  const HostTensor input = Tensor(DType::kFloat, {4, 257}, values);
  EvaluateOptions options;
  options.double_precision = options.track_error = true;
  ASSERT_OK_AND_ASSIGN(auto exact, Evaluate(graph_, {input}, options));
  ASSERT_OK_AND_ASSIGN(auto native, Evaluate(graph_, {input}));
  for (size_t i = 0; i < values.size(); ++i) {
    const double bound = exact[0].error[i];
    EXPECT_LE(std::fabs(native[0].floats[i] - exact[0].floats[i]), bound) << i;
    EXPECT_LE(bound, 0x1p-7 * std::fabs(exact[0].floats[i])) << i;
  }
}

TEST_F(EvaluateTest, ElementsAtADiscontinuityAreUndecided) {
  ValueId x = Input(DType::kFloat, {2});
  ValueId y = Add(Op::kMul, {x, graph_.AddConstant(1.0 / 3, DType::kDouble)});
  ValueId positive = Add(Op::kGt, {y, graph_.AddConstant(1.0, DType::kDouble)});
  graph_.AddOutput(Add(Op::kWhere, {positive, x, Add(Op::kNeg, {x})}));
  EvaluateOptions options;
  options.double_precision = options.track_error = true;
  ASSERT_OK_AND_ASSIGN(auto out, Evaluate(graph_, {Tensor(DType::kFloat, {2}, {3, 5})}, options));
  EXPECT_EQ(out[0].error[0], INFINITY);
  EXPECT_LT(out[0].error[1], 1e-5);
}

TEST_F(EvaluateTest, SignOfANanIsUndecided) {
  ValueId x = Input(DType::kFloat, {2});
  graph_.AddOutput(Add(Op::kSignbit, {Add(Op::kErfinv, {x})}));
  EvaluateOptions options;
  options.double_precision = options.track_error = true;
  ASSERT_OK_AND_ASSIGN(auto out,
                       Evaluate(graph_, {Tensor(DType::kFloat, {2}, {2, -0.5})}, options));
  EXPECT_EQ(out[0].error[0], INFINITY);
  EXPECT_EQ(out[0].error[1], 0);
}

// (-2)^y is nan but for whole y, and y is one or is not: what where selects is as undecided as
// that.
TEST_F(EvaluateTest, UndecidedNanStaysUndecidedWhenSelected) {
  ValueId x = Input(DType::kFloat, {1});
  ValueId y = Add(Op::kSigmoid, {x});
  ValueId power = Add(Op::kPow, {graph_.AddConstant(-2.0, DType::kDouble), y});
  ValueId no = graph_.AddConstant(false, DType::kBool);
  graph_.AddOutput(Add(Op::kWhere, {no, y, power}));
  graph_.AddOutput(Add(Op::kWhere, {no, power, y}));
  EvaluateOptions options;
  options.double_precision = options.track_error = true;
  ASSERT_OK_AND_ASSIGN(auto out, Evaluate(graph_, {Tensor(DType::kFloat, {1}, {18})}, options));
  EXPECT_EQ(out[0].error[0], INFINITY);
  EXPECT_LT(out[1].error[0], 1e-6);
}

// What is rounded to 0 from both sides of it: ops that tell 0 from -0 are undecided, others are
// not.
TEST_F(EvaluateTest, SignOfARoundedZeroIsUndecided) {
  ValueId x = Input(DType::kFloat, {1});
  ValueId ten = graph_.AddConstant(10.0, DType::kDouble);
  ValueId one = graph_.AddConstant(1.0, DType::kDouble);
  ValueId zero = Add(Op::kTrunc, {Add(Op::kSub, {Add(Op::kMul, {x, ten}), one})});
  graph_.AddOutput(zero);
  graph_.AddOutput(Add(Op::kSignbit, {zero}));
  graph_.AddOutput(Add(Op::kAtan2, {zero, Add(Op::kNeg, {one})}));
  graph_.AddOutput(Add(Op::kReciprocal, {zero}));
  graph_.AddOutput(Add(Op::kEq, {zero, graph_.AddConstant(0.0, DType::kDouble)}));
  graph_.AddOutput(Add(Op::kLt, {zero, graph_.AddConstant(0.0, DType::kDouble)}));
  graph_.AddOutput(Add(Op::kCast, {zero}, {{AttributeKey::kDtype, DType::kBool}}));
  EvaluateOptions options;
  options.double_precision = options.track_error = true;
  ASSERT_OK_AND_ASSIGN(auto out, Evaluate(graph_, {Tensor(DType::kFloat, {1}, {0.1f})}, options));
  EXPECT_EQ(out[0].floats[0], 0);
  EXPECT_LT(out[0].error[0], 1e-300);
  for (size_t o : {1, 2, 3}) EXPECT_EQ(out[o].error[0], INFINITY) << o;
  for (size_t o : {4, 5, 6}) EXPECT_EQ(out[o].error[0], 0) << o;
}

// However long a sum, its rounding is that of the result.
TEST_F(EvaluateTest, LongSumsInDoubleAreExactToAnUlp) {
  ValueId x = Input(DType::kDouble, {1 << 20});
  graph_.AddOutput(Add(Op::kSum, {x}, {{AttributeKey::kDims, std::vector<int64_t>{0}}}));
  ASSERT_OK_AND_ASSIGN(
      auto out,
      Evaluate(graph_, {Tensor(DType::kDouble, {1 << 20}, std::vector<double>(1 << 20, 0.1))}));
  EXPECT_EQ(out[0].floats[0], 0.1 * (1 << 20));
}

TEST_F(EvaluateTest, WrongInputsAreNamed) {
  ValueId x = Input(DType::kFloat, {2});
  graph_.AddOutput(Add(Op::kNeg, {x}));
  EXPECT_THAT(Evaluate(graph_, {}), StatusIs(absl::StatusCode::kInvalidArgument,
                                             ::testing::HasSubstr("expected 1, given 0")));
  EXPECT_THAT(Evaluate(graph_, {Tensor(DType::kDouble, {2}, {1, 2})}),
              StatusIs(absl::StatusCode::kInvalidArgument, ::testing::HasSubstr("expected f32")));
  EXPECT_THAT(Evaluate(graph_, {Tensor(DType::kFloat, {3}, {1, 2, 3})}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EvaluateOptions options;
  options.max_bytes = 16;
  EXPECT_THAT(Evaluate(graph_, {Tensor(DType::kFloat, {2}, {1, 2})}, options),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       ::testing::HasSubstr("16 bytes needed, 0 free of 16")));
}

// A node of any kind over many elements, alone: it ends within them once nobody waits, and looks in
// bounded intervals.
TEST(EvaluateCancelTest, EveryKindOfNodeLooksWithinItsElements) {
  constexpr const char* kNodes[] = {"%r = lgamma %x",
                                    "%r = eq %x, %x",
                                    "%r = bitwise_not %i",
                                    "%r = cast %x {dtype=i32}",
                                    "%r = cast %i {dtype=f64}",
                                    "%r = sum %x {dims=[0,1]}",
                                    "%r = max %i {dims=[0]}",
                                    "%r = var %x {dims=[1], correction=0}",
                                    "%r = broadcast %x {is_broadcast_dim=[false,true,false]}",
                                    "%r = permute %x {dims=[1,0]}",
                                    "%r = slice %x {start_indices=[0,0], end_indices=[512,1000]}",
                                    "%r = reshape %x {shape=[524288]}",
                                    "%r = triu %x {diagonal=0}",
                                    "%r = pad %x, %s {pad_widths=[1,1]}",
                                    "%r = cat %x, %x {dims=[0]}",
                                    "%r = take_along_axis %x, %z {dims=[0]}",
                                    "%r = full %s {shape=[512,1024], dtype=f32}",
                                    "%r = iota %s, %s {shape=[524288], dtype=f32}"};
  for (const char* node : kNodes) {
    SCOPED_TRACE(node);
    ASSERT_OK_AND_ASSIGN(const Graph graph,
                         ir::Parse(std::string("fir 1\n%x = input : f32[512,1024]\n"
                                               "%i = input : i32[512,1024]\n"
                                               "%z = input : i64[512,1024]\n"
                                               "%s = input : f32\n") +
                                   node + "\noutput %r\n"));
    std::vector<HostTensor> inputs;
    for (const ValueId input : graph.inputs()) {
      HostTensor tensor;
      tensor.type = graph.type(input);
      const size_t count = tensor.type.scalar ? 1 : 512 * 1024;
      if (ir::IsFloatingPoint(tensor.type.dtype)) {
        tensor.floats.assign(count, 1);
      } else {
        tensor.integers.assign(count, 0);
      }
      inputs.push_back(std::move(tensor));
    }
    EvaluateOptions options;
    int64_t looks = 0;
    options.cancelled = [&looks] { return ++looks, false; };
    EXPECT_THAT(Evaluate(graph, inputs, options), IsOk());
    EXPECT_GT(looks, 500 * 1000 / kElementsBetweenLooks);
    const int64_t last = looks;
    looks = 0;
    options.cancelled = [&looks, last] { return ++looks == last; };
    EXPECT_THAT(Evaluate(graph, inputs, options), StatusIs(absl::StatusCode::kCancelled));
  }
}

}  // namespace
}  // namespace fusiond::cpu
