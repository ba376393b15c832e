// The pipeline's work grows with the graph, not faster: counted in nodes, factors, terms and pairs
// that passes look at, on shapes of graph that invite blow-up.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/passes/pipeline.h"
#include "tests/support/status_matchers.h"

namespace fusiond::passes {
namespace {

using ir::Op;
using ir::ValueId;

constexpr int kSteps = 1000;
constexpr int64_t kMaxVisits = 150;  // a node and round

struct Shape {
  std::string name;
  // The next value of a chain: from the value before, the one before that, and inputs.
  std::function<ValueId(ir::Graph&, ValueId last, ValueId before, ValueId x, ValueId r, int step)>
      next;
};

ValueId Add(ir::Graph& graph, Op op, std::vector<ValueId> operands,
            const ir::Attributes& attributes = {}) {
  const auto value = graph.Add(op, operands, attributes);
  EXPECT_THAT(value, ::fusiond::testing::IsOk());
  return *value;
}

const Shape kShapes[] = {
    {"products",
     [](auto& g, auto a, auto, auto x, auto, int) {
       return Add(g, Op::kMul, {a, x});
     }},
    {"squares",
     [](auto& g, auto a, auto, auto, auto, int) {
       return Add(g, Op::kMul, {a, a});
     }},
    {"sums",
     [](auto& g, auto a, auto b, auto, auto, int) {
       return Add(g, Op::kAdd, {a, b});
     }},
    {"differences",
     [](auto& g, auto a, auto b, auto, auto, int) {
       return Add(g, Op::kSub, {b, a});
     }},
    {"horner",
     [](auto& g, auto a, auto, auto x, auto, int i) {
       const ValueId c = g.AddConstant(0.5 + i, ir::DType::kFloat);
       return Add(g, Op::kAdd, {Add(g, Op::kMul, {a, x}), c});
     }},
    {"products_of_sums",
     [](auto& g, auto a, auto b, auto x, auto, int) {
       return Add(g, Op::kMul, {Add(g, Op::kAdd, {a, x}), Add(g, Op::kSub, {b, x})});
     }},
    {"quotients",
     [](auto& g, auto a, auto b, auto, auto, int) {
       return Add(g, Op::kDiv, {a, Add(g, Op::kSqrt, {b})});
     }},
    {"norms",
     [](auto& g, auto a, auto, auto, auto r, int) {
       const ValueId s = Add(g, Op::kSum, {Add(g, Op::kMul, {a, a})},
                             {{ir::AttributeKey::kDims, std::vector<int64_t>{1}},
                              {ir::AttributeKey::kKeepdim, true}});
       return Add(g, Op::kMul, {a, Add(g, Op::kRsqrt, {Add(g, Op::kAdd, {s, r})})});
     }},
    {"broadcasts",
     [](auto& g, auto a, auto, auto, auto r, int) {
       const ValueId wide =
           Add(g, Op::kExpand, {r}, {{ir::AttributeKey::kShape, std::vector<int64_t>{4, 8}}});
       return Add(g, Op::kMul, {a, Add(g, Op::kExp, {wide})});
     }},
    {"functions", [](auto& g, auto a, auto, auto, auto, int) { return Add(g, Op::kTanh, {a}); }},
};

// Every tenth value is an output, so that partial results are wanted.
ir::Graph Chain(const Shape& shape, int steps) {
  ir::Graph graph;
  const ValueId x = *graph.AddInput(ir::TensorType(ir::DType::kFloat, {4, 8}));
  const ValueId r = *graph.AddInput(ir::TensorType(ir::DType::kFloat, {4, 1}));
  ValueId before = x;
  ValueId last = Add(graph, Op::kExp, {x});
  for (int i = 0; i < steps; ++i) {
    const ValueId next = shape.next(graph, last, before, x, r, i);
    before = std::exchange(last, next);
    if (i % 10 == 0) graph.AddOutput(last);
  }
  graph.AddOutput(last);
  return graph;
}

struct Work {
  int64_t visits = 0;  // a round
  int64_t rounds = 0;
  size_t nodes = 0;  // left
};

Work WorkOn(const ir::Graph& graph) {
  Work work;
  int64_t visited = 0;
  PassContext context;
  context.visited = &visited;
  context.after_pass = [&](absl::string_view, int round, bool, const ir::Graph&) {
    work.rounds = round + 1;
  };
  const auto canonical = Canonicalise(graph, context);
  EXPECT_THAT(canonical, ::fusiond::testing::IsOk());
  work.nodes = canonical->nodes().size();
  work.visits = visited / work.rounds;
  return work;
}

TEST(ScalingTest, WorkIsLinearInTheLengthOfChains) {
  for (const Shape& shape : kShapes) {
    SCOPED_TRACE(shape.name);
    for (const int steps : {kSteps / 4, kSteps, 2 * kSteps}) {
      const ir::Graph graph = Chain(shape, steps);
      const Work work = WorkOn(graph);
      const auto nodes = static_cast<int64_t>(graph.nodes().size());
      EXPECT_LE(work.rounds, PassContext().max_rounds);
      EXPECT_LE(work.visits, kMaxVisits * nodes) << steps;
      EXPECT_LE(work.nodes, 2 * graph.nodes().size()) << steps;
    }
  }
}

}  // namespace
}  // namespace fusiond::passes
