// The error bounds of the double evaluator hold for a computation that rounds every op, on random
// graphs: what the tests of generated kernels rely on.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/ir/specialise.h"
#include "compiler/ir/text.h"
#include "runtime/cpu/evaluate.h"
#include "tests/support/kernel_reference.h"
#include "tests/support/random_graph.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_seed.h"
#include "tests/support/within_bounds.h"

namespace fusiond::cpu {
namespace {

using ::fusiond::testing::BoundsReport;
using ::fusiond::testing::CompareWithinBounds;
using ::fusiond::testing::IsOk;
using ::fusiond::testing::MakeRandomGraph;
using ::fusiond::testing::RandomGraph;
using ::fusiond::testing::TestSeed;

constexpr int kGraphs = 2000;

std::vector<HostTensor> Inputs(const ir::Graph& graph, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::vector<HostTensor> inputs;
  for (ir::ValueId id : graph.inputs()) {
    HostTensor tensor;
    tensor.type = graph.type(id);
    const int64_t count = ir::ElementCount(tensor.type).value_or(0);
    for (int64_t i = 0; i < count; ++i) {
      if (ir::IsFloatingPoint(tensor.type.dtype)) {
        tensor.floats.push_back(RoundTo(tensor.type.dtype, normal(random)));
      } else if (tensor.type.dtype == ir::DType::kBool) {
        tensor.integers.push_back(static_cast<int64_t>(random() & 1));
      } else {
        tensor.integers.push_back(static_cast<int64_t>(random() % 41) - 20);
      }
    }
    inputs.push_back(std::move(tensor));
  }
  return inputs;
}

TEST(ErrorBoundTest, NativeResultsOfRandomGraphsAreWithin) {
  const uint64_t first = TestSeed();
  int outputs = 0, undecided = 0;
  for (uint64_t seed = first; seed < first + kGraphs; ++seed) {
    SCOPED_TRACE(absl::StrCat("FUSIOND_TEST_SEED=", seed));
    const RandomGraph random = MakeRandomGraph(seed);
    ASSERT_OK_AND_ASSIGN(const ir::Graph graph, ir::Specialise(random.graph, random.extents));
    const std::vector<HostTensor> inputs = Inputs(graph, seed);
    ASSERT_OK_AND_ASSIGN(const auto native, Evaluate(graph, inputs));
    ASSERT_OK_AND_ASSIGN(const auto exact,
                         Evaluate(graph, inputs, {.double_precision = true, .track_error = true}));
    for (size_t o = 0; o < native.size(); ++o) {
      BoundsReport report;
      ASSERT_THAT(CompareWithinBounds(native[o], exact[o], {}, report), IsOk())
          << "output " << o << "\n"
          << ir::Print(graph);
      ++outputs;
      if (report.undecided * 2 > report.elements) ++undecided;
    }
  }
  std::printf("%d graphs, %d outputs, %d of them mostly undecided\n", kGraphs, outputs, undecided);
  EXPECT_LT(undecided, outputs / 4);
}

struct Forms {
  const char* written;
  const char* rearranged;
};

// Per form: a float computation of the second leaves the first's own bounds, never both together.
TEST(ErrorBoundTest, RearrangedGraphsAreWithinBothBounds) {
  constexpr Forms kForms[] = {
      // A term that was the factor alone is rounded once more.
      {"%c = constant {value=0.3}\n%a = mul %x, %c\n%f = add %a, %c\noutput %f",
       "%c = constant {value=0.3}\n%i = constant {value=1.0}\n%a = add %x, %i\n%f = mul %a, %c\n"
       "output %f"},
      // A constant over a sum is spread, with what cancels rounded at the size of the terms.
      {"%c = constant {value=2.718281828}\n%m = constant {value=1.125}\n%a = sub %x, %m\n"
       "%f = mul %a, %c\noutput %f",
       "%c = constant {value=2.7182817, dtype=f32}\n%m = constant {value=3.058067, dtype=f32}\n"
       "%a = mul %x, %c\n%f = sub %a, %m\noutput %f"},
      // 0.33333334 counts as 1/3, and 3·(x - 1/3) as 3·x - 1.
      {"%c = constant {value=0.3333333432674408}\n%t = constant {value=3.0}\n%a = sub %x, %c\n"
       "%f = mul %a, %t\noutput %f",
       "%i = constant {value=1.0}\n%t = constant {value=3.0}\n%a = mul %x, %t\n%f = sub %a, %i\n"
       "output %f"}};
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> near(-1e-6, 1e-6);
  for (const Forms& forms : kForms) {
    SCOPED_TRACE(forms.written);
    const std::string head = "fir 1\n%x = input : f32[4096]\n";
    ASSERT_OK_AND_ASSIGN(const ir::Graph written, ir::Parse(head + forms.written));
    ASSERT_OK_AND_ASSIGN(const ir::Graph rearranged, ir::Parse(head + forms.rearranged));
    std::vector<HostTensor> inputs = Inputs(written, random());
    for (size_t i = 0; i < 2048; ++i)  // where the third form cancels
      inputs[0].floats[i] = RoundTo(ir::DType::kFloat, 1.0 / 3 + near(random));
    ASSERT_OK_AND_ASSIGN(const auto kernel, Evaluate(rearranged, inputs));
    ASSERT_OK_AND_ASSIGN(
        const auto own, Evaluate(written, inputs, {.double_precision = true, .track_error = true}));
    ASSERT_OK_AND_ASSIGN(const auto both, ::fusiond::testing::EvaluateForms(
                                              written, rearranged, inputs, ir::Math::kDefault));
    BoundsReport report;
    EXPECT_FALSE(CompareWithinBounds(kernel[0], own[0], {}, report).ok());
    EXPECT_THAT(CompareWithinBounds(kernel[0], both[0], {}, report), IsOk());
    for (size_t i = 0; i < both[0].error.size(); ++i) {
      const double terms = 1 + std::fabs(inputs[0].floats[i]);
      EXPECT_LT(both[0].error[i], 32 * UnitRoundoff(ir::DType::kFloat) * terms);
    }
  }
}

TEST(ErrorBoundTest, WhatRearrangingMayMakeOfInfinitiesAndZerosIsUndecided) {
  ASSERT_OK_AND_ASSIGN(const ir::Graph graph, ir::Parse(R"(fir 1
%x = input : f32[3]
%z = input : f32[3]
%r = reciprocal %x
%p = mul %r, %z
%i = isnan %p
%a = atan2 %z, %x
%s = signbit %x
%e = exp %x
output %i
output %a
output %s
output %e)"));
  std::vector<HostTensor> inputs = Inputs(graph, 1);
  inputs[0].floats = {0, 1, -1};
  inputs[1].floats = {0, 0, 2};
  ASSERT_OK_AND_ASSIGN(
      const auto values,
      Evaluate(graph, inputs, {.double_precision = true, .track_error = true, .rearranged = true}));
  const auto decided = [&](size_t output) {
    std::vector<bool> elements;
    for (const double error : values[output].error) elements.push_back(std::isfinite(error));
    return elements;
  };
  EXPECT_EQ(decided(0), (std::vector<bool>{false, true, true}));
  EXPECT_EQ(decided(1), (std::vector<bool>{false, true, true}));
  EXPECT_EQ(decided(2), (std::vector<bool>{false, true, true}));
  EXPECT_EQ(decided(3), (std::vector<bool>{true, true, true}));
}

}  // namespace
}  // namespace fusiond::cpu
