// What client/cc/README.md shows compiles, runs, and stands in it as it is compiled.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "runtime/base/file.h"
#include "tests/e2e/test_daemon.h"
#include "tests/support/status_matchers.h"

namespace fusiond::testing {
namespace {

// The lines between the marks, without their indentation of two.
std::string ShownPart(const std::string& source) {
  std::istringstream lines(source);
  std::string shown;
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    if (line == "  // README]") inside = false;
    if (inside) shown += (absl::StartsWith(line, "  ") ? line.substr(2) : line) + "\n";
    if (line == "  // [README") inside = true;
  }
  return shown;
}

TEST(ExampleTest, ShortestWholeUseRuns) {
  TestDaemon daemon;
  daemon.Serve();
  const Ran ran = RunProgram({FUSIOND_EXAMPLE_PROGRAM, daemon.sockets()});
  EXPECT_EQ(ran.code, 0) << ran.output;
  EXPECT_THAT(ran.output, ::testing::HasSubstr("y is silu(x) * gate"));
}

TEST(ExampleTest, RmsNormAgreesWithItsLoops) {
  TestDaemon daemon;
  for (const char* name :
       {"rms_norm_forward", "rms_norm_backward_thunder", "rms_norm_backward_manual"}) {
    ASSERT_OK_AND_ASSIGN(const std::string graph,
                         base::ReadFile(absl::StrCat("tests/data/graphs/", name, ".fir")));
    // As it is it takes minutes without a GPU.
    std::ofstream(absl::StrCat(daemon.folder(), "/", name, ".fir"))
        << absl::StrReplaceAll(graph, {{"2048", "24"}, {"8192", "320"}});
  }
  daemon.Serve();
  const Ran ran = RunProgram({FUSIOND_RMS_NORM_PROGRAM, daemon.sockets(), daemon.folder(), "cpu"});
  EXPECT_EQ(ran.code, 0) << ran.output;
  for (const char* said : {"rms_norm_forward, by", "thunder, by", "manual, by"})
    EXPECT_THAT(ran.output, ::testing::HasSubstr(said));
}

TEST(ExampleTest, ReadmeShowsWhatIsCompiled) {
  ASSERT_OK_AND_ASSIGN(const std::string source, base::ReadFile("client/cc/examples/silu_gate.cc"));
  ASSERT_OK_AND_ASSIGN(const std::string readme, base::ReadFile("client/cc/README.md"));
  const std::string shown = ShownPart(source);
  ASSERT_FALSE(shown.empty());
  EXPECT_THAT(readme, ::testing::HasSubstr("```cpp\n" + shown + "```\n"));
}

}  // namespace
}  // namespace fusiond::testing
