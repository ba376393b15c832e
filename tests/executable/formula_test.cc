#include "runtime/executable/formula.h"

#include <limits>

#include "tests/support/status_matchers.h"

namespace fusiond::executable {
namespace {

using ::fusiond::testing::StatusIs;
using ::testing::HasSubstr;
using Kind = FormulaTerm::Kind;

absl::StatusOr<int64_t> Evaluate(const Formula& formula) {
  static const int64_t shape[] = {2048, 8191};
  const absl::Span<const int64_t> shapes[] = {shape};
  return formula.Evaluate(shapes, 132);
}

TEST(FormulaTest, EvaluatesEveryOperation) {
  const Formula rows = Formula::Extent(0, 0), columns = Formula::Extent(0, 1);
  const Formula eight = Formula::Constant(8);
  ASSERT_OK_AND_ASSIGN(int64_t product, Evaluate(Formula::Combine(Kind::kMultiply, rows, columns)));
  EXPECT_EQ(product, 2048 * 8191);
  ASSERT_OK_AND_ASSIGN(int64_t groups, Evaluate(Formula::Combine(Kind::kCeilDiv, columns, eight)));
  EXPECT_EQ(groups, 1024);
  ASSERT_OK_AND_ASSIGN(int64_t padded, Evaluate(Formula::Combine(Kind::kRoundUp, columns, eight)));
  EXPECT_EQ(padded, 8192);
  ASSERT_OK_AND_ASSIGN(int64_t grid,
                       Evaluate(Formula::Combine(Kind::kMin, rows, Formula::SmCount())));
  EXPECT_EQ(grid, 132);
  ASSERT_OK_AND_ASSIGN(int64_t most,
                       Evaluate(Formula::Combine(Kind::kMax, rows, Formula::SmCount())));
  EXPECT_EQ(most, 2048);
  ASSERT_OK_AND_ASSIGN(int64_t sum, Evaluate(Formula::Combine(Kind::kAdd, rows, eight)));
  EXPECT_EQ(sum, 2056);
  ASSERT_OK_AND_ASSIGN(int64_t nothing, Evaluate(Formula()));
  EXPECT_EQ(nothing, 0);
}

TEST(FormulaTest, CombineFoldsConstants) {
  Formula folded = Formula::Combine(Kind::kCeilDiv, Formula::Constant(10), Formula::Constant(4));
  EXPECT_EQ(folded.AsConstant(), 3);
  EXPECT_EQ(Formula::Combine(Kind::kAdd, Formula(), Formula::Constant(4)).AsConstant(), 4);
}

TEST(FormulaTest, PrintsAsNestedCalls) {
  EXPECT_EQ(
      Formula::Combine(Kind::kCeilDiv, Formula::Extent(0, 1), Formula::Constant(8)).ToString(),
      "ceil_div(extent(0,1), 8)");
}

TEST(FormulaTest, MalformedFormulasAreRefused) {
  FormulaTerm add;
  add.kind = Kind::kAdd;
  EXPECT_THAT(Evaluate(Formula::FromTerms({add})), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Evaluate(Formula::FromTerms({FormulaTerm(), FormulaTerm()})),
              StatusIs(absl::StatusCode::kInvalidArgument));
  FormulaTerm unknown;
  unknown.kind = static_cast<Kind>(77);
  EXPECT_THAT(Evaluate(Formula::FromTerms({unknown})),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("77")));
  EXPECT_THAT(Evaluate(Formula::Extent(0, 2)),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no dim 2 of input 0")));
  EXPECT_THAT(Evaluate(Formula::Combine(Kind::kCeilDiv, Formula::Extent(0, 0), Formula())),
              StatusIs(absl::StatusCode::kInvalidArgument));
  for (Kind kind : {Kind::kCeilDiv, Kind::kRoundUp}) {  // C++ would round towards zero
    const Formula rounded = Formula::Combine(kind, Formula::Constant(-9), Formula::Extent(0, 0));
    EXPECT_THAT(Evaluate(Formula::Combine(Kind::kAdd, rounded, Formula::Constant(9000))),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not defined")));
  }
  EXPECT_THAT(Evaluate(Formula::Combine(Kind::kMultiply, Formula::Extent(0, 0),
                                        Formula::Constant(std::numeric_limits<int64_t>::max()))),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("overflows")));
  EXPECT_THAT(Evaluate(Formula::Constant(-1)),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("negative")));
  EXPECT_THAT(Evaluate(Formula::FromTerms(std::vector<FormulaTerm>(65))),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("limit is 64")));
}

}  // namespace
}  // namespace fusiond::executable
