// Equal requests give equal texts, in processes whose addresses and hash seeds differ.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "absl/strings/str_cat.h"

namespace fusiond::compiler {
namespace {

// What fusiond-opt prints, run as a process of its own.
std::string Emit(const std::string& graph, const std::string& what) {
  const std::string command = absl::StrCat(FUSIOND_OPT, " --emit=", what, " ", graph, " 2>&1");
  std::string text;
  std::FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return "";
  char buffer[4096];
  for (size_t n; (n = std::fread(buffer, 1, sizeof(buffer), pipe)) > 0;) text.append(buffer, n);
  return ::pclose(pipe) == 0 ? text : "";
}

TEST(DeterminismTest, TwoProcessesPrintTheSameSchedulesAndTexts) {
  for (const char* graph : {"gelu_bias", "softmax", "layer_norm_forward", "swiglu"}) {
    const std::string path = absl::StrCat("tests/data/graphs/", graph, ".fir");
    for (const char* what : {"schedule", "cuda"}) {
      const std::string first = Emit(path, what);
      EXPECT_FALSE(first.empty()) << path;
      EXPECT_EQ(first, Emit(path, what)) << path;
    }
  }
}

}  // namespace
}  // namespace fusiond::compiler
