// What the daemon makes of its state folder, or of having none.
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/e2e/test_daemon.h"
#include "tests/support/status_matchers.h"

namespace fusiond {
namespace {

using ::fusiond::testing::CtlProgram;
using ::fusiond::testing::DaemonProgram;
using ::fusiond::testing::RunProgram;
using ::fusiond::testing::TestDaemon;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

// A command of its arguments by a user who has no home; root has a place of its own.
std::string Homeless() {
  return absl::StrCat("unset HOME XDG_CACHE_HOME; exec ",
                      ::geteuid() == 0 ? "setpriv --reuid=65534 --regid=65534 --clear-groups " : "",
                      "\"$@\"");
}

TEST(StateTest, NoFolderThatNobodyAskedForIsInLogAndStatus) {
  if (RunProgram({"/bin/sh", "-c", Homeless(), "sh", "test", "-x", DaemonProgram()}).code != 0)
    GTEST_SKIP() << "another user cannot run " << DaemonProgram();
  TestDaemon daemon;
  ASSERT_EQ(::chmod(daemon.folder().c_str(), 0777), 0);
  daemon.Through({"/bin/sh", "-c", Homeless(), "sh"});
  daemon.NameNoState();
  const std::string words = "cache is in memory alone: no folder is given (--state), and neither";
  daemon.Serve({.arguments = {"--service"}, .environment = {}, .listen_fds = {}});
  EXPECT_THAT(daemon.log(), HasSubstr("warning the " + words));
  const auto status = RunProgram({CtlProgram(), "--sockets", daemon.sockets(), "status"});
  EXPECT_THAT(status.output, HasSubstr("degraded    " + words));
}

TEST(StateTest, MemoryThatWasAskedForIsNothingToTell) {
  TestDaemon daemon;
  daemon.Serve({.arguments = {"--memory-only"}, .environment = {}, .listen_fds = {}});
  ASSERT_OK_AND_ASSIGN(const v1::StatusResponse status, daemon.Connect()->GetStatus());
  EXPECT_THAT(status.degraded(), Not(Contains(HasSubstr("cache"))));
}

}  // namespace
}  // namespace fusiond
