#include "compiler/nvrtc/ptxas_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fusiond::nvrtc {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// NVRTC 13.0, sm_90a, --maxrregcount=16.
constexpr char kLog130[] =
    R"(ptxas warning : For profile sm_90a adjusting per thread register count of 16 to lower bound of 24
ptxas info    : Overriding maximum register limit 256 for 'k2' with  24 of maxrregcount option
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'k2' for 'sm_90a'
ptxas info    : Function properties for k2
ptxas         .     1328 bytes stack frame, 1880 bytes spill stores, 1988 bytes spill loads
ptxas info    : Used 24 registers, used 0 barriers, 1328 bytes cumulative stack size
ptxas info    : Compile time = 78.120 ms
ptxas info    : Function properties for helper
ptxas         .     16 bytes stack frame, 8 bytes spill stores, 4 bytes spill loads
ptxas info    : Compiling entry function 'k' for 'sm_90a'
ptxas info    : Function properties for k
ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 10 registers, used 1 barriers, 1024 bytes smem
ptxas info    : Compile time = 2.084 ms
)";

// The form of NVRTC 12: continuation lines are only indented, constant banks are listed.
constexpr char kLog12[] = R"(ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'k' for 'sm_80'
ptxas info    : Function properties for k
    32 bytes stack frame, 28 bytes spill stores, 24 bytes spill loads
ptxas info    : Used 255 registers, used 1 barriers, 1024 bytes smem, 360 bytes cmem[0]
)";

TEST(PtxasLogTest, EachEntryHasItsFigures) {
  EXPECT_THAT(
      ParsePtxasLog(kLog130),
      ElementsAre(EntryResources{.entry = "k2",
                                 .registers = 24,
                                 .stack_bytes = 1328,
                                 .spill_store_bytes = 1888,
                                 .spill_load_bytes = 1992},
                  EntryResources{.entry = "k", .registers = 10, .static_smem_bytes = 1024}));
}

TEST(PtxasLogTest, IndentedContinuationIsRead) {
  EXPECT_THAT(ParsePtxasLog(kLog12), ElementsAre(EntryResources{.entry = "k",
                                                                .registers = 255,
                                                                .stack_bytes = 32,
                                                                .spill_store_bytes = 28,
                                                                .spill_load_bytes = 24,
                                                                .static_smem_bytes = 1024}));
}

TEST(PtxasLogTest, ForeignTextYieldsNothing) {
  EXPECT_THAT(ParsePtxasLog(""), IsEmpty());
  EXPECT_THAT(ParsePtxasLog("x.cu(1): error: identifier \"y\" is undefined\n bytes smem"),
              IsEmpty());
  EXPECT_THAT(
      ParsePtxasLog("ptxas info : Compiling entry function 'k\nUsed registers,  bytes smem"),
      ElementsAre(EntryResources{}));
}

TEST(PtxasLogTest, TimingLinesAreDropped) {
  EXPECT_EQ(StableLog("ptxas info    : a\nptxas info    : Compile time = 78.120 ms\nb\n\n"),
            "ptxas info    : a\nb");
}

}  // namespace
}  // namespace fusiond::nvrtc
