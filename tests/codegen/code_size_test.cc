// What a use of an op adds to a kernel's machine code, which NVRTC's time follows, is within what
// IssueSlots says of it: segments and schedules bound a kernel by that.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "compiler/codegen/names.h"
#include "compiler/device/device_text.h"
#include "compiler/ir/op_table.h"
#include "compiler/nvrtc/nvrtc.h"
#include "compiler/schedule/cost.h"
#include "tests/support/kernel_code.h"
#include "tests/support/nvrtc_for_tests.h"
#include "tests/support/status_matchers.h"

namespace fusiond::codegen {
namespace {

using ir::DType;
using ir::Math;
using ir::OpInfo;
using ir::Promotion;

constexpr int kFew = 2, kMany = 10;  // uses
// What is seldom issued is counted less than it is long; then, of each use here, up to four loads
// with their addresses, and what keeps its result.
constexpr int kInstructionsOfASlot = 3, kLoadsAndSum = 12;
constexpr int kInstructionBytes = 16;  // from sm_70 on

bool Takes(const OpInfo& info, DType type) {
  switch (info.promotion) {
    case Promotion::kFloatResult:
    case Promotion::kFloatOnly:
      return ir::IsFloatingPoint(type);
    case Promotion::kIntegral:
    case Promotion::kBitwise:
      return !ir::IsFloatingPoint(type);
    default:
      return true;
  }
}

// `uses` of the op on elements of their own.
std::string Kernel(const OpInfo& info, const Helper& helper, absl::string_view type, int uses) {
  std::string text = absl::Substitute(
      "extern \"C\" __global__ void __launch_bounds__(128) k_$0_$1(const $2* a, const $2* b, "
      "const $2* c, const $2* d, $2* r) {\n  const u32 i = fd_thread();\n  $2 s = 0;\n",
      info.name, uses, type);
  for (int use = 0; use < uses; ++use) {
    absl::StrAppend(&text, "  s = fd_add(s, (", type, ")", helper.name, "(");
    for (int o = 0; o < info.max_operands; ++o)
      absl::StrAppend(&text, o == 0 ? "" : ", ", std::string(1, static_cast<char>('a' + o)),
                      "[i + ", 128 * use, "]", info.op == ir::Op::kWhere && o == 0 ? " != 0" : "");
    absl::StrAppend(&text, "));\n");
  }
  return text + "  r[i] = s;\n}\n";
}

class CodeSizeTest : public ::testing::TestWithParam<std::pair<DType, Math>> {};

TEST_P(CodeSizeTest, IsWithinTheIssueSlots) {
  const auto [dtype, math] = GetParam();
  absl::StatusOr<std::unique_ptr<nvrtc::Nvrtc>> nvrtc =
      nvrtc::Nvrtc::Open(testing::NvrtcLocationForTests());
  if (!nvrtc.ok()) GTEST_SKIP() << nvrtc.status();
  std::vector<const OpInfo*> ops;
  std::string source;
  for (const device::DeviceFile& file : device::DeviceFiles())
    source.append(file.text.data(), file.text.size());
  for (const OpInfo& info : ir::OpTable()) {
    if (info.op_class != ir::OpClass::kPointwise || info.op == ir::Op::kCast || !Takes(info, dtype))
      continue;
    const Helper helper = HelperOf(info.op, dtype, math);
    if (math != Math::kDefault && helper.file.empty()) continue;
    ops.push_back(&info);
    for (const int uses : {kFew, kMany}) source += Kernel(info, helper, ir::DTypeName(dtype), uses);
  }
  ASSERT_OK_AND_ASSIGN(const nvrtc::CompileOutput output,
                       (*nvrtc)->Compile({source, "code_size_test.cu", "sm_90a", {"--std=c++17"}}));
  for (const OpInfo* info : ops) {
    const auto bytes = [&](int uses) {
      return testing::KernelCode(output.cubin, absl::StrCat("k_", info->name, "_", uses)).size();
    };
    ASSERT_GT(bytes(kMany), 0u) << info->name;
    const auto more = static_cast<int64_t>(bytes(kMany)) - static_cast<int64_t>(bytes(kFew));
    const int64_t instructions = more / (kMany - kFew) / kInstructionBytes;
    // Four elements of a vector share a block of Philox.
    const int slots = schedule::IssueSlots(info->op) * (info->op == ir::Op::kRandomBits ? 4 : 1);
    EXPECT_LE(instructions, kInstructionsOfASlot * slots + kLoadsAndSum) << info->name;
  }
}

INSTANTIATE_TEST_SUITE_P(All, CodeSizeTest,
                         ::testing::Values(std::pair(DType::kFloat, Math::kDefault),
                                           std::pair(DType::kFloat, Math::kStrict),
                                           std::pair(DType::kFloat, Math::kFast),
                                           std::pair(DType::kDouble, Math::kDefault),
                                           std::pair(DType::kInt32, Math::kDefault),
                                           std::pair(DType::kInt, Math::kDefault)));

}  // namespace
}  // namespace fusiond::codegen
