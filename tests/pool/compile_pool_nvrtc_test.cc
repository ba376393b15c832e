// Image jobs with a real NVRTC, inside the sandbox; skipped where none is found. No GPU needed.
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler/nvrtc/nvrtc.h"
#include "server/process/harden.h"
#include "tests/pool/pool_fixture.h"
#include "tests/support/nvrtc_for_tests.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_folder.h"

namespace fusiond::server {
namespace {

using ::fusiond::testing::IsOk;
using ::fusiond::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr char kScale[] =
    "extern \"C\" __global__ void scale(float* p) { p[threadIdx.x] *= expf(p[0]) / 3.f; }";

class CompilePoolNvrtcTest : public PoolTest {
 protected:
  void SetUp() override {
    nvrtc::NvrtcLocation location = testing::NvrtcLocationForTests();
    auto nvrtc = nvrtc::Nvrtc::Open(location);
    if (!nvrtc.ok()) GTEST_SKIP() << nvrtc.status();
    options_.setup.set_nvrtc_path((*nvrtc)->path());
    options_.setup.set_memory_limit_bytes(1 << 30);
    identity_ = (*nvrtc)->identity();
  }

  static CompileRequest Image(const std::string& source, const std::string& arch) {
    CompileRequest request;
    internal::v1::ImageJob* job = request.job.mutable_image();
    job->set_name("test.cu");
    job->set_source(source);
    job->set_arch(arch);
    return request;
  }

  std::string identity_;
};

TEST_F(CompilePoolNvrtcTest, EveryArchCompilesInTheSandbox) {
  Create();
  ASSERT_OK_AND_ASSIGN(internal::v1::NvrtcInfo info, pool_->WaitForNvrtc(absl::InfiniteDuration()));
  EXPECT_EQ(info.identity(), identity_);
  for (int arch : info.archs()) {
    CompileOutcome outcome = Run(Image(kScale, absl::StrCat("sm_", arch)));
    ASSERT_THAT(outcome.status, IsOk()) << arch;
    EXPECT_TRUE(absl::StartsWith(outcome.reply.image().cubin(),
                                 "\x7f"
                                 "ELF"));
    ASSERT_THAT(outcome.reply.image().entries(), SizeIs(1));
    EXPECT_EQ(outcome.reply.image().entries(0).entry(), "scale");
    EXPECT_GT(outcome.reply.image().compile_ns(), 0);
  }
  EXPECT_EQ(pool_->GetStatus().crashes, 0u);
}

// NVRTC 13.0 opens libcuda at its first compile, where it finds one, and calls cuInit: every
// compile process would hold the GPUs. The one offered here aborts in cuInit.
TEST_F(CompilePoolNvrtcTest, DriverIsNeverTouched) {
  options_.spawn.environment = {"LD_LIBRARY_PATH=" FUSIOND_DEADLY_DRIVER_DIR};
  Create();
  EXPECT_THAT(Run(Image(kScale, "sm_90a")).status, IsOk());
  EXPECT_EQ(pool_->GetStatus().start_failures, 0u);
}

TEST_F(CompilePoolNvrtcTest, RepairedNvrtcIsUsedAgain) {
  const testing::TempFolder folder;
  const std::string link = folder.path() + "/libnvrtc.so.13";
  std::filesystem::create_symlink(FUSIOND_CRASHING_LIBRARY, link);
  const std::string good = options_.setup.nvrtc_path();
  options_.setup.set_nvrtc_path(link);
  Create();
  EXPECT_THAT(Run(Image(kScale, "sm_90a")).status,
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("before it was ready")));
  std::filesystem::remove(link);
  std::filesystem::create_symlink(good, link);
  pool_->Refresh();
  WaitFor([](const CompilePoolStatus& status) { return status.nvrtc.has_value(); });
  EXPECT_THAT(Run(Image(kScale, "sm_90a")).status, IsOk());
}

TEST_F(CompilePoolNvrtcTest, RejectedSourceIsAVerdictWithItsLog) {
  Create();
  CompileOutcome outcome = Run(Image("int f() { return y; }", "sm_90a"));
  EXPECT_THAT(outcome.status,
              StatusIs(absl::StatusCode::kInternal,
                       HasSubstr("test.cu(1): error: identifier \"y\" is undefined")));
  EXPECT_TRUE(outcome.verdict);
  EXPECT_EQ(outcome.attempts, 1);
}

TEST_F(CompilePoolNvrtcTest, F07UnknownArchIsFailedPrecondition) {
  Create();
  EXPECT_THAT(Run(Image(kScale, "sm_999")).status,
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("sm_999")));
}

TEST_F(CompilePoolNvrtcTest, F08AnotherNvrtcThanTheKeysIsRefused) {
  Create();
  CompileRequest request = Image(kScale, "sm_90a");
  request.job.mutable_image()->set_nvrtc_identity("nvrtc 1.0 other");
  CompileOutcome outcome = Run(std::move(request));
  EXPECT_THAT(outcome.status, StatusIs(absl::StatusCode::kUnavailable,
                                       AllOf(HasSubstr("nvrtc 1.0 other"), HasSubstr(identity_))));
  EXPECT_FALSE(outcome.verdict);
  request = Image(kScale, "sm_90a");
  request.job.mutable_image()->set_nvrtc_identity(identity_);
  EXPECT_THAT(Run(std::move(request)).status, IsOk());
}

// F22, and NVRTC's habit of reporting lack of memory as an error in the source: a large but correct
// kernel under a small limit.
TEST_F(CompilePoolNvrtcTest, F22OutOfMemoryInNvrtcIsNoVerdict) {
  if (!MemoryLimitWorks()) GTEST_SKIP() << "this build reserves address space (sanitizer)";
  options_.setup.set_memory_limit_bytes(48 << 20);
  Create();
  std::string source = "extern \"C\" __global__ void large(float* p) {\n";
  for (int i = 0; i < 20000; ++i) {
    absl::StrAppend(&source, "p[", i, "] = p[", i + 1, "] * ", i, ".5f + p[", i * 7 % 1000, "];\n");
  }
  source += "}\n";
  CompileOutcome outcome = Run(Image(source, "sm_90a"));
  EXPECT_THAT(outcome.status,
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("limit is 50331648 bytes")));
  EXPECT_TRUE(outcome.out_of_memory);
  EXPECT_FALSE(outcome.verdict);
  EXPECT_EQ(outcome.attempts, 2);
  EXPECT_THAT(Run(Image(kScale, "sm_90a")).status, IsOk());
}

}  // namespace
}  // namespace fusiond::server
