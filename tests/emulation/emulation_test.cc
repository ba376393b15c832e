#include "tests/emulation/emulation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "compiler/device/device_text.h"
#include "tests/support/status_matchers.h"

namespace fusiond::emulation {
namespace {

TEST(EmulationTest, Adds) {
  const std::string text = device::Prelude({"math.cuh", "load_store.cuh"}) + R"(
extern "C" __global__ void __launch_bounds__(32) add(const f32* a, const f32* b, f32* c, i32 n) {
  const u32 i = fd_cta() * fd_threads() + fd_thread();
  if (i < n) c[i] = fd_add(a[i], b[i]);
}
)";
  std::vector<float> a(100), b(100);
  for (int i = 0; i < 100; i++) a[i] = i, b[i] = 2 * i;
  for (Checker checker : {Checker::kPlain, Checker::kAddress, Checker::kThread}) {
    ASSERT_OK_AND_ASSIGN(auto out, Emulate({{text,
                                             {.entry = "add",
                                              .grid_x = 4,
                                              .threads = 32,
                                              .arguments = {In(0), In(1), In(2), Value(100)}}}},
                                           {Of(a), Of(b), Poison(400)}, {.checker = checker}));
    EXPECT_EQ(As<float>(out[2])[99], 297);
  }
}

}  // namespace
}  // namespace fusiond::emulation
