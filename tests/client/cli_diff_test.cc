// What `fusionctl diff` holds against each other: lists, and printed graphs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "client/cli/graph_lines.h"
#include "client/cli/sequence_diff.h"
#include "tests/support/test_seed.h"

namespace fusiond::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Optional;

using List = std::vector<std::string>;

List Letters(const std::string& text) {
  List letters;
  for (const char c : text) letters.emplace_back(1, c);
  return letters;
}

TEST(DiffSequencesTest, RunsAlternate) {
  EXPECT_THAT(DiffSequences({}, {}), IsEmpty());
  EXPECT_THAT(DiffSequences(Letters("abc"), Letters("abc")),
              ElementsAre(DiffRun{true, 0, 3, 0, 3}));
  EXPECT_THAT(DiffSequences(Letters("abc"), {}), ElementsAre(DiffRun{false, 0, 3, 0, 0}));
  EXPECT_THAT(DiffSequences(Letters("abcde"), Letters("abxyde")),
              ElementsAre(DiffRun{true, 0, 2, 0, 2}, DiffRun{false, 2, 3, 2, 4},
                          DiffRun{true, 3, 5, 4, 6}));
}

size_t LongestCommon(const List& a, const List& b) {
  std::vector<std::vector<size_t>> best(a.size() + 1, std::vector<size_t>(b.size() + 1, 0));
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      best[i][j] =
          a[i - 1] == b[j - 1] ? best[i - 1][j - 1] + 1 : std::max(best[i - 1][j], best[i][j - 1]);
    }
  }
  return best[a.size()][b.size()];
}

TEST(DiffSequencesTest, RunsCoverBothAndTheSameIsAsLongAsCanBe) {
  std::mt19937_64 random(testing::TestSeed());
  for (int i = 0; i < 500; ++i) {
    List lists[2];
    for (List& list : lists)
      for (size_t n = random() % 12; n > 0; --n) list.emplace_back(1, "abc"[random() % 3]);
    const List &a = lists[0], &b = lists[1];
    size_t at_a = 0, at_b = 0, same = 0;
    for (const DiffRun& run : DiffSequences(a, b)) {
      ASSERT_EQ(run.a_begin, at_a);
      ASSERT_EQ(run.b_begin, at_b);
      for (; run.same && at_a < run.a_end; ++at_a, ++at_b, ++same) ASSERT_EQ(a[at_a], b[at_b]);
      at_a = run.a_end;
      ASSERT_TRUE(!run.same || at_b == run.b_end);
      at_b = run.b_end;
    }
    EXPECT_EQ(at_a, a.size());
    EXPECT_EQ(at_b, b.size());
    EXPECT_EQ(same, LongestCommon(a, b));
  }
}

TEST(DiffSequencesTest, WhatIsTooMuchToCompareIsOneRun) {
  List a(3000, "a"), b(3000, "b");
  a[1500] = b[1500] = "x";
  EXPECT_THAT(DiffSequences(a, b), ElementsAre(DiffRun{false, 0, 3000, 0, 3000}));
}

List Lines(const std::string& text) { return absl::StrSplit(text, '\n', absl::SkipEmpty()); }

constexpr char kGraph[] = R"(%0 = input : f32[4,8]{8,1}
%1 = input : f32[8]{1}
%2 = exp %0 : f32[4,8]{8,1}
%3 = mul %2, %1 : f32[4,8]{8,1}
%4 = sub %3, %0 : f32[4,8]{8,1}
output %4
output %2
)";

TEST(GraphLinesTest, NumbersDoNotCount) {
  const List shifted = Lines(R"(%5 = input : f32[4,8]{8,1}
%6 = input : f32[8]{1}
%7 = exp %5 : f32[4,8]{8,1}
%8 = mul %6, %7 : f32[4,8]{8,1}
%9 = sub %8, %5 : f32[4,8]{8,1}
output %9
output %7
)");
  EXPECT_EQ(LocalKeys(Lines(kGraph)), LocalKeys(shifted));
  EXPECT_THAT(SameButForOrder(Lines(kGraph), shifted), Optional(ElementsAre(0, 1)));
}

TEST(GraphLinesTest, OrderOfInputsAndOutputsIsToldApart) {
  EXPECT_THAT(SameButForOrder(Lines(kGraph), Lines(R"(%0 = input : f32[8]{1}
%1 = input : f32[4,8]{8,1}
%2 = exp %1 : f32[4,8]{8,1}
%3 = mul %0, %2 : f32[4,8]{8,1}
%4 = sub %3, %1 : f32[4,8]{8,1}
output %2
output %4
)")),
              Optional(ElementsAre(1, 0)));
}

TEST(GraphLinesTest, WhatDiffersIsFound) {
  const std::string graph = kGraph;
  const std::pair<const char*, const char*> edits[] = {
      {"exp", "log"},                // op
      {"sub %3, %0", "sub %0, %3"},  // order where it matters
      {"sub %3, %0", "sub %3, %2"},  // operand
      {"output %2", "output %3"},    // output
      {"%1 = input : f32[8]", "%1 = input : f16[8]"},
  };
  for (const auto& [from, to] : edits) {
    std::string edited = graph;
    edited.replace(edited.find(from), std::string(from).size(), to);
    EXPECT_EQ(SameButForOrder(Lines(graph), Lines(edited)), std::nullopt) << edited;
    EXPECT_NE(LocalKeys(Lines(graph)), LocalKeys(Lines(edited))) << edited;
  }
  EXPECT_EQ(SameButForOrder(Lines(graph), Lines(graph + "output %4\n")), std::nullopt);
}

// Two inputs that nothing tells apart, and a deep graph.
TEST(GraphLinesTest, SymmetricInputsStandInAnyOrder) {
  std::string text =
      "%0 = input : f32[8]{1}\n%1 = input : f32[8]{1}\n%2 = add %0, %1 : f32[8]{1}\n";
  for (int i = 3; i < 1000; ++i)
    text += "%" + std::to_string(i) + " = exp %" + std::to_string(i - 1) + " : f32[8]{1}\n";
  EXPECT_THAT(SameButForOrder(Lines(text), Lines(text)), Optional(ElementsAre(0, 1)));
}

TEST(GraphLinesTest, TextThatIsNoGraphHarmsNothing) {
  const List garbage = {"", "%", "= ", " = ", "% = %", "%a, %b = x %c %c %", "\xff%\xff = add"};
  EXPECT_EQ(LocalKeys(garbage).size(), garbage.size());
  EXPECT_TRUE(SameButForOrder(garbage, garbage).has_value());
}

}  // namespace
}  // namespace fusiond::cli
