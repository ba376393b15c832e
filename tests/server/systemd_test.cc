#include "server/lifecycle/systemd.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "runtime/base/file.h"
#include "tests/support/temp_folder.h"

namespace fusiond::server {
namespace {

TEST(SystemdTest, StateArrivesAsOneDatagram) {
  fusiond::testing::TempFolder folder;
  const std::string path = folder.path() + "/notify";
  base::UniqueFd receiver(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
  ASSERT_EQ(::bind(receiver.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  NotifySystemd(path, "READY=1");
  char buffer[64] = {};
  ASSERT_EQ(::recv(receiver.get(), buffer, sizeof(buffer), MSG_DONTWAIT), 7);
  EXPECT_STREQ(buffer, "READY=1");
}

TEST(SystemdTest, WithoutSystemdNothingHappens) {
  NotifySystemd("", "READY=1");
  NotifySystemd("/no/such/socket", "READY=1");
}

TEST(SystemdTest, WatchdogIsForThisProcessAlone) {
  const std::string own = std::to_string(::getpid());
  EXPECT_EQ(WatchdogPeriod("2000000", own), absl::Seconds(2));
  EXPECT_EQ(WatchdogPeriod("2000000", ""), absl::Seconds(2));
  EXPECT_EQ(WatchdogPeriod("2000000", "1"), absl::ZeroDuration());
  for (const char* none : {"", "0", "-5", "soon"})
    EXPECT_EQ(WatchdogPeriod(none, own), absl::ZeroDuration()) << none;
}

TEST(SystemdTest, SocketsForAnotherProcessAreNotTaken) {
  EXPECT_TRUE(ListeningSockets("2", "1", "control:channel").empty());
  EXPECT_TRUE(ListeningSockets("", "", "").empty());
  EXPECT_TRUE(ListeningSockets("many", std::to_string(::getpid()), "control").empty());
}

TEST(SystemdTest, OnlyTheStreamThatIsNamedIsTheJournal) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  const base::UniqueFd journal(ends[0]), elsewhere(ends[1]);
  struct stat file;
  ASSERT_EQ(::fstat(journal.get(), &file), 0);
  const std::string stream = std::to_string(file.st_dev) + ":" + std::to_string(file.st_ino);
  EXPECT_TRUE(IsJournal(stream, journal.get()));
  EXPECT_FALSE(IsJournal(stream, elsewhere.get()));
  EXPECT_FALSE(IsJournal("", journal.get()));
  EXPECT_FALSE(IsJournal(stream, -1));
}

}  // namespace
}  // namespace fusiond::server
