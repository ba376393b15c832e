// Golden files: tests/golden/<folder>/<case>.fir, each a test named after its path.
//
//   # RUN: <step> | <step>(<argument>)      steps: pipelines.cc
//   <graph>
//   # ----
//   <what the pipeline leaves>
//
// In fail_<case>.fir the second part is one line, `# CODE: fragment`: the pipeline must fail with
// that code and a message that contains the fragment. FUSIOND_UPDATE_GOLDEN=1 rewrites the second
// part of the others; read the difference before you commit it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "runtime/base/file.h"
#include "tests/golden/pipelines.h"
#include "tests/support/status_matchers.h"

namespace fusiond::golden {
namespace {

namespace fs = std::filesystem;
using ::fusiond::testing::IsOk;

constexpr absl::string_view kRun = "# RUN:";
constexpr absl::string_view kDivider = "# ----\n";

struct GoldenFile {
  std::string input;  // with the RUN line, which is a comment to the parser
  std::string pipeline;
  std::string expected;
};

absl::StatusOr<GoldenFile> Read(const std::string& path) {
  FUSIOND_ASSIGN_OR_RETURN(const std::string text, base::ReadFile(path));
  const size_t divider = text.find(std::string(kDivider));
  if (!absl::StartsWith(text, kRun) || divider == std::string::npos) {
    return absl::InvalidArgumentError("no '# RUN:' in the first line, or no '# ----'");
  }
  GoldenFile file;
  file.input = text.substr(0, divider);
  file.expected = text.substr(divider + kDivider.size());
  file.pipeline = text.substr(kRun.size(), text.find('\n') - kRun.size());
  return file;
}

// Lines of both, the common ones once: "  same", "- expected", "+ actual". By the longest common
// subsequence; golden files are short.
std::string Diff(absl::string_view expected, absl::string_view actual) {
  const std::vector<std::string> a = absl::StrSplit(expected, '\n');
  const std::vector<std::string> b = absl::StrSplit(actual, '\n');
  std::vector<std::vector<int>> common(a.size() + 1, std::vector<int>(b.size() + 1, 0));
  for (size_t i = a.size(); i-- > 0;) {
    for (size_t j = b.size(); j-- > 0;) {
      common[i][j] =
          a[i] == b[j] ? common[i + 1][j + 1] + 1 : std::max(common[i + 1][j], common[i][j + 1]);
    }
  }
  std::string diff;
  for (size_t i = 0, j = 0; i < a.size() || j < b.size();) {
    if (i < a.size() && j < b.size() && a[i] == b[j]) {
      absl::StrAppend(&diff, "  ", a[i++], "\n");
      ++j;
    } else if (i < a.size() && (j == b.size() || common[i + 1][j] >= common[i][j + 1])) {
      absl::StrAppend(&diff, "- ", a[i++], "\n");
    } else {
      absl::StrAppend(&diff, "+ ", b[j++], "\n");
    }
  }
  return diff;
}

class GoldenTest : public ::testing::Test {
 public:
  explicit GoldenTest(std::string path) : path_(std::move(path)) {}

  void TestBody() override {
    ASSERT_OK_AND_ASSIGN(const GoldenFile file, Read(path_));
    const absl::StatusOr<std::string> actual = RunPipeline(file.pipeline, file.input);
    if (absl::StartsWith(fs::path(path_).filename().string(), "fail_")) {
      CheckFailure(file, actual.status());
      return;
    }
    ASSERT_THAT(actual, IsOk()) << path_;
    if (*actual == file.expected) return;
    // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody sets it
    if (std::getenv("FUSIOND_UPDATE_GOLDEN") != nullptr) {
      ASSERT_THAT(base::WriteFileAtomically(path_, absl::StrCat(file.input, kDivider, *actual)),
                  IsOk());
      return;
    }
    ADD_FAILURE() << path_ << " (- expected, + actual)\n" << Diff(file.expected, *actual);
  }

 private:
  void CheckFailure(const GoldenFile& file, const absl::Status& status) {
    const std::vector<std::string> parts = absl::StrSplit(file.expected, absl::MaxSplits(": ", 1));
    ASSERT_EQ(parts.size(), 2) << path_ << ": write '# CODE: fragment'";
    EXPECT_EQ(absl::StrCat("# ", absl::StatusCodeToString(status.code())), parts[0])
        << path_ << "\n"
        << status;
    const absl::string_view fragment = absl::StripTrailingAsciiWhitespace(parts[1]);
    EXPECT_TRUE(absl::StrContains(status.message(), fragment))
        << path_ << "\nexpected: " << fragment << "\nactual:   " << status.message();
  }

  const std::string path_;
};

void RegisterFiles() {
  std::vector<std::string> paths;
  for (const auto& entry : fs::recursive_directory_iterator("tests/golden")) {
    if (entry.path().extension() == ".fir") paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  for (const std::string& path : paths) {
    const std::string folder = fs::path(path).parent_path().filename();
    const std::string name = fs::path(path).stem();
    ::testing::RegisterTest(absl::StrCat("Golden_", folder).c_str(), name.c_str(), nullptr, nullptr,
                            __FILE__, __LINE__,
                            [path]() -> ::testing::Test* { return new GoldenTest(path); });
  }
}

}  // namespace
}  // namespace fusiond::golden

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  fusiond::golden::RegisterFiles();
  return RUN_ALL_TESTS();
}
