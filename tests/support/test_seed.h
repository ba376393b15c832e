// TestSeed: where the random inputs of a test come from, so that a failure can be repeated.
#ifndef FUSIOND_TESTS_SUPPORT_TEST_SEED_H_
#define FUSIOND_TESTS_SUPPORT_TEST_SEED_H_

#include <cstdint>

namespace fusiond::testing {

// A fresh seed below 2³², or FUSIOND_TEST_SEED of the environment; printed.
uint64_t TestSeed();

}  // namespace fusiond::testing

#endif  // FUSIOND_TESTS_SUPPORT_TEST_SEED_H_
