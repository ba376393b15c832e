#include "runtime/base/thread.h"

#include "tests/support/no_threads.h"
#include "tests/support/status_matchers.h"

namespace fusiond::base {
namespace {

using ::fusiond::testing::StatusIs;

TEST(ThreadTest, RefusalOfTheSystemIsAStatus) {
  {
    const fusiond::testing::NoThreads none;
    EXPECT_THAT(StartThread([] { FAIL(); }), StatusIs(absl::StatusCode::kResourceExhausted));
  }
  bool ran = false;
  ASSERT_OK_AND_ASSIGN(std::thread thread, StartThread([&ran] { ran = true; }));
  thread.join();
  EXPECT_TRUE(ran);
}

}  // namespace
}  // namespace fusiond::base
