#include "compiler/ir/graph.h"

#include <limits>

#include "tests/support/status_matchers.h"

namespace fusiond::ir {
namespace {

using ::fusiond::testing::IsOk;
using ::fusiond::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(GraphTest, UsersFollowReplaceUses) {
  Graph graph;
  ASSERT_OK_AND_ASSIGN(const ValueId a, graph.AddInput(TensorType(DType::kFloat, {4, 8})));
  ASSERT_OK_AND_ASSIGN(const ValueId b, graph.Add(Op::kNeg, {a}));
  ASSERT_OK_AND_ASSIGN(const ValueId c, graph.Add(Op::kMul, {b, b}));
  graph.AddOutput(c);
  graph.AddOutput(b);
  EXPECT_THAT(graph.UseCounts(), ElementsAre(1, 3, 1));
  graph.ReplaceUses(b, a);
  EXPECT_THAT(graph.UseCounts(), ElementsAre(4, 0, 1));
  EXPECT_THAT(graph.producer(c).operands, ElementsAre(a, a));
  EXPECT_EQ(graph.outputs()[1].value, a);
}

TEST(GraphTest, OldNodeThatUsesANewValueIsOrderedAfterIt) {
  Graph graph;
  ASSERT_OK_AND_ASSIGN(const ValueId a, graph.AddInput(TensorType(DType::kFloat, {4})));
  ASSERT_OK_AND_ASSIGN(const ValueId b, graph.Add(Op::kNeg, {a}));
  ASSERT_OK_AND_ASSIGN(const ValueId c, graph.Add(Op::kExp, {b}));
  ASSERT_OK_AND_ASSIGN(const ValueId d, graph.Add(Op::kAbs, {a}));
  graph.AddOutput(c);
  graph.ReplaceUses(b, d);
  EXPECT_THAT(graph.TopologicalOrder(), ElementsAre(0, 1, 3, 2));
  graph.Compact();
  ASSERT_EQ(graph.nodes().size(), 3);
  EXPECT_EQ(graph.node(1).op, Op::kAbs);
  EXPECT_EQ(graph.node(2).op, Op::kExp);
  EXPECT_THAT(graph.node(2).operands, ElementsAre(1));
  EXPECT_THAT(graph.UseCounts(), ElementsAre(1, 1, 1));
}

TEST(GraphTest, CompactKeepsUnusedInputsAndDropsDeadNodes) {
  Graph graph;
  ASSERT_OK_AND_ASSIGN(const ValueId a, graph.AddInput(TensorType(DType::kFloat, {4})));
  ASSERT_OK_AND_ASSIGN(const ValueId dead, graph.Add(Op::kNeg, {a}));
  ASSERT_THAT(graph.Add(Op::kExp, {dead}), IsOk());
  ASSERT_OK_AND_ASSIGN(const ValueId unused, graph.AddInput(TensorType(DType::kHalf, {4})));
  ASSERT_OK_AND_ASSIGN(const ValueId live, graph.Add(Op::kSin, {a}));
  graph.AddOutput(live, 1);
  static_cast<void>(unused);
  graph.Compact();
  EXPECT_EQ(graph.nodes().size(), 3);
  EXPECT_THAT(graph.inputs(), ElementsAre(0, 1));
  EXPECT_EQ(graph.type(1).dtype, DType::kHalf);
  EXPECT_EQ(graph.outputs()[0], (Output{2, 1}));
}

TEST(GraphTest, DefaultsAreNotStored) {
  Graph graph;
  ASSERT_OK_AND_ASSIGN(
      const ValueId a,
      graph.AddInput(TensorType(DType::kFloat, {4, 1}),
                     {{AttributeKey::kContiguity, std::vector<int64_t>{kContiguous, kBroadcastDim}},
                      {AttributeKey::kStrideOrder, std::vector<int64_t>{1, 0}},
                      {AttributeKey::kHost, false}}));
  EXPECT_EQ(graph.producer(a).attributes, Attributes());
  ASSERT_OK_AND_ASSIGN(const ValueId v, graph.Add(Op::kVar, {a},
                                                  {{AttributeKey::kDims, std::vector<int64_t>{0}},
                                                   {AttributeKey::kKeepdim, false},
                                                   {AttributeKey::kCorrection, int64_t{1}}}));
  EXPECT_EQ(graph.producer(v).attributes,
            (Attributes{{AttributeKey::kDims, std::vector<int64_t>{0}}}));
  const ValueId c = graph.AddConstant(2.0, DType::kDouble);
  EXPECT_EQ(graph.producer(c).attributes, (Attributes{{AttributeKey::kValue, 2.0}}));
  EXPECT_EQ(graph.ConstantValue(c), Number(2.0));
}

// Passes make constants from arithmetic on constants, which may leave the dtype's range.
TEST(GraphTest, ConstantBeyondItsRangeIsWhatACastGives) {
  Graph graph;
  const double inf = std::numeric_limits<double>::infinity();
  const auto value = [&](Number number, DType dtype) {
    return *graph.ConstantValue(graph.AddConstant(number, dtype));
  };
  EXPECT_EQ(value(1e30, DType::kHalf), Number(inf));
  EXPECT_EQ(value(-1e39, DType::kBFloat16), Number(-inf));
  EXPECT_EQ(value(1e39, DType::kFloat), Number(inf));
  EXPECT_EQ(value(65519.0, DType::kHalf), Number(65519.0));  // rounds to 65504
  EXPECT_EQ(value(1e300, DType::kDouble), Number(1e300));
  EXPECT_EQ(value(int64_t{1} << 31, DType::kInt32), Number(-(int64_t{1} << 31)));
  EXPECT_EQ(value(int64_t{1} << 40, DType::kInt), Number(int64_t{1} << 40));
}

TEST(GraphTest, StridesOfOperandsDoNotReachResults) {
  Graph graph;
  ASSERT_OK_AND_ASSIGN(
      const ValueId a,
      graph.AddInput(TensorType(DType::kFloat, {1, 8}),
                     {{AttributeKey::kContiguity, std::vector<int64_t>{kBroadcastDim, 2}}}));
  EXPECT_THAT(graph.type(a).strides, ElementsAre(1, 0));
  ASSERT_OK_AND_ASSIGN(const ValueId b, graph.Add(Op::kSet, {a}));
  EXPECT_THAT(graph.type(b).strides, ElementsAre(8, 1));
  ASSERT_OK_AND_ASSIGN(
      const ValueId c,
      graph.Add(Op::kSqueeze, {a}, {{AttributeKey::kDims, std::vector<int64_t>{0}}}));
  EXPECT_THAT(graph.type(c).strides, ElementsAre(1));
}

TEST(GraphTest, MismatchNamesOpRuleAndExtents) {
  Graph graph;
  ASSERT_OK_AND_ASSIGN(const ValueId a, graph.AddInput(TensorType(DType::kFloat, {4, 8})));
  ASSERT_OK_AND_ASSIGN(const ValueId b, graph.AddInput(TensorType(DType::kFloat, {3, 8})));
  EXPECT_THAT(graph.Add(Op::kAdd, {a, b}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("IR-18: add: operand 1 has extent 3 at dim 0 of the result, an "
                                 "earlier operand has 4")));
}

}  // namespace
}  // namespace fusiond::ir
