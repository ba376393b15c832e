// The generator itself, and what must hold for every valid graph.
#include "tests/support/random_graph.h"

#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "compiler/ir/hash.h"
#include "compiler/ir/specialise.h"
#include "compiler/ir/text.h"
#include "compiler/ir/verify.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_seed.h"

namespace fusiond::ir {
namespace {

using ::fusiond::testing::IsOk;
using ::fusiond::testing::MakeRandomGraph;
using ::fusiond::testing::RandomGraph;
using ::fusiond::testing::TestSeed;

constexpr int kGraphs = 400;

// Calls `check` with many graphs, half of them with symbolic extents.
template <typename Check>
void ForManyGraphs(Check check) {
  const uint64_t seed = TestSeed();
  for (int i = 0; i < kGraphs; ++i) {
    const RandomGraph random = MakeRandomGraph(seed + i, {.symbolic = i % 2 == 1});
    SCOPED_TRACE(absl::StrCat("seed ", seed + i, "\n", Print(random.graph)));
    check(random);
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(RandomGraphTest, IsValidAndSpecialises) {
  ForManyGraphs([](const RandomGraph& random) {
    EXPECT_THAT(Verify(random.graph, Stage::kImported), IsOk());
    ASSERT_OK_AND_ASSIGN(const Graph special, Specialise(random.graph, random.extents));
    EXPECT_THAT(Verify(special, Stage::kSpecialised), IsOk());
  });
}

TEST(RandomGraphTest, PrintedTextParsesToItself) {
  ForManyGraphs([](const RandomGraph& random) {
    const std::string text = Print(random.graph);
    ASSERT_OK_AND_ASSIGN(const Graph back, Parse(text));
    EXPECT_EQ(Print(back), text);
    EXPECT_EQ(GraphHash(back), GraphHash(random.graph));
  });
}

TEST(RandomGraphTest, CompactIsIdempotentAndKeepsTheHash) {
  ForManyGraphs([](const RandomGraph& random) {
    Graph once = random.graph;
    once.Compact();
    Graph twice = once;
    twice.Compact();
    EXPECT_EQ(Print(twice), Print(once));
    EXPECT_THAT(Verify(once, Stage::kImported), IsOk());
    EXPECT_EQ(GraphHash(once), GraphHash(random.graph));
  });
}

TEST(RandomGraphTest, EqualSeedsGiveEqualGraphs) {
  EXPECT_EQ(Print(MakeRandomGraph(7).graph), Print(MakeRandomGraph(7).graph));
}

TEST(RandomGraphTest, EveryOpAndDTypeOccurs) {
  std::set<Op> ops;
  std::set<DType> dtypes;
  std::map<std::string, int> kinds;
  for (int i = 0; i < 1500; ++i) {
    const RandomGraph random = MakeRandomGraph(i, {.symbolic = i % 2 == 1});
    for (const Node& node : random.graph.nodes()) {
      ops.insert(node.op);
      for (const ValueId result : node.results) {
        const Type& type = random.graph.type(result);
        dtypes.insert(type.dtype);
        for (size_t d = 0; d < type.shape.size(); ++d) {
          if (type.shape[d] == 0) ++kinds["zero"];
          if (type.shape[d] == kSymbolic) ++kinds["symbolic"];
          if (type.strides[d] == 0) ++kinds["expanded"];
        }
      }
    }
    for (const Output& output : random.graph.outputs()) {
      if (output.alias_input) ++kinds["alias"];
    }
  }
  for (const OpInfo& info : OpTable()) EXPECT_TRUE(ops.contains(info.op)) << info.name;
  EXPECT_EQ(dtypes.size(), std::size(kAllDTypes));
  for (const char* kind : {"zero", "symbolic", "expanded", "alias"}) {
    EXPECT_GT(kinds[kind], 20) << kind;
  }
}

}  // namespace
}  // namespace fusiond::ir
