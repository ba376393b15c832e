// Promotion, rule by rule of the table in compiler/ir/README.md.
#include "tests/ir/infer_text.h"
#include "tests/support/status_matchers.h"

namespace fusiond::ir {
namespace {

using ::testing::HasSubstr;

struct Case {
  const char* op;
  const char* inputs;
  const char* result;  // without strides: every shape here is [4] or []
  const char* compute;
};

void Check(absl::Span<const Case> cases) {
  for (const Case& c : cases) {
    std::string result = Infer(c.op, c.inputs, "");
    result = result.substr(0, result.find('{'));
    EXPECT_EQ(result, c.result) << c.op << " " << c.inputs;
    EXPECT_EQ(Compute(c.op, c.inputs), c.compute) << c.op << " " << c.inputs;
  }
}

TEST(PromotionTest, TensorsOfOneCategoryGiveTheWiderType) {
  Check({{"add", "bool[4] bool[4]", "bool[4]", "bool"},
         {"add", "bool[4] i32[4]", "i32[4]", "i32"},
         {"add", "i32[4] i64[4]", "i64[4]", "i64"},
         {"add", "i64[4] f32[4]", "f32[4]", "f32"},
         {"add", "f32[4] f64[4]", "f64[4]", "f64"},
         {"add", "i64[4] f16[4]", "f32[4]", "f32"},
         {"add", "i32[] i64[]", "i64[]", "i64"},
         {"add", "f32[] f64[]", "f64[]", "f64"}});
}

TEST(PromotionTest, HalfAndBFloat16ComputeInFloatAndStayThere) {
  Check({{"neg", "f16[4]", "f32[4]", "f32"},
         {"mul", "bf16[4] bf16[4]", "f32[4]", "f32"},
         {"mul", "f16[4] bf16[4]", "f32[4]", "f32"},
         {"mul", "bf16[4] f64[4]", "f64[4]", "f64"},
         {"exp", "bf16[4]", "f32[4]", "f32"},
         {"abs", "f16[]", "f32[]", "f32"},
         {"clamp", "bf16[4] f64 f64", "f32[4]", "f32"}});
}

TEST(PromotionTest, ATensorOfRank0RaisesOnlyTheKind) {
  Check({{"add", "f32[4] f64[]", "f32[4]", "f32"},
         {"add", "i32[4] i64[]", "i32[4]", "i32"},
         {"add", "i32[4] f64[]", "f64[4]", "f64"},
         {"add", "i32[4] f16[]", "f32[4]", "f32"},
         {"add", "bool[4] i32[]", "i32[4]", "i32"},
         {"add", "f32[4] i64[]", "f32[4]", "f32"}});
}

TEST(PromotionTest, AScalarRaisesOnlyTheKind) {
  Check({{"mul", "f32[4] f64", "f32[4]", "f32"},
         {"mul", "f64 f32[4]", "f32[4]", "f32"},
         {"mul", "bf16[4] f64", "f32[4]", "f32"},
         {"mul", "i64[4] f64", "f32[4]", "f32"},
         {"mul", "bool[4] f64", "f32[4]", "f32"},
         {"mul", "bool[4] i64", "i64[4]", "i64"},
         {"mul", "bool[4] i32", "i64[4]", "i64"},
         {"mul", "i32[4] i64", "i32[4]", "i32"},
         {"mul", "f64[4] i64", "f64[4]", "f64"},
         {"mul", "f32[] f64", "f32[]", "f32"},
         {"mul", "i32[] f64", "f32[]", "f32"}});
}

TEST(PromotionTest, ScalarsAmongThemselvesGiveTheirWidestType) {
  Check({{"add", "i32 i32", "i64", "i64"},
         {"add", "f32 f32", "f64", "f64"},
         {"add", "f16 i64", "f64", "f64"},
         {"add", "bool bool", "bool", "bool"},
         {"reciprocal", "i64", "f64", "f64"},
         {"reciprocal", "f32", "f64", "f64"},
         {"neg", "i32", "i64", "i64"}});
}

TEST(PromotionTest, FloatResultRaisesBoolAndIntegers) {
  Check({{"sin", "bool[4]", "f32[4]", "f32"},
         {"sin", "i64[4]", "f32[4]", "f32"},
         {"sin", "f64[4]", "f64[4]", "f64"},
         {"truediv", "i64[4] i64[4]", "f32[4]", "f32"},
         {"div", "i64[4] i64[4]", "i64[4]", "i64"},
         {"atan2", "i32[4] f16[4]", "f32[4]", "f32"},
         {"pow", "i64[4] i64[4]", "i64[4]", "i64"}});
}

TEST(PromotionTest, ComparisonsAndLogicGiveBool) {
  Check({{"lt", "i64[4] f32[4]", "bool[4]", "f32"},
         {"eq", "bf16[4] bf16[4]", "bool[4]", "f32"},
         {"ne", "i32 i32", "bool", "i64"},
         {"logical_and", "f32[4] i64[4]", "bool[4]", "bool"},
         {"logical_not", "f16[4]", "bool[4]", "bool"},
         {"isnan", "bf16[4]", "bool[4]", "f32"},
         {"isfinite", "i64[4]", "bool[4]", "i64"}});
}

TEST(PromotionTest, BitsTakeIntegersAndSomeBool) {
  Check({{"bitwise_and", "bool[4] bool[4]", "bool[4]", "bool"},
         {"bitwise_or", "i32[4] i64[4]", "i64[4]", "i64"},
         {"bitwise_xor", "bool[4] i64", "i64[4]", "i64"},
         {"bitwise_not", "i32[4]", "i32[4]", "i32"},
         {"gcd", "i32[4] i64[4]", "i64[4]", "i64"},
         {"bitwise_left_shift", "i32[4] i64", "i32[4]", "i32"}});
  EXPECT_EQ(Infer("bitwise_and", "f32[4] i64[4]", ""),
            "IR-17: bitwise_and: takes bool, i32 and i64, not f32");
  EXPECT_EQ(Infer("gcd", "bool[4] bool[4]", ""), "IR-17: gcd: takes i32 and i64, not bool");
  EXPECT_EQ(Infer("bitwise_right_shift", "i64[4] f64", ""),
            "IR-17: bitwise_right_shift: takes i32 and i64, not f32");
}

TEST(PromotionTest, NextafterTakesFloatAndDouble) {
  Check({{"nextafter", "f32[4] f64", "f32[4]", "f32"},
         {"nextafter", "f64[4] f32[4]", "f64[4]", "f64"}});
  EXPECT_EQ(Infer("nextafter", "bf16[4] bf16[4]", ""),
            "IR-17: nextafter: takes f32 and f64, not bf16");
}

TEST(PromotionTest, SelectAndMovementKeepHalf) {
  Check({{"where", "bool[4] bf16[4] bf16[4]", "bf16[4]", "bf16"},
         {"where", "bool[4] f16[4] bf16[4]", "f32[4]", "f32"},
         {"where", "bool[4] bf16[4] f64", "bf16[4]", "bf16"},
         {"where", "bool[4] f64 f64", "f32[4]", "f32"},
         {"where", "bool[4] i64 i64", "i64[4]", "i64"},
         {"where", "bool f32[4] i64[4]", "f32[4]", "f32"},
         {"set", "bf16[4]", "bf16[4]", "bf16"},
         {"segment_set", "i32[4]", "i32[4]", "i32"},
         {"real", "f16[4]", "f16[4]", "f16"}});
  EXPECT_EQ(Infer("where", "i64[4] f32[4] f32[4]", ""),
            "IR-17: where: takes bool as its condition, not i64");
}

TEST(PromotionTest, CastGivesItsAttribute) {
  EXPECT_EQ(Infer("cast", "f32[4]", "{dtype=bf16}"), "bf16[4]{1}");
  EXPECT_EQ(Infer("cast", "i64", "{dtype=bool}"), "bool");
}

TEST(PromotionTest, SumAndProdOfIntegersAre64Bits) {
  EXPECT_EQ(Infer("sum", "bool[4]", "{dims=[0]}"), "i64[]{}");
  EXPECT_EQ(Infer("prod", "i32[4]", "{dims=[0]}"), "i64[]{}");
  EXPECT_EQ(Infer("sum", "bf16[4]", "{dims=[0]}"), "bf16[]{}");
  EXPECT_EQ(Infer("sum", "bf16[4]", "{dims=[0], dtype=f32}"), "f32[]{}");
  EXPECT_EQ(Infer("sum", "i32[4]", "{dims=[0], dtype=i32}"), "i32[]{}");
  EXPECT_EQ(Infer("max", "f16[4]", "{dims=[0]}"), "f16[]{}");
  EXPECT_EQ(Infer("min", "i32[4]", "{dims=[0]}"), "i32[]{}");
  EXPECT_THAT(Infer("max", "f16[4]", "{dims=[0], dtype=f32}"),
              HasSubstr("IR-09: max: has no attribute 'dtype'"));
  EXPECT_THAT(Infer("sum", "f16[4]", "{dims=[0], dtype=bool}"), HasSubstr("IR-17: sum: takes"));
}

TEST(PromotionTest, VarianceOfHalfAndIntegersIsFloat) {
  EXPECT_EQ(Infer("var", "bf16[4]", "{dims=[0]}"), "f32[]{}");
  EXPECT_EQ(Infer("var", "i64[4]", "{dims=[0]}"), "f32[]{}");
  EXPECT_EQ(Infer("var_mean", "f64[4]", "{dims=[0]}"), "f64[]{} f64[]{}");
  EXPECT_EQ(Infer("welford", "f16[4]", "{dims=[0]}"), "f32[]{} f32[]{} i64[]{}");
}

}  // namespace
}  // namespace fusiond::ir
