// Every pass, and the whole pipeline, on random graphs: outputs stay, a second run changes nothing.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "compiler/ir/specialise.h"
#include "compiler/ir/text.h"
#include "compiler/ir/verify.h"
#include "compiler/passes/constants.h"
#include "compiler/passes/pipeline.h"
#include "runtime/cpu/evaluate.h"
#include "tests/passes/same_outputs.h"
#include "tests/support/kernel_reference.h"
#include "tests/support/random_graph.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_seed.h"

namespace fusiond::passes {
namespace {

using ::fusiond::testing::AllElements;
using ::fusiond::testing::BoundsReport;
using ::fusiond::testing::IsOk;
using ::fusiond::testing::KernelReference;
using ::fusiond::testing::MakeRandomGraph;
using ::fusiond::testing::RandomGraph;
using ::fusiond::testing::RandomGraphOptions;
using ::fusiond::testing::SameOutputs;
using ::fusiond::testing::TestSeed;

constexpr int kGraphs = 300;

PassContext Strict() {
  PassContext context;
  context.options = {.math = Math::kStrict, .excess_precision = false, .disabled = {}};
  return context;
}

// Errors stay small on the way to the outputs.
bool IsModerate(double value) { return std::fabs(value) < 1e4; }
// A sum over one element makes -0 of -0 where adding it to 0 makes 0.
bool IsNotMinusZero(double value) { return value != 0 || !std::signbit(value); }

// Smooth arithmetic on floats, where a change of rounding shows as one.
RandomGraphOptions Arithmetic() {
  RandomGraphOptions options;
  options.max_nodes = 40;
  options.dtypes = {ir::DType::kFloat};
  options.ops = {ir::Op::kAdd,       ir::Op::kSub,        ir::Op::kMul,     ir::Op::kDiv,
                 ir::Op::kNeg,       ir::Op::kReciprocal, ir::Op::kSqrt,    ir::Op::kRsqrt,
                 ir::Op::kPow,       ir::Op::kAddcmul,    ir::Op::kLerp,    ir::Op::kSum,
                 ir::Op::kMax,       ir::Op::kVarMean,    ir::Op::kTanh,    ir::Op::kExp,
                 ir::Op::kBroadcast, ir::Op::kExpand,     ir::Op::kSqueeze, ir::Op::kCast,
                 ir::Op::kConstant,  ir::Op::kMul,        ir::Op::kAdd,     ir::Op::kSub};
  return options;
}

// A power whose exponent is computed: it is nan as soon as the exponent of a negative base is not
// quite whole.
bool HasTensorPower(const ir::Graph& graph) {
  for (const ir::Node& node : graph.nodes()) {
    if (node.op == ir::Op::kPow && !graph.ConstantValue(node.operands[1])) return true;
  }
  return false;
}

// Constants that their type rounds, which the evaluator does not when it computes in double, and
// the sign of a nan, which nothing defines.
bool IsUndefined(const ir::Graph& graph) {
  for (const ir::Node& node : graph.nodes()) {
    const ir::DType dtype = graph.type(node.results[0]).dtype;
    const bool rounds_scalars =
        node.op == ir::Op::kFull || node.op == ir::Op::kIota || node.op == ir::Op::kPad;
    if (rounds_scalars && ir::IsFloatingPoint(dtype)) return true;
    if (node.op == ir::Op::kSignbit) return true;
    const auto value = FloatConstant(graph, node.results[0]);
    if (value && dtype != ir::DType::kDouble && ConstantOf(dtype, *value) != *value) return true;
    if (value && dtype == ir::DType::kFloat && static_cast<float>(*value) != *value) return true;
  }
  return false;
}

template <typename Check>
void ForManyGraphs(Check check, const RandomGraphOptions& options = {}) {
  const uint64_t seed = TestSeed();
  for (uint64_t i = 0; i < kGraphs; ++i) {
    const RandomGraph random = MakeRandomGraph(seed + i, options);
    ASSERT_OK_AND_ASSIGN(ir::Graph graph, ir::Specialise(random.graph, random.extents));
    graph.Compact();
    if (IsUndefined(graph)) continue;
    check(graph, seed + i);
    if (::testing::Test::HasFailure()) {
      FAIL() << "FUSIOND_TEST_SEED=" << seed + i << "\n" << ir::Print(graph);
    }
  }
}

// Passes that promise to change no value at all. lower_variance before them: the evaluator rounds a
// variance once, its sums more often.
TEST(ExactPassesTest, KeepEveryBitOfRandomGraphs) {
  ForManyGraphs([](ir::Graph& graph, uint64_t seed) {
    if (!AllElements(graph, seed, /*positive=*/false, IsNotMinusZero)) return;
    ASSERT_OK_AND_ASSIGN(bool changed,
                         RunPasses(graph, {"explicit_types", "lower_variance"}, Strict()));
    for (const absl::string_view pass :
         {"explicit_types", "fold_constants", "implicit_broadcasts", "fold_casts", "deduplicate"}) {
      const ir::Graph before = graph;
      ASSERT_OK_AND_ASSIGN(changed, RunPasses(graph, {pass}, Strict()));
      EXPECT_EQ(changed, ir::Print(before) != ir::Print(graph)) << pass;
      EXPECT_TRUE(SameOutputs(before, graph, seed)) << pass;
    }
  });
}

TEST(PassesTest, AreIdempotentOnRandomGraphs) {
  ForManyGraphs([](ir::Graph& graph, uint64_t) {
    ASSERT_OK_AND_ASSIGN(bool changed, RunPasses(graph, {"explicit_types", "lower_variance"}, {}));
    for (const PassInfo& pass : Pipeline()) {
      ASSERT_OK_AND_ASSIGN(changed, RunPasses(graph, {pass.name}, {}));
      const std::string once = ir::Print(graph);
      ASSERT_OK_AND_ASSIGN(changed, RunPasses(graph, {pass.name}, {}));
      EXPECT_FALSE(changed) << pass.name;
      EXPECT_EQ(once, ir::Print(graph)) << pass.name;
    }
  });
}

TEST(PipelineTest, StrictKeepsValuesOfRandomGraphs) {
  ForManyGraphs([](const ir::Graph& graph, uint64_t seed) {
    ASSERT_OK_AND_ASSIGN(const ir::Graph canonical, Canonicalise(graph, Strict()));
    if (AllElements(graph, seed, /*positive=*/false, IsNotMinusZero)) {
      EXPECT_TRUE(SameOutputs(graph, canonical, seed,
                              {.native = false, .math = Math::kStrict, .finite_only = true}));
    }
    ASSERT_OK_AND_ASSIGN(const ir::Graph again, Canonicalise(canonical, Strict()));
    EXPECT_EQ(ir::Print(canonical), ir::Print(again));
  });
}

// The canonical graph with every value rounded to its type, as a kernel would compute it.
TEST(PipelineTest, RoundedValuesOfRandomGraphsAreWithinBounds) {
  const uint64_t first = TestSeed();
  for (uint64_t seed = first; seed < first + kGraphs; ++seed) {
    const RandomGraph random = MakeRandomGraph(seed);
    ASSERT_OK_AND_ASSIGN(const ir::Graph graph, ir::Specialise(random.graph, random.extents));
    SCOPED_TRACE(absl::StrCat("FUSIOND_TEST_SEED=", seed, "\n", ir::Print(graph)));
    PassContext context;
    context.options.math = static_cast<Math>(seed % 3);
    context.options.excess_precision = context.options.math != Math::kStrict;
    ASSERT_OK_AND_ASSIGN(const ir::Graph canonical, Canonicalise(graph, context));
    const auto inputs = ::fusiond::testing::RandomInputs(graph, seed, /*positive=*/false);
    ASSERT_OK_AND_ASSIGN(const KernelReference reference,
                         KernelReference::Make(graph, canonical, inputs, context.options.math));
    ASSERT_OK_AND_ASSIGN(const auto rounded, cpu::Evaluate(canonical, inputs));
    BoundsReport report;
    for (size_t o = 0; o < rounded.size(); ++o)
      ASSERT_THAT(reference.Check(o, rounded[o], {}, report), IsOk()) << "output " << o;
  }
}

// The root of what is 0 but for rounding: decided nowhere, nan on one side of 0.
TEST(SameOutputsTest, UndecidedElementsMayBecomeNan) {
  const std::string head = "fir 1\n%x = input : f32[16]\n%r = reciprocal %x\n%q = mul %x, %r\n";
  const std::string tail = "%d = sub %q, %c\n%s = sqrt %d\noutput %s\n";
  ASSERT_OK_AND_ASSIGN(const ir::Graph zero,
                       ir::Parse(head + "%c = constant {value=1.0}\n" + tail));
  ASSERT_OK_AND_ASSIGN(const ir::Graph below,
                       ir::Parse(head + "%c = constant {value=1.00000001}\n" + tail));
  EXPECT_TRUE(SameOutputs(zero, below, /*seed=*/1, {.native = false, .positive_inputs = true}));
}

TEST(PipelineTest, DefaultKeepsValuesOfRandomArithmetic) {
  ForManyGraphs(
      [](const ir::Graph& graph, uint64_t seed) {
        ASSERT_OK_AND_ASSIGN(const ir::Graph canonical, Canonicalise(graph));
        if (!HasTensorPower(graph) && AllElements(graph, seed, /*positive=*/true, IsModerate)) {
          EXPECT_TRUE(
              SameOutputs(graph, canonical, seed, {.native = false, .positive_inputs = true}));
        }
        ASSERT_OK_AND_ASSIGN(const ir::Graph again, Canonicalise(canonical));
        EXPECT_EQ(ir::Print(canonical), ir::Print(again));
      },
      Arithmetic());
}

}  // namespace
}  // namespace fusiond::passes
