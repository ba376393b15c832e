// Bad input: every row of tests/support/bad_graphs.cc is refused in both forms.
#include "tests/support/bad_graphs.h"

#include <google/protobuf/text_format.h>

#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "compiler/import/graph_proto.h"
#include "compiler/ir/rules.h"
#include "compiler/ir/text.h"
#include "tests/support/status_matchers.h"

namespace fusiond::graph_proto {
namespace {

using ::fusiond::testing::BadGraph;
using ::fusiond::testing::BadGraphs;
using ::fusiond::testing::CodeOf;
using ::fusiond::testing::kBadGraphLimits;
using ::fusiond::testing::StatusIs;
using ir::Rule;
using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(BadGraphsTest, TextIsRefusedWithCodeRuleAndValues) {
  for (const BadGraph& bad : BadGraphs()) {
    if (bad.fir == nullptr) continue;
    EXPECT_THAT(ir::Parse(absl::StrCat("fir 1\n", bad.fir), kBadGraphLimits),
                StatusIs(CodeOf(bad.rule), AllOf(HasSubstr(ir::RuleName(bad.rule)),
                                                 HasSubstr(bad.words), HasSubstr(bad.more_words))))
        << bad.name;
  }
}

TEST(BadGraphsTest, MessageIsRefusedWithCodeRuleAndValues) {
  for (const BadGraph& bad : BadGraphs()) {
    if (bad.proto == nullptr) continue;
    v1::Graph proto;
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
        absl::StrCat("version: 1 ", bad.proto), &proto))
        << bad.name;
    const auto refused = StatusIs(
        CodeOf(bad.rule),
        AllOf(HasSubstr(ir::RuleName(bad.rule)), HasSubstr(bad.words), HasSubstr(bad.more_words)));
    EXPECT_THAT(FromProto(proto, kBadGraphLimits), refused) << bad.name;
    EXPECT_THAT(FromBytes(proto.SerializeAsString(), kBadGraphLimits), refused) << bad.name;
  }
}

TEST(BadGraphsTest, TooManyBytesAreRefusedUnread) {
  const std::string bytes(2001, '\xff');
  const auto refused =
      StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("IR-03: 2001 bytes, limit 2000"));
  EXPECT_THAT(ir::Parse(bytes, kBadGraphLimits), refused);
  EXPECT_THAT(FromBytes(bytes, kBadGraphLimits), refused);
  v1::Graph proto;
  proto.add_nodes()->set_op(std::string(1994, 'x'));
  ASSERT_EQ(proto.ByteSizeLong(), 2000);
  proto.set_version(1);
  EXPECT_THAT(
      FromProto(proto, kBadGraphLimits),
      StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("IR-03: 2002 bytes, limit 2000")));
}

TEST(BadGraphsTest, MalformedBytesAreRefused) {
  for (const char* bytes : {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "\x08\x01\x12\xff",
                            "\x08\x01\x12\x05\x08", "\x08\x01\x07", "\x08\x01\x0c"}) {
    EXPECT_THAT(FromBytes(bytes), StatusIs(absl::StatusCode::kInvalidArgument,
                                           HasSubstr("malformed graph message at byte")));
  }
}

TEST(BadGraphsTest, AtLeastSixtyRowsCoverEveryImportRule) {
  EXPECT_GE(BadGraphs().size(), 60);
  std::set<Rule> covered = {Rule::kByteLimit};  // above
  for (const BadGraph& bad : BadGraphs()) covered.insert(bad.rule);
  for (const ir::RuleInfo& info : ir::RuleTable()) {
    const bool import = info.rule < Rule::kStatic;
    EXPECT_EQ(covered.contains(info.rule), import) << ir::RuleName(info.rule);
  }
}

}  // namespace
}  // namespace fusiond::graph_proto
