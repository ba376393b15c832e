// A nan is in no range. ptxas forgets that where it decides a comparison from what its operand can
// be, so helpers that order floats are spelled such that it decides nothing (primitive.cuh). Seen
// in the machine code: a helper's is not the same as that of its result for every number.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "compiler/device/device_text.h"
#include "compiler/nvrtc/nvrtc.h"
#include "tests/support/kernel_code.h"
#include "tests/support/nvrtc_for_tests.h"
#include "tests/support/status_matchers.h"

namespace fusiond::device {
namespace {

struct Case {
  const char* text;
  const char* of_numbers;  // its value unless x is nan
};

constexpr Case kCases[] = {
    {"fd_ge(fd_abs(x), -2.0f)", "1.0f"},
    {"fd_gt(fd_abs(x), -2.0f)", "1.0f"},
    {"fd_le(-2.0f, fd_abs(x))", "1.0f"},
    {"fd_lt(-2.0f, fd_abs(x))", "1.0f"},
    {"fd_ge(fd_abs(x), 0.0f)", "1.0f"},
    {"fd_ge(fd_mul(x, x), 0.0f)", "1.0f"},
    {"fd_ge(fd_add(fd_mul(x, x), 1.0f), 1.0f)", "1.0f"},
    {"fd_gt(fd_add(fd_abs(x), 1.0f), 0.0f)", "1.0f"},
    {"fd_lt(fd_neg(fd_abs(x)), 1.0f)", "1.0f"},
    {"fd_where(fd_ge(fd_abs(x), -2.0f), x, -2.0f)", "x"},
    {"fd_sign(fd_add(fd_abs(x), 1.0f))", "1.0f"},
    {"fd_threshold(-2.0f, fd_abs(x), x)", "x"},
    {"fd_threshold(fd_neg(fd_abs(x)), 1.0f, 3.0f)", "3.0f"},
    {"fd_clamp(fd_abs(x), -3.0f, -2.0f)", "-2.0f"},
    {"fd_minimum(fd_abs(x), -2.0f)", "-2.0f"},
    {"fd_clamp(fd_neg(fd_abs(x)), 1.0f, 2.0f)", "1.0f"},
    {"fd_maximum(fd_neg(fd_abs(x)), 2.0f)", "2.0f"},
    {"fd_relu(fd_neg(fd_abs(x)))", "0.0f"},
    {"fd_fmod(0.5f, fd_add(fd_abs(x), 1.0f))", "0.5f"},
    {"fd_remainder(0.5f, fd_add(fd_abs(x), 1.0f))", "0.5f"},
    {"fd_erfc(fd_add(fd_abs(x), 11.0f))", "0.0f"},
    {"fd_isfinite(fd_fast_tanh(x))", "1.0f"},
    {"fd_isfinite(fd_fast_sin(x))", "1.0f"},
    {"fd_lt(fd_fast_cos(x), 2.0f)", "1.0f"},
};

std::string Kernel(absl::string_view name, absl::string_view value) {
  return absl::StrCat("extern \"C\" __global__ void __launch_bounds__(32) ", name,
                      "(const f32* p, f32* r) {\n  const f32 x = p[fd_thread()];\n"
                      "  r[fd_thread()] = ",
                      value, ";\n}\n");
}

class OrderingTest : public ::testing::TestWithParam<const char*> {};

TEST_P(OrderingTest, OfANanIsLeftToTheDevice) {
  absl::StatusOr<std::unique_ptr<nvrtc::Nvrtc>> nvrtc =
      nvrtc::Nvrtc::Open(testing::NvrtcLocationForTests());
  if (!nvrtc.ok()) GTEST_SKIP() << nvrtc.status();
  std::string source = Prelude({"math.cuh", "math_fast.cuh"});
  int number = 0;
  for (const Case& c : kCases) {
    absl::StrAppend(&source, Kernel(absl::StrCat("is_", number), c.text));
    absl::StrAppend(&source, Kernel(absl::StrCat("of_numbers_", number++), c.of_numbers));
  }
  ASSERT_OK_AND_ASSIGN(
      const nvrtc::CompileOutput output,
      (*nvrtc)->Compile({source, "ordering_test.cu", GetParam(), {"--std=c++17"}}));
  number = 0;
  for (const Case& c : kCases) {
    const std::string code = testing::KernelCode(output.cubin, absl::StrCat("is_", number));
    EXPECT_NE(code, "") << c.text;
    EXPECT_NE(code, testing::KernelCode(output.cubin, absl::StrCat("of_numbers_", number++)))
        << c.text;
  }
}

INSTANTIATE_TEST_SUITE_P(Archs, OrderingTest,
                         ::testing::Values("sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a",
                                           "sm_120a"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace fusiond::device
