#include "compiler/ir/op_table.h"

#include <algorithm>
#include <set>
#include <string>

#include "absl/strings/str_split.h"
#include "tests/support/status_matchers.h"

namespace fusiond::ir {
namespace {

TEST(OpTableTest, RowsStandAtTheirEnumeratorsAndHaveOneName) {
  std::set<absl::string_view> names;
  for (size_t i = 0; i < OpTable().size(); ++i) {
    const OpInfo& row = OpTable()[i];
    EXPECT_EQ(static_cast<size_t>(row.op), i);
    EXPECT_EQ(&Info(row.op), &row);
    EXPECT_EQ(OpFromName(row.name), row.op);
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_FALSE(row.doc.empty()) << row.name;
    EXPECT_GE(row.min_operands, 0) << row.name;
    EXPECT_LE(row.min_operands, row.max_operands) << row.name;
    EXPECT_GE(row.results, 1) << row.name;
  }
  EXPECT_EQ(OpFromName("addd"), std::nullopt);
}

TEST(OpTableTest, ClassesHaveTheirForm) {
  for (const OpInfo& row : OpTable()) {
    if (row.op_class == OpClass::kPointwise) {
      EXPECT_EQ(row.min_operands, row.max_operands) << row.name;
      EXPECT_GE(row.min_operands, 1) << row.name;
      EXPECT_EQ(row.results, 1) << row.name;
    }
    const bool leaf = row.op_class == OpClass::kLeaf;
    EXPECT_EQ(row.max_operands == 0, leaf) << row.name;
    const bool own =
        leaf || row.op_class == OpClass::kFactory || row.op_class == OpClass::kMetadata;
    EXPECT_EQ(row.promotion == Promotion::kNone, own) << row.name;
  }
}

TEST(OpTableTest, AttributeSpecsAreSortedAndDefaultsOptional) {
  for (const OpInfo& row : OpTable()) {
    EXPECT_TRUE(std::is_sorted(row.attributes.begin(), row.attributes.end(),
                               [](const auto& a, const auto& b) { return a.key < b.key; }))
        << row.name;
    for (const AttributeSpec& spec : row.attributes) {
      EXPECT_EQ(AttributeFromName(AttributeName(spec.key)), spec.key);
      EXPECT_FALSE(spec.required && spec.default_value.has_value()) << row.name;
    }
  }
}

// The front end's pointwise ops but the complex ones; and random_bits, which draws are made of.
TEST(OpTableTest, HoldsTheFrontEndsPointwiseOps) {
  constexpr absl::string_view kUnary =
      "abs acos acosh asin asinh atan atanh bitwise_not ceil cos cosh erf erfc erfcinv erfinv exp "
      "exp2 expm1 floor frac isfinite isinf isnan isneginf isposinf isreal lgamma log log10 log1p "
      "log2 logical_not neg real reciprocal relu round rsqrt segment_set set sigmoid sign signbit "
      "silu sin sinh sqrt tan tanh trunc";
  constexpr absl::string_view kBinary =
      "add atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor div eq "
      "fmod gcd ge gt le logical_and logical_or logical_right_shift lt maximum minimum mod mul ne "
      "nextafter pow remainder sub truediv";
  std::set<std::string> expected[4];
  for (const absl::string_view name : absl::StrSplit(kUnary, ' ')) expected[0].emplace(name);
  expected[0].insert("cast");
  for (const absl::string_view name : absl::StrSplit(kBinary, ' ')) expected[1].emplace(name);
  expected[2] = {"clamp", "lerp", "random_bits", "threshold", "where"};
  expected[3] = {"addcmul"};
  std::set<std::string> actual[4];
  for (const OpInfo& row : OpTable()) {
    if (row.op_class != OpClass::kPointwise) continue;
    actual[row.min_operands - 1].emplace(row.name);
  }
  for (int i = 0; i < 4; ++i) EXPECT_EQ(actual[i], expected[i]);
}

}  // namespace
}  // namespace fusiond::ir
