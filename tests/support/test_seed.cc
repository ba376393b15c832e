#include "tests/support/test_seed.h"

#include <cstdio>
#include <cstdlib>
#include <random>

#include "absl/strings/numbers.h"
#include "runtime/base/check.h"

namespace fusiond::testing {

uint64_t TestSeed() {
  uint64_t seed = std::random_device()();
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody sets it
  const char* given = std::getenv("FUSIOND_TEST_SEED");
  if (given != nullptr) FUSIOND_CHECK(absl::SimpleAtoi(given, &seed));
  std::printf("FUSIOND_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed));
  return seed;
}

}  // namespace fusiond::testing
