// What is named as NVRTC or as the driver and is no library that works.
#include <signal.h>
#include <sys/stat.h>

#include <string>

#include "tests/e2e/test_daemon.h"
#include "tests/support/status_matchers.h"

namespace fusiond {
namespace {

using ::fusiond::testing::AddGraph;
using ::fusiond::testing::DaemonProgram;
using ::fusiond::testing::IsOk;
using ::fusiond::testing::RunProgram;
using ::fusiond::testing::TestDaemon;
using ::testing::Contains;
using ::testing::HasSubstr;

// Whoever opens it waits for a writer, as would readiness, 30 s.
TEST(LibrariesTest, PipeIsRefusedUnopened) {
  TestDaemon daemon;
  const std::string pipe = daemon.folder() + "/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  daemon.Serve(
      {.arguments = {"--nvrtc", pipe, "--driver", pipe}, .environment = {}, .listen_fds = {}});
  daemon.WaitForLog("no NVRTC: NVRTC not found: " + pipe + ": is a pipe, no file");
  daemon.WaitForLog("no GPU: CUDA driver: " + pipe + ": is a pipe, no file");
  EXPECT_THAT(daemon.Connect()->Compile(AddGraph(), "cpu"), IsOk());
  EXPECT_EQ(daemon.Stop(SIGTERM), 0);
  const auto checked = RunProgram({DaemonProgram(), "--sockets", daemon.sockets(), "--memory-only",
                                   "--check-config", "--nvrtc", pipe});
  EXPECT_EQ(checked.code, 2);
  EXPECT_THAT(checked.output, HasSubstr(pipe + ": is a pipe, no file"));
}

TEST(LibrariesTest, NvrtcThatCrashesLeavesArchCpu) {
  TestDaemon daemon;
  daemon.Serve(
      {.arguments = {"--nvrtc", FUSIOND_CRASHING_LIBRARY}, .environment = {}, .listen_fds = {}});
  std::unique_ptr<client::Client> client = daemon.Connect();
  EXPECT_THAT(client->Compile(AddGraph(), "cpu"), IsOk());
  ASSERT_OK_AND_ASSIGN(const v1::StatusResponse status, client->GetStatus());
  EXPECT_THAT(status.degraded(), Contains(HasSubstr("no NVRTC: what is not cached cannot be "
                                                    "compiled for a GPU (compile process")));
  EXPECT_EQ(daemon.Stop(SIGTERM), 0);
}

}  // namespace
}  // namespace fusiond
