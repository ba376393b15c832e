#include "compiler/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "tests/support/status_matchers.h"

namespace fusiond::compiler {
namespace {

using ::fusiond::testing::StatusIs;
using ::testing::HasSubstr;

using Map = std::map<std::string, std::string>;

TEST(OptionsTest, DefaultsAreLeftOut) { EXPECT_EQ(Options().ToMap(), Map()); }

TEST(OptionsTest, MapsRoundTrip) {
  for (const Map& map : {Map{}, Map{{"math", "strict"}}, Map{{"math", "fast"}},
                         Map{{"excess_precision", "false"}, {"precision", "double"}},
                         Map{{"excess_precision", "true"}, {"math", "strict"}}}) {
    ASSERT_OK_AND_ASSIGN(const Options options, OptionsFromMap(map));
    EXPECT_EQ(options.ToMap(), map);
  }
}

TEST(OptionsTest, ExcessPrecisionFollowsMathUnlessSet) {
  Options options;
  EXPECT_TRUE(options.ExcessPrecision());
  options.math = Math::kStrict;
  EXPECT_FALSE(options.ExcessPrecision());
  options.excess_precision = true;
  EXPECT_TRUE(options.ExcessPrecision());
}

TEST(OptionsTest, UnknownNamesAndValuesAreRefusedWithWhatIsAllowed) {
  EXPECT_THAT(OptionsFromMap({{"maths", "strict"}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'maths' is unknown")));
  EXPECT_THAT(OptionsFromMap({{"math", "exact"}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("math: 'exact' is none of strict, default, fast")));
}

}  // namespace
}  // namespace fusiond::compiler
