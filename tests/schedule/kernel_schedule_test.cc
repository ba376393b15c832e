// The text of schedules and of patterns that people write for them.
#include "compiler/schedule/kernel_schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "compiler/schedule/variants.h"
#include "tests/support/status_matchers.h"

namespace fusiond::schedule {
namespace {

using ::fusiond::testing::IsOk;
using ::fusiond::testing::StatusIs;
using ::testing::HasSubstr;

TEST(KernelScheduleTest, PrintsWhatIsNotTheDefault) {
  KernelSchedule s;
  s.variant = "flat";
  s.threads = 128;
  EXPECT_EQ(Print(s), "pointwise/flat{threads=128,vector=1,unroll=1}");
  s.scheduler = SchedulerId::kRowColumn;
  s.variant = "bulk_team";
  s.stages = 3;
  s.shared_columns = true;
  EXPECT_EQ(Print(s),
            "row_column/bulk_team{threads=128,vector=1,unroll=1,stages=3,shared_columns=1}");
}

TEST(KernelScheduleTest, TextReadsBackWhateverTheFieldsHold) {
  for (const Variant& variant : Variants()) {
    KernelSchedule s;
    s.scheduler = variant.scheduler;
    s.variant = std::string(variant.name);
    ASSERT_OK_AND_ASSIGN(const KernelSchedule plain, ParseSchedule(Print(s)));
    EXPECT_EQ(plain, s) << Print(s);
    int64_t value = 1;
    for (const ScheduleField& field : ScheduleFields()) {
      // One field alone, small and as large as it may be.
      for (const int64_t number : {value = value % 1000 + 7, field.most}) {
        field.set(s, number);
        ASSERT_OK_AND_ASSIGN(const KernelSchedule read, ParseSchedule(Print(s)));
        EXPECT_EQ(read, s) << Print(s);
      }
    }
  }
}

TEST(KernelScheduleTest, MalformedTextNamesWhatThereIs) {
  const std::pair<std::string, const char*> cases[] = {
      {"", "'' is no scheduler; there are: pointwise, transpose, row_persistent"},
      {"row_colum{threads=1}", "'row_colum' is no scheduler; there are: "},
      {"column/wide", "'wide' is no variant of column; there are: whole, whole_masked, split"},
      {"column/", "'' is no variant of column"},
      {"column{", "does not end with }"},
      {"column{threads=1", "does not end with }"},
      {"column{threads=1}x", "does not end with }"},
      {"column{thread=1}", "'thread' is no parameter; there are: threads, vector, unroll, "},
      {"column{,}", "'' is no parameter"},
      {"column{threads}", "threads: '' is no number from 0 to 2147483647"},
      {"column{threads=-1}", "threads: '-1' is no number"},
      {"column{threads=2147483648}", "threads: '2147483648' is no number"},
      {"column{wide_index=2}", "wide_index: '2' is no number from 0 to 1"},
      {"column{threads=1,threads=2}", "threads is given twice"},
      {"column\x01", "'column\\x01' is no scheduler"},
      {std::string(kMaxPatternBytes + 1, 'x'), "1025 bytes, the limit is 1024"},
  };
  for (const auto& [text, words] : cases)
    EXPECT_THAT(ParsePattern(text), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(words)));
  EXPECT_THAT(
      ParseSchedule("column{threads=1}"),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("names no variant of column")));
}

TEST(SchedulePatternTest, TextIsOfOneForm) {
  ASSERT_OK_AND_ASSIGN(const SchedulePattern pattern, ParsePattern("column{unroll=2,threads=64}"));
  EXPECT_EQ(Print(pattern), "column{threads=64,unroll=2}");
  ASSERT_OK_AND_ASSIGN(const SchedulePattern any, ParsePattern("column{}"));
  EXPECT_EQ(Print(any), "column");
}

TEST(SchedulePatternTest, MatchesWhatItStates) {
  ASSERT_OK_AND_ASSIGN(const KernelSchedule s,
                       ParseSchedule("column/split{threads=256,vector=8,unroll=4,splits=16}"));
  const auto matches = [&](absl::string_view text) {
    const absl::StatusOr<SchedulePattern> pattern = ParsePattern(text);
    EXPECT_THAT(pattern, IsOk());
    return pattern.ok() && Matches(*pattern, s);
  };
  for (const char* text : {"column", "column/split", "column{splits=16}", "column{cluster=0}"})
    EXPECT_TRUE(matches(text)) << text;
  EXPECT_TRUE(matches(Print(s)));
  for (const char* text : {"pointwise", "column/whole", "column{splits=8}", "column{cluster=2}"})
    EXPECT_FALSE(matches(text)) << text;
}

}  // namespace
}  // namespace fusiond::schedule
