// Random algebraic rewrites of the four norms reach one canonical IR, up to argument order.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "compiler/ir/text.h"
#include "compiler/passes/pipeline.h"
#include "runtime/base/file.h"
#include "tests/passes/graph_edit.h"
#include "tests/passes/rewriter.h"
#include "tests/passes/same_outputs.h"
#include "tests/support/status_matchers.h"

namespace fusiond::passes {
namespace {

using ::fusiond::testing::kAllRewrites;
using ::fusiond::testing::Reordered;
using ::fusiond::testing::Rewrite;
using ::fusiond::testing::RewriteName;
using ::fusiond::testing::Rewriter;
using ::fusiond::testing::SameOutputs;

constexpr int kRewritten = 200;
constexpr size_t kMinKinds = 6;
constexpr size_t kMaxRounds = 3;  // in which every kind is tried once
constexpr int kMinUses = 50;
constexpr int kMinDifferent = 190;

struct Extents {
  int64_t rows;
  int64_t columns;
};
constexpr Extents kLarge = {2048, 8192};  // as in the files
constexpr Extents kSmall = {5, 12};       // no power of two divides like one

ir::Graph Norm(const std::string& name, const Extents& extents) {
  const auto text = base::ReadFile(absl::StrCat("tests/data/graphs/", name, ".fir"));
  EXPECT_THAT(text, ::fusiond::testing::IsOk());
  const auto graph = ir::Parse(absl::StrReplaceAll(
      *text, {{"2048", absl::StrCat(extents.rows)}, {"8192", absl::StrCat(extents.columns)}}));
  EXPECT_THAT(graph, ::fusiond::testing::IsOk());
  return *graph;
}

std::string CanonicalText(const ir::Graph& graph) {
  const auto canonical = Canonicalise(graph);
  EXPECT_THAT(canonical, ::fusiond::testing::IsOk());
  return ir::Print(*canonical);
}

class RewritesTest : public ::testing::TestWithParam<const char*> {};

TEST_P(RewritesTest, ReachOneCanonicalGraph) {
  std::map<Rewrite, int> uses;
  int different = 0;
  for (uint64_t seed = 0; seed < kRewritten; ++seed) {
    const Extents& extents = seed % 2 == 0 ? kLarge : kSmall;
    const ir::Graph original = Norm(GetParam(), extents);
    Rewriter rewriter(original, seed);
    std::mt19937_64 random(seed);
    std::set<Rewrite> applied;
    std::string trace;
    for (size_t rounds = 1 + random() % kMaxRounds; rounds > 0; --rounds) {
      std::vector<Rewrite> kinds(std::begin(kAllRewrites), std::end(kAllRewrites));
      std::shuffle(kinds.begin(), kinds.end(), random);
      for (const Rewrite kind : kinds) {
        if (!rewriter.Apply(kind)) continue;
        applied.insert(kind);
        absl::StrAppend(&trace, RewriteName(kind), ", ");
      }
    }
    for (const Rewrite kind : applied) ++uses[kind];
    ASSERT_GE(applied.size(), kMinKinds) << "seed " << seed;
    different += ir::Print(rewriter.graph()) != ir::Print(original);

    // Canonical with the arguments as they were shuffled; then in the original order.
    ASSERT_OK_AND_ASSIGN(const ir::Graph canonical, Canonicalise(rewriter.graph()));
    std::vector<size_t> outputs(canonical.outputs().size());
    std::iota(outputs.begin(), outputs.end(), 0);
    const ir::Graph restored = Reordered(canonical, rewriter.inputs(), outputs);
    if (&extents == &kSmall) {
      EXPECT_TRUE(SameOutputs(original, restored, seed, {.native = false})) << "seed " << seed;
    }
    ASSERT_EQ(CanonicalText(restored), CanonicalText(original))
        << "seed " << seed << ": " << trace << "\n"
        << ir::Print(rewriter.graph());
  }
  EXPECT_GE(different, kMinDifferent);
  for (const Rewrite kind : kAllRewrites) EXPECT_GE(uses[kind], kMinUses) << RewriteName(kind);
}

INSTANTIATE_TEST_SUITE_P(Norms, RewritesTest,
                         ::testing::Values("rms_norm_forward", "rms_norm_backward_thunder",
                                           "layer_norm_forward", "layer_norm_backward"));

}  // namespace
}  // namespace fusiond::passes
