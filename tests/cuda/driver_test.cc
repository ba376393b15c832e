#include "runtime/cuda/driver.h"

#include "tests/cuda/fake_driver.h"
#include "tests/support/status_matchers.h"

namespace fusiond::cuda {
namespace {

using ::fusiond::testing::StatusIs;
using ::testing::HasSubstr;

TEST(DriverTest, MissingLibraryIsNotFoundAndNamed) {
  EXPECT_THAT(Driver::Open("libno-such-driver.so.1"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("libno-such-driver.so.1")));
}

TEST(DriverTest, ResultsMapToStatusCodesWithTheDriversOwnName) {
  FakeDriver fake;
  const Driver& driver = fake.driver();
  EXPECT_TRUE(driver.ToStatus(kSuccess, "x").ok());
  EXPECT_THAT(driver.ToStatus(kOutOfMemory, "alloc"),
              StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_THAT(driver.ToStatus(kIllegalAddress, "launch"),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("CUDA_ERROR_FAKE (700)")));
  EXPECT_THAT(driver.ToStatus(kNoBinaryForGpu, "load"),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(driver.ToStatus(kInvalidValue, "x"), StatusIs(absl::StatusCode::kInternal));
}

TEST(DriverTest, F42_StickyErrorsAreToldApart) {
  for (CUresult sticky : {kEccUncorrectable, kIllegalAddress, kLaunchTimeout, kAssert,
                          kHardwareStackError, kIllegalInstruction, kMisalignedAddress,
                          kInvalidAddressSpace, kInvalidPc, kLaunchFailed, kMpsClientTerminated}) {
    EXPECT_TRUE(IsContextLost(sticky)) << sticky;
  }
  for (CUresult harmless : {kSuccess, kInvalidValue, kOutOfMemory, kNotReady, kNoBinaryForGpu}) {
    EXPECT_FALSE(IsContextLost(harmless)) << harmless;
  }
}

}  // namespace
}  // namespace fusiond::cuda
