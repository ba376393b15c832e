// The golden files of each pass: there is one where it fires and one where it nearly does; what it
// leaves it leaves again, and outputs stay.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler/ir/text.h"
#include "compiler/passes/pipeline.h"
#include "runtime/base/file.h"
#include "tests/golden/pipelines.h"
#include "tests/passes/same_outputs.h"
#include "tests/support/status_matchers.h"

namespace fusiond::passes {
namespace {

using ::fusiond::testing::SameOutputs;

struct GoldenCase {
  std::string path;
  std::string pipeline;
  std::string input;
};

std::vector<GoldenCase> CasesOf(absl::string_view pass) {
  std::vector<GoldenCase> cases;
  const std::string folder = absl::StrCat("tests/golden/", pass);
  if (!std::filesystem::is_directory(folder)) return cases;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const auto text = base::ReadFile(entry.path().string());
    EXPECT_THAT(text, ::fusiond::testing::IsOk());
    const size_t line = text->find('\n');
    const size_t run = sizeof "# RUN:" - 1;
    cases.push_back({entry.path().string(), text->substr(run, line - run),
                     text->substr(0, text->find("# ----\n"))});
  }
  return cases;
}

class GoldenRulesTest : public ::testing::TestWithParam<std::string> {};

TEST_P(GoldenRulesTest, FireMissRepeatAndKeepOutputs) {
  bool fires = false, misses = false;
  for (const GoldenCase& c : CasesOf(GetParam())) {
    SCOPED_TRACE(c.path);
    fires = fires || absl::StrContains(c.path, "fires");
    misses = misses || absl::StrContains(c.path, "near_miss");
    ASSERT_OK_AND_ASSIGN(const std::string once, golden::RunPipeline(c.pipeline, c.input));
    ASSERT_OK_AND_ASSIGN(const std::string twice, golden::RunPipeline(c.pipeline, once));
    EXPECT_EQ(once, twice);
    ASSERT_OK_AND_ASSIGN(const ir::Graph before, ir::Parse(c.input));
    ASSERT_OK_AND_ASSIGN(const ir::Graph after, ir::Parse(once));
    EXPECT_TRUE(SameOutputs(before, after, /*seed=*/7, {.native = false}));
  }
  EXPECT_TRUE(fires);
  EXPECT_TRUE(misses);
}

std::vector<std::string> Names() {
  std::vector<std::string> names;
  for (const PassInfo& pass : Pipeline()) names.emplace_back(pass.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Passes, GoldenRulesTest, ::testing::ValuesIn(Names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace fusiond::passes
