// The two public definitions of RMSNorm's backward whose speed once differed by 1.26 to 1.6: one is
// given 1/rms (thunder), the other rms (manual). They are one graph here.
#include <gtest/gtest.h>

#include "compiler/ir/text.h"
#include "compiler/passes/pipeline.h"
#include "tests/passes/graph_edit.h"
#include "tests/support/status_matchers.h"

namespace fusiond::passes {
namespace {

using ::fusiond::testing::DataGraph;
using ::fusiond::testing::Reordered;
using ::fusiond::testing::WithInput;

constexpr size_t kStatistic = 3;  // of thunder's inputs: weight, grad, x, 1/rms
constexpr int64_t kRows = 2048;
constexpr int64_t kColumns = 8192;

ir::Graph Thunder() { return DataGraph("rms_norm_backward_thunder"); }

// With thunder's order of inputs and outputs.
ir::Graph Manual() {
  const ir::Dims full = {kRows, kColumns};
  const ir::Graph manual =
      DataGraph("rms_norm_backward_manual", {full, {kRows, 1}, full, {kColumns}});
  return Reordered(manual, {3, 2, 0, 1}, {1, 0});
}

ir::Graph Canonical(const ir::Graph& graph, bool excess_precision) {
  PassContext context;
  context.options.excess_precision = excess_precision;
  absl::StatusOr<ir::Graph> canonical = Canonicalise(graph, context);
  EXPECT_THAT(canonical, ::fusiond::testing::IsOk());
  return *canonical;
}

// Casts to bf16 that no output shows.
std::vector<ir::Type> InnerRoundings(const ir::Graph& graph) {
  std::vector<ir::Type> roundings;
  for (const ir::Node& node : graph.nodes()) {
    if (node.op != ir::Op::kCast || graph.users(node.results[0]).empty()) continue;
    const ir::Type& type = graph.type(node.results[0]);
    const bool inner = graph.node(graph.users(node.results[0])[0]).op == ir::Op::kCast;
    if (type.dtype == ir::DType::kBFloat16 && inner) roundings.push_back(type);
  }
  return roundings;
}

TEST(SeedsTest, PrintAlikeOnceTheStatisticIsSubstituted) {
  const ir::Graph thunder = WithInput(Thunder(), kStatistic, ir::Op::kReciprocal);
  EXPECT_EQ(ir::Print(Canonical(thunder, true)), ir::Print(Canonical(Manual(), true)));
  const ir::Graph manual = WithInput(Manual(), kStatistic, ir::Op::kReciprocal);
  EXPECT_EQ(ir::Print(Canonical(Thunder(), true)), ir::Print(Canonical(manual, true)));
}

TEST(SeedsTest, DifferByOneReciprocalARow) {
  const ir::Graph thunder = Canonical(Thunder(), true);
  const ir::Graph manual = Canonical(Manual(), true);
  EXPECT_EQ(manual.nodes().size(), thunder.nodes().size() + 1);
  int reciprocals = 0;
  for (const ir::Node& node : manual.nodes()) {
    if (node.op != ir::Op::kReciprocal) continue;
    ++reciprocals;
    EXPECT_EQ(manual.type(node.results[0]).shape, (ir::Dims{kRows, 1}));
  }
  EXPECT_EQ(reciprocals, 1);
}

TEST(SeedsTest, WithoutExcessPrecisionDifferByTheWrittenRoundingsOnceARow) {
  const ir::Graph thunder = Canonical(WithInput(Thunder(), kStatistic, ir::Op::kReciprocal), false);
  const ir::Graph manual = Canonical(Manual(), false);
  // thunder rounds the row sum and 1/rms, manual nothing.
  EXPECT_EQ(InnerRoundings(thunder),
            std::vector<ir::Type>(2, ir::TensorType(ir::DType::kBFloat16, {kRows, 1})));
  EXPECT_TRUE(InnerRoundings(manual).empty());
  EXPECT_NE(ir::Print(thunder), ir::Print(manual));
  EXPECT_EQ(ir::Print(Canonical(thunder, true)), ir::Print(manual));
}

TEST(SeedsTest, StrictKeepsBothApart) {
  PassContext context;
  context.options = {.math = Math::kStrict, .excess_precision = false, .disabled = {}};
  ASSERT_OK_AND_ASSIGN(const ir::Graph thunder, Canonicalise(Thunder(), context));
  ASSERT_OK_AND_ASSIGN(const ir::Graph manual,
                       Canonicalise(WithInput(Manual(), kStatistic, ir::Op::kReciprocal), context));
  EXPECT_NE(ir::Print(thunder), ir::Print(manual));
}

}  // namespace
}  // namespace fusiond::passes
