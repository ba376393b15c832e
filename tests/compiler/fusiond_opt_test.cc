// fusiond-opt as a process: what its exit status says, and that a message names the way out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace fusiond::compiler {
namespace {

using ::testing::HasSubstr;

struct Ran {
  int code = -1;
  std::string output;  // and errors
};

Ran RunOpt(const std::string& arguments) {
  Ran ran;
  std::FILE* pipe = ::popen(absl::StrCat(FUSIOND_OPT, " ", arguments, " 2>&1").c_str(), "r");
  if (pipe == nullptr) return ran;
  char buffer[4096];
  for (size_t n; (n = std::fread(buffer, 1, sizeof(buffer), pipe)) > 0;)
    ran.output.append(buffer, n);
  ran.code = WEXITSTATUS(::pclose(pipe));
  return ran;
}

constexpr char kSymbolic[] = "tests/data/graphs/rms_norm_backward_manual.fir";
constexpr char kStatic[] = "tests/data/graphs/add.fir";

TEST(FusiondOptTest, KernelsOfAnOpenGraphNeedTheExtentsThatTheMessageAsksFor) {
  for (const char* emit : {"schedule", "cuda"}) {
    const Ran ran = RunOpt(absl::StrCat("--emit=", emit, " ", kSymbolic));
    EXPECT_EQ(ran.code, 2);
    EXPECT_THAT(ran.output, HasSubstr("--extents: input 0 is bf16[-1,-1]{?,1}: say its extents"));
    const Ran bound =
        RunOpt(absl::StrCat("--emit=", emit, " --extents=16x256,16x1,16x256,256 ", kSymbolic));
    EXPECT_EQ(bound.code, 0) << bound.output;
    EXPECT_THAT(bound.output, HasSubstr("row"));
  }
  EXPECT_EQ(RunOpt(kSymbolic).code, 0);  // its text needs none
}

TEST(FusiondOptTest, ExtentsOfAStaticGraphMayBeLeftOut) {
  for (const char* extents : {"", "--extents=-", "--extents=-,-", "--specialise=,-"}) {
    const Ran ran = RunOpt(absl::StrCat("--emit=schedule ", extents, " ", kStatic));
    EXPECT_EQ(ran.code, 0) << ran.output;
    EXPECT_THAT(ran.output, HasSubstr("pointwise"));
  }
}

TEST(FusiondOptTest, WrongFlagsAndFilesGive2) {
  const std::pair<const char*, const char*> cases[] = {
      {"--extents=4x", "--extents: input 0: '' is no extent"},
      {"--emit=cuda --arch=sm_1", "--arch: device profile 'sm_1' is unknown; known: a100"},
      {"--option=math=no", "option math: 'no' is none of strict, default, fast"},
      {"--passes=foo", "foo not in {explicit_types"},
      {"--disable-passes=foo", "foo not in {explicit_types"},
      {"--passes=all,fold_casts", "--passes: all stands alone"},
      {"--emit=sass", "sass not in {ir"},
      {"--no-such-flag", "--no-such-flag"},
      {"--option=math", "--option: 'math' is not NAME=VALUE"},
      {"--attempt=-1", "--attempt: Value -1 not in range 0 to 1000"},
      {"--print-after=all", "--print-after is of --passes, and none is run"},
      {"--time-passes --emit=cuda", "--time-passes is of --passes, and none is run"},
      {"--disable-passes=fold_casts",
       "--disable-passes leaves out of --passes=all, and only there"},
      {"--emit=cubin --nvrtc=/nowhere", "NVRTC not found: /nowhere"},
  };
  for (const auto& [flags, words] : cases) {
    const Ran ran = RunOpt(absl::StrCat(flags, " ", kStatic));
    EXPECT_EQ(ran.code, 2) << flags;
    EXPECT_THAT(ran.output, HasSubstr(words)) << flags;
  }
  EXPECT_EQ(RunOpt("/nowhere.fir").code, 2);
  const Ran lost = RunOpt(absl::StrCat(kStatic, " >/dev/full"));  // as stderr is, to the same place
  EXPECT_EQ(lost.code, 2);
}

TEST(FusiondOptTest, RefusedGraphGives1) {
  EXPECT_THAT(RunOpt("- </dev/null").output,
              HasSubstr("standard input: INVALID_ARGUMENT: 1:1: expected 'fir'"));
  for (const char* flags : {"--extents=4,5", "--extents=7x7x7"}) {
    const Ran ran = RunOpt(absl::StrCat(flags, " ", kStatic));
    EXPECT_EQ(ran.code, 1) << flags << "\n" << ran.output;
    EXPECT_THAT(ran.output, HasSubstr("INVALID_ARGUMENT"));
  }
}

TEST(FusiondOptTest, CpuSaysWhyItHasNoText) {
  const Ran ran = RunOpt(absl::StrCat("--emit=cuda --arch=cpu ", kStatic));
  EXPECT_EQ(ran.code, 0);
  EXPECT_THAT(ran.output, HasSubstr("arch cpu has no kernels"));
}

TEST(FusiondOptTest, InputWithoutEndEndsAtTheLimitOfAGraph) {
  const Ran file = RunOpt("/dev/zero");
  EXPECT_EQ(file.code, 1);
  EXPECT_THAT(file.output, HasSubstr("/dev/zero: more than the limit of 16777216 bytes"));
  const Ran stream = RunOpt("- < /dev/zero");
  EXPECT_EQ(stream.code, 1);
  EXPECT_THAT(stream.output, HasSubstr("IR-03: 16777217 bytes, limit 16777216"));
}

}  // namespace
}  // namespace fusiond::compiler
