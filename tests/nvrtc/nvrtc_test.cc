// Against a real NVRTC; skipped where none is found. No GPU needed.
#include "compiler/nvrtc/nvrtc.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/support/nvrtc_for_tests.h"
#include "tests/support/status_matchers.h"

namespace fusiond::nvrtc {
namespace {

using ::fusiond::testing::IsOk;
using ::fusiond::testing::NvrtcLocationForTests;
using ::fusiond::testing::StatusIs;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::SizeIs;

constexpr char kReverse[] = R"(
extern "C" __global__ void reverse(float* p) {
  __shared__ float s[256];
  s[threadIdx.x] = p[threadIdx.x];
  __syncthreads();
  p[threadIdx.x] = s[255 - threadIdx.x];
})";

class NvrtcTest : public ::testing::Test {
 protected:
  void SetUp() override {
    absl::StatusOr<std::unique_ptr<Nvrtc>> nvrtc = Nvrtc::Open(NvrtcLocationForTests());
    if (!nvrtc.ok()) GTEST_SKIP() << nvrtc.status();
    nvrtc_ = *std::move(nvrtc);
  }

  std::unique_ptr<Nvrtc> nvrtc_;
};

TEST_F(NvrtcTest, IdentityNamesVersionAndBothLibraries) {
  EXPECT_GE(nvrtc_->version().major, 12);
  EXPECT_THAT(nvrtc_->identity(),
              MatchesRegex("nvrtc [0-9]+\\.[0-9]+ [0-9a-f:sh]{20,} builtins [0-9a-f:sh]{20,}"));
  EXPECT_THAT(nvrtc_->supported_archs(), Contains(90));
  EXPECT_TRUE(absl::StartsWith(nvrtc_->path(), "/")) << nvrtc_->path();
}

TEST_F(NvrtcTest, ExplicitPathOpensThatLibrary) {
  ASSERT_OK_AND_ASSIGN(auto again, Nvrtc::Open({.explicit_path = nvrtc_->path()}));
  EXPECT_EQ(again->identity(), nvrtc_->identity());
}

TEST_F(NvrtcTest, KernelBecomesCubinForEveryArch) {
  for (const char* arch : {"sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a"}) {
    absl::StatusOr<CompileOutput> output = nvrtc_->Compile({kReverse, "reverse.cu", arch, {}});
    if (absl::IsFailedPrecondition(output.status())) continue;  // an older NVRTC
    ASSERT_THAT(output, IsOk()) << arch;
    EXPECT_TRUE(absl::StartsWith(output->cubin,
                                 "\x7f"
                                 "ELF"))
        << arch;
    ASSERT_THAT(output->entries, SizeIs(1));
    EXPECT_EQ(output->entries[0].entry, "reverse");
    EXPECT_EQ(output->entries[0].static_smem_bytes, 1024);
    EXPECT_GT(output->entries[0].registers, 0);
    EXPECT_EQ(output->ptx, "");
  }
}

TEST_F(NvrtcTest, EqualInputsGiveEqualBytes) {
  CompileInput input{kReverse, "reverse.cu", "sm_90a", {}, /*want_ptx=*/true};
  ASSERT_OK_AND_ASSIGN(CompileOutput a, nvrtc_->Compile(input));
  ASSERT_OK_AND_ASSIGN(CompileOutput b, nvrtc_->Compile(input));
  EXPECT_EQ(a.cubin, b.cubin);
  EXPECT_EQ(a.log, b.log);
  EXPECT_EQ(a.ptx, b.ptx);
  EXPECT_THAT(a.ptx, HasSubstr(".target sm_90a"));
}

TEST_F(NvrtcTest, SpillsAreReported) {
  std::string source = "extern \"C\" __global__ void spill(float* p) {\n  float a[64];\n";
  absl::StrAppend(&source, "#pragma unroll\n  for (int i = 0; i < 64; ++i) a[i] = p[i] * p[i];\n",
                  "  __syncthreads();\n",
                  "#pragma unroll\n  for (int i = 0; i < 64; ++i) p[i] = a[63 - i];\n}\n");
  ASSERT_OK_AND_ASSIGN(CompileOutput output,
                       nvrtc_->Compile({source, "spill.cu", "sm_80", {"--maxrregcount=24"}}));
  ASSERT_THAT(output.entries, SizeIs(1));
  EXPECT_GT(output.entries[0].spill_store_bytes, 0);
  EXPECT_GT(output.entries[0].spill_load_bytes, 0);
}

TEST_F(NvrtcTest, RejectedSourceIsInternalWithLog) {
  EXPECT_THAT(nvrtc_->Compile({"int f() { return y; }", "bad.cu", "sm_90a", {}}),
              StatusIs(absl::StatusCode::kInternal,
                       AllOf(HasSubstr("bad.cu(1): error: identifier \"y\" is undefined"),
                             HasSubstr("NVRTC_ERROR_COMPILATION"), HasSubstr("sm_90a"))));
}

TEST_F(NvrtcTest, LongLogIsCut) {
  std::string source = "#pragma message \"" + std::string(200 << 10, 'x') + "\"\n#error end\n";
  absl::StatusOr<CompileOutput> output = nvrtc_->Compile({source, "long.cu", "sm_90a", {}});
  EXPECT_THAT(output, StatusIs(absl::StatusCode::kInternal));
  EXPECT_LT(output.status().message().size(), 66u << 10);
}

TEST_F(NvrtcTest, RejectedOptionIsInternal) {
  EXPECT_THAT(nvrtc_->Compile({kReverse, "reverse.cu", "sm_90a", {"--no-such-option"}}),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("--no-such-option")));
}

TEST_F(NvrtcTest, F07ArchNewerThanNvrtcNamesBoth) {
  EXPECT_THAT(nvrtc_->Compile({kReverse, "reverse.cu", "sm_999a", {}}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("sm_999a"), HasSubstr("newer NVRTC"),
                             HasSubstr(absl::StrCat("NVRTC ", nvrtc_->version().major)))));
  EXPECT_THAT(nvrtc_->Compile({kReverse, "reverse.cu", "sm_20", {}}),
              StatusIs(absl::StatusCode::kFailedPrecondition, Not(HasSubstr("newer NVRTC"))));
}

TEST_F(NvrtcTest, MalformedInputIsRefused) {
  for (const char* arch : {"", "sm_", "sm_a", "90a", "sm_90x", "sm_-9", "sm_ 90", "compute_90",
                           "sm_99999999999999999999", "sm_90a --foo"}) {
    EXPECT_THAT(nvrtc_->Compile({kReverse, "reverse.cu", arch, {}}),
                StatusIs(absl::StatusCode::kInvalidArgument))
        << arch;
  }
  EXPECT_THAT(nvrtc_->Compile({std::string("a\0b", 3), "nul.cu", "sm_90a", {}}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace fusiond::nvrtc
