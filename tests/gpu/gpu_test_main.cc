// main of gpu_test. Without a usable GPU the whole program is one skip, with the reason: exit
// code 77. A case that an arch cannot run skips alone.
#include <gtest/gtest.h>

#include <cstdio>

#include "tests/gpu/gpu.h"

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (const auto gpu = fusiond::testing::Gpu::Open(); !gpu.ok()) {
    std::printf("skipped: %s\n", gpu.status().ToString().c_str());
    return 77;
  }
  return RUN_ALL_TESTS();
}
