#include "tests/emulation/emulation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/device/device_text.h"
#include "runtime/base/file.h"
#include "tests/support/status_matchers.h"

namespace fusiond::emulation {
namespace {

using ::fusiond::testing::IsOk;
using ::fusiond::testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::string Text(absl::string_view body) {
  return absl::StrCat(device::Prelude({"load_store.cuh", "reduce.cuh", "copy.cuh", "cluster.cuh"}),
                      "extern \"C\" __global__ void k(f32* x) {\n", body, "\n}\n");
}

// Runs a body of one CTA of 32 threads and `smem_bytes` of shared memory on eight floats.
absl::StatusOr<std::vector<std::string>> Try(absl::string_view body, const RunOptions& options = {},
                                             uint64_t smem_bytes = 64) {
  Launch launch;
  launch.entry = "k";
  launch.smem_bytes = smem_bytes;
  launch.arguments = {In(0)};
  return Emulate({{Text(body), launch}}, {Of(std::vector<float>(8, 1.0f))}, options);
}

TEST(EmulationTest, KernelWritesItsTensor) {
  ASSERT_OK_AND_ASSIGN(auto results, Try("if (fd_thread() == 3) x[3] = 5;"));
  EXPECT_THAT(As<float>(results[0]), ElementsAre(1, 1, 1, 5, 1, 1, 1, 1));
}

TEST(EmulationTest, GridsAndArgumentsArrive) {
  const std::string text = device::Prelude({"math.cuh"}) + R"(
struct Pair { f64 first; u8 second; };
extern "C" __global__ void k(i32* out, i32 n, Pair pair) {
  const u32 cta = fd_cta_y() * fd_ctas() + fd_cta();
  out[cta * fd_threads() + fd_thread()] = n + (i32)pair.first + pair.second + (i32)cta;
}
)";
  struct Pair {
    double first;
    uint8_t second;
  };
  Launch launch;
  launch.entry = "k";
  launch.grid_x = 3;
  launch.grid_y = 2;
  launch.threads = 64;
  launch.arguments = {In(0), Value(100), Value(Pair{20, 3})};
  ASSERT_OK_AND_ASSIGN(auto results, Emulate({{text, launch}}, {Poison(6 * 64 * 4)}));
  const auto out = As<int32_t>(results[0]);
  for (int i = 0; i < 6 * 64; i++) EXPECT_EQ(out[i], 123 + i / 64);
}

TEST(EmulationTest, TextWithoutDeviceFilesIsRejected) {
  Launch launch;
  launch.entry = "k";
  EXPECT_THAT(Emulate({{"void k() {}", launch}}, {}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("device files")));
}

TEST(EmulationTest, BodyWithPtxIsRejected) {
  EXPECT_THAT(Try("asm(\"\");"), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("asm")));
}

TEST(EmulationTest, RejectedTextComesBackWithItsLine) {
  // The line is that of the whole text, as its reader sees it.
  const std::string text = Text("x = nowhere;");
  const auto line = std::count(text.begin(), text.begin() + text.find("x = nowhere"), '\n') + 1;
  EXPECT_THAT(Try("x = nowhere;"), StatusIs(absl::StatusCode::kInvalidArgument,
                                            HasSubstr(absl::StrCat("kernel.cu:", line))));
}

TEST(EmulationTest, HelpersOfNewerArchsAreAbsent) {
  EXPECT_THAT(Try("fd_cluster_sync();", {.arch = "sm_89"}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("fd_cluster_sync")));
  EXPECT_THAT(Try("fd_cluster_sync();", {.arch = "sm_120a"}), IsOk());
}

TEST(EmulationTest, DeadlockNamesWhoWaitsWhere) {
  EXPECT_THAT(
      Try("if (fd_lane() < 8) {\nfd_sync_named(1, 32);\n} else {\nfd_sync();\n}"),
      StatusIs(absl::StatusCode::kAborted,
               AllOf(HasSubstr("deadlock"), HasSubstr("8 in k: fd_sync_named at kernel.cu:"),
                     HasSubstr("24 in k: fd_sync at kernel.cu:"))));
}

TEST(EmulationTest, KernelThatNeverEndsIsStopped) {
  for (Checker checker : {Checker::kPlain, Checker::kAddress, Checker::kThread}) {
    EXPECT_THAT(Try("volatile int go = 1; while (go) {}", {.checker = checker, .seconds = 1}),
                StatusIs(absl::StatusCode::kAborted, HasSubstr("ran out of time")));
  }
}

TEST(EmulationTest, FullStackIsNamed) {
  EXPECT_THAT(Try("volatile char big[200000]; for (int i = 199999; i >= 0; i -= 64) big[i] = 1;"),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("stack of 64 KB is full")));
}

TEST(EmulationTest, WritesBeforeAndAfterATensorAreSeen) {
  EXPECT_THAT(Try("x[-1] = 0;"),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("bytes before tensor 0")));
  EXPECT_THAT(Try("x[8] = 0;"),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("bytes past the end of tensor 0")));
}

TEST(EmulationTest, TensorHasTheAlignmentPromisedAndNoMore) {
  for (uint64_t alignment : {4, 8, 16, 128}) {
    for (Checker checker : {Checker::kPlain, Checker::kAddress}) {
      Launch launch;
      launch.entry = "k";
      launch.arguments = {In(0)};
      ASSERT_OK_AND_ASSIGN(auto results, Emulate({{Text("x[0] = (f32)((u64)x % 512);"), launch}},
                                                 {Poison(12, alignment)}, {.checker = checker}));
      const auto remainder = static_cast<uint64_t>(As<float>(results[0])[0]);
      EXPECT_EQ(remainder % alignment, 0u);
      EXPECT_EQ(remainder / alignment % 2, 1u);
    }
  }
}

TEST(EmulationTest, SharedMemoryBeginsAsNan) {
  ASSERT_OK_AND_ASSIGN(auto results,
                       Try("f32* s = fd_smem<f32>(0, 4); if (fd_thread() == 0) x[0] = s[1];"));
  EXPECT_TRUE(std::isnan(As<float>(results[0])[0]));
}

TEST(EmulationTest, DifferenceBetweenInterleavingsIsAFault) {
  EXPECT_THAT(Try("x[0] = fd_thread();"),
              StatusIs(absl::StatusCode::kAborted,
                       AllOf(HasSubstr("tensor 0 differs"), HasSubstr("descending"))));
}

TEST(EmulationTest, EveryHelperHasAnEmulation) {
  ASSERT_OK_AND_ASSIGN(std::string body, base::ReadFile("tests/device/every_helper.cuh"));
  std::string text;
  for (const device::DeviceFile& file : device::DeviceFiles())
    text.append(file.text.data(), file.text.size());
  Launch launch;
  launch.entry = "every_copy";
  launch.threads = 128;
  launch.smem_bytes = 4096;
  launch.arguments = {In(0), In(1)};
  for (const char* arch : {"sm_80", "sm_90a"}) {
    EXPECT_THAT(Emulate({{text + body, launch}}, {Of(std::vector<float>(512, 1.0f)), Poison(512)},
                        {.arch = arch}),
                IsOk())
        << arch;
  }
}

// Names that a device file defines for kernels.
std::set<std::string> Definitions(absl::string_view text) {
  std::set<std::string> names;
  const std::string all(text);
  for (const char* pattern :
       {"FD [^;{(]*[ *](fd_\\w+)\\(", "\nFD[EI]_\\w+\\((fd_\\w+)", "struct [^;{]*(fd_\\w+) \\{"}) {
    const std::regex regex(pattern);
    for (std::sregex_iterator match(all.begin(), all.end(), regex), end; match != end; ++match)
      names.insert((*match)[1]);
  }
  return names;
}

TEST(TwinTest, HelpersAreThoseOfTheOriginal) {
  std::set<absl::string_view> with_twin;
  for (const Twin& twin : Twins()) {
    with_twin.insert(twin.name);
    bool found = false;
    for (const device::DeviceFile& file : device::DeviceFiles()) {
      if (file.name != twin.name) continue;
      found = true;
      EXPECT_THAT(Definitions(file.text), Not(IsEmpty())) << file.name;
      EXPECT_EQ(Definitions(file.text), Definitions(twin.text)) << file.name;
    }
    EXPECT_TRUE(found) << twin.name;
  }
  // What has no twin is compiled as it stands.
  for (const device::DeviceFile& file : device::DeviceFiles()) {
    if (with_twin.count(file.name) != 0) continue;
    EXPECT_THAT(std::string(file.text), AllOf(Not(HasSubstr("asm")), Not(HasSubstr("__shfl"))))
        << file.name;
  }
}

TEST(JobTest, RoundTripsAndRefusesTornBytes) {
  Job job;
  job.tensors = {Poison(100, 4)};
  job.chain.resize(2);
  job.chain[1].entry = "k";
  job.chain[1].dependent = true;
  job.chain[1].arguments = {In(0, 8), Value(7)};
  job.interleavings = SixInterleavings();
  const std::string bytes = Encode(job);
  Job back;
  ASSERT_TRUE(Decode(bytes, &back));
  EXPECT_EQ(Encode(back), bytes);
  EXPECT_EQ(back.chain[1].arguments[0].offset, 8u);
  for (size_t size = 0; size < bytes.size(); size++)
    EXPECT_FALSE(Decode(bytes.substr(0, size), &back)) << size;
}

}  // namespace
}  // namespace fusiond::emulation
