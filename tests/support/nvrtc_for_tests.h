// Where tests look for NVRTC: $FUSIOND_TEST_NVRTC if set (file or folder), else the usual places
// and build/nvrtc. Tests that need it skip with Open()'s message when there is none.
#ifndef FUSIOND_TESTS_SUPPORT_NVRTC_FOR_TESTS_H_
#define FUSIOND_TESTS_SUPPORT_NVRTC_FOR_TESTS_H_

#include <cstdlib>

#include "compiler/nvrtc/locate.h"

namespace fusiond::testing {

inline nvrtc::NvrtcLocation NvrtcLocationForTests() {
  nvrtc::NvrtcLocation location;
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody sets it
  if (const char* path = std::getenv("FUSIOND_TEST_NVRTC")) location.explicit_path = path;
  location.folders = {"build/nvrtc"};
  return location;
}

}  // namespace fusiond::testing

#endif  // FUSIOND_TESTS_SUPPORT_NVRTC_FOR_TESTS_H_
