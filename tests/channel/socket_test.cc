#include "runtime/channel/socket.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/channel/open_fds.h"
#include "tests/support/status_matchers.h"

namespace fusiond::channel {
namespace {

using ::fusiond::testing::IsOk;
using ::fusiond::testing::OpenFds;
using ::fusiond::testing::StatusIs;
using ::testing::HasSubstr;

class SocketTest : public ::testing::Test {
 protected:
  SocketTest() {
    char folder[] = "/tmp/fusiond-socket-test-XXXXXX";
    folder_ = mkdtemp(folder);
    path_ = folder_ + "/channel.sock";
  }
  ~SocketTest() override { std::filesystem::remove_all(folder_); }

  std::string folder_;
  std::string path_;
};

TEST_F(SocketTest, ConnectionKnowsItsPeer) {
  ASSERT_OK_AND_ASSIGN(UnixListener listener, UnixListener::Listen(path_, SOCK_SEQPACKET, 0660));
  struct stat info;
  ASSERT_EQ(stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0660u);
  EXPECT_THAT(listener.Accept().status(), StatusIs(absl::StatusCode::kUnavailable));
  ASSERT_OK_AND_ASSIGN(base::UniqueFd client, Connect(path_, SOCK_SEQPACKET, absl::Seconds(5)));
  ASSERT_OK_AND_ASSIGN(AcceptedConnection accepted, listener.Accept());
  EXPECT_EQ(accepted.peer.uid, getuid());
  EXPECT_EQ(accepted.peer.pid, getpid());
  EXPECT_FALSE(HasHungUp(accepted.fd.get()));
  client.reset();
  EXPECT_TRUE(HasHungUp(accepted.fd.get()));
}

TEST_F(SocketTest, F52_StaleSocketIsReused) {
  {
    // A daemon that was killed: its socket file stays, nobody listens, its lock is free.
    base::UniqueFd dead(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, path_.c_str());
    ASSERT_EQ(bind(dead.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  }
  ASSERT_TRUE(std::filesystem::exists(path_));
  ASSERT_OK_AND_ASSIGN(UnixListener listener, UnixListener::Listen(path_, SOCK_SEQPACKET, 0600));
  EXPECT_THAT(Connect(path_, SOCK_SEQPACKET, absl::Seconds(5)), IsOk());
}

TEST_F(SocketTest, F52_LiveSocketIsNeverStolen) {
  ASSERT_OK_AND_ASSIGN(UnixListener first, UnixListener::Listen(path_, SOCK_STREAM, 0600));
  EXPECT_THAT(UnixListener::Listen(path_, SOCK_STREAM, 0600).status(),
              StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr(path_)));
  EXPECT_THAT(Connect(path_, SOCK_STREAM, absl::Seconds(5)), IsOk());
}

TEST_F(SocketTest, F52_LiveSocketOfAProgramWithoutTheLockIsNeverStolen) {
  base::UniqueFd other(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strcpy(address.sun_path, path_.c_str());
  ASSERT_EQ(bind(other.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  ASSERT_EQ(listen(other.get(), 1), 0);
  for (int type : {SOCK_STREAM, SOCK_SEQPACKET}) {
    EXPECT_THAT(UnixListener::Listen(path_, type, 0600).status(),
                StatusIs(absl::StatusCode::kAlreadyExists));
  }
  EXPECT_TRUE(std::filesystem::exists(path_));
}

TEST_F(SocketTest, EndOfListenerFreesThePath) {
  {
    ASSERT_OK_AND_ASSIGN(UnixListener listener, UnixListener::Listen(path_, SOCK_STREAM, 0600));
    UnixListener moved = std::move(listener);
    EXPECT_TRUE(std::filesystem::exists(path_));
  }
  EXPECT_FALSE(std::filesystem::exists(path_));
  EXPECT_THAT(Connect(path_, SOCK_STREAM, absl::Seconds(5)).status(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("nobody listens")));
  EXPECT_THAT(UnixListener::Listen(path_, SOCK_STREAM, 0600), IsOk());
}

TEST_F(SocketTest, RemovedSocketOrFolderIsNoticedAndMadeAnew) {
  ASSERT_EQ(chmod(folder_.c_str(), 0711), 0);
  ASSERT_OK_AND_ASSIGN(UnixListener listener, UnixListener::Listen(path_, SOCK_STREAM, 0660));
  EXPECT_TRUE(listener.InPlace());
  ASSERT_OK_AND_ASSIGN(base::UniqueFd client, Connect(path_, SOCK_STREAM, absl::Seconds(5)));
  ASSERT_OK_AND_ASSIGN(AcceptedConnection accepted, listener.Accept());
  for (const std::string& gone : {path_, path_ + ".lock", folder_}) {
    std::filesystem::remove_all(gone);
    EXPECT_FALSE(listener.InPlace()) << gone;
    ASSERT_THAT(listener.Rebind(), IsOk()) << gone;
    EXPECT_TRUE(listener.InPlace());
    ASSERT_THAT(Connect(path_, SOCK_STREAM, absl::Seconds(5)), IsOk());
    EXPECT_THAT(listener.Accept(), IsOk());
    EXPECT_THAT(UnixListener::Listen(path_, SOCK_STREAM, 0600).status(),
                StatusIs(absl::StatusCode::kAlreadyExists));
  }
  EXPECT_FALSE(HasHungUp(accepted.fd.get()));
  struct stat info;
  ASSERT_EQ(stat(folder_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0711u);
  ASSERT_EQ(stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0660u);
}

TEST_F(SocketTest, PathThatAnotherHasTakenIsLeftToIt) {
  ASSERT_OK_AND_ASSIGN(UnixListener first, UnixListener::Listen(path_, SOCK_STREAM, 0600));
  std::filesystem::remove_all(folder_);
  std::filesystem::create_directory(folder_);
  ASSERT_OK_AND_ASSIGN(UnixListener second, UnixListener::Listen(path_, SOCK_STREAM, 0600));
  EXPECT_FALSE(first.InPlace());
  EXPECT_THAT(first.Rebind(), StatusIs(absl::StatusCode::kAlreadyExists));
  { UnixListener gone = std::move(first); }
  EXPECT_TRUE(second.InPlace());
}

TEST_F(SocketTest, OtherFilesAndLongPathsAreRefused) {
  base::UniqueFd file(open(path_.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  EXPECT_THAT(UnixListener::Listen(path_, SOCK_STREAM, 0600).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("no socket")));
  EXPECT_TRUE(std::filesystem::is_regular_file(path_));
  EXPECT_THAT(UnixListener::Listen(folder_ + std::string(200, 'x'), SOCK_STREAM, 0600).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("limit is 107")));
}

TEST_F(SocketTest, AdoptedListenerIsMissedButNotMadeAnew) {
  base::UniqueFd other(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strcpy(address.sun_path, path_.c_str());
  ASSERT_EQ(bind(other.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  ASSERT_EQ(listen(other.get(), 1), 0);
  ASSERT_OK_AND_ASSIGN(UnixListener listener, UnixListener::Adopt(std::move(other)));
  EXPECT_EQ(listener.path(), path_);
  EXPECT_TRUE(listener.InPlace());
  std::filesystem::remove(path_);
  EXPECT_FALSE(listener.InPlace());
  EXPECT_THAT(listener.Rebind(), StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(SocketTest, AdoptedListenerAccepts) {
  ASSERT_OK_AND_ASSIGN(UnixListener owner, UnixListener::Listen(path_, SOCK_STREAM, 0600));
  ASSERT_OK_AND_ASSIGN(UnixListener adopted,
                       UnixListener::Adopt(base::UniqueFd(fcntl(owner.fd(), F_DUPFD_CLOEXEC, 0))));
  ASSERT_OK_AND_ASSIGN(base::UniqueFd client, Connect(path_, SOCK_STREAM, absl::Seconds(5)));
  EXPECT_THAT(adopted.Accept(), IsOk());
  EXPECT_THAT(UnixListener::Adopt(std::move(client)).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(SocketTest, F25_AcceptWithoutDescriptorsShedsTheConnection) {
  ASSERT_OK_AND_ASSIGN(UnixListener listener, UnixListener::Listen(path_, SOCK_STREAM, 0600));
  ASSERT_OK_AND_ASSIGN(base::UniqueFd client, Connect(path_, SOCK_STREAM, absl::Seconds(5)));
  rlimit saved;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &saved), 0);
  std::vector<base::UniqueFd> fill;
  const rlimit low{64, saved.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  while (true) {
    base::UniqueFd fd(open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (!fd.valid()) break;
    fill.push_back(std::move(fd));
  }
  EXPECT_THAT(listener.Accept().status(), StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_TRUE(HasHungUp(client.get()));
  pollfd waiting{listener.fd(), POLLIN, 0};
  EXPECT_EQ(poll(&waiting, 1, 0), 0) << "nothing left to spin on";
  fill.clear();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &saved), 0);
  ASSERT_OK_AND_ASSIGN(client, Connect(path_, SOCK_STREAM, absl::Seconds(5)));
  EXPECT_THAT(listener.Accept(), IsOk());
}

TEST_F(SocketTest, OversizeMessageIsRefused) {
  ASSERT_OK_AND_ASSIGN(auto pair, SocketPair());
  const std::string big(kMaxMessageBytes + 1, 'x');
  ASSERT_EQ(send(pair.first.get(), big.data(), big.size(), 0), static_cast<ssize_t>(big.size()));
  EXPECT_THAT(ReceiveMessage(pair.second.get(), absl::ZeroDuration()).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("limit of 1024")));
  EXPECT_THAT(SendMessage(pair.first.get(), big, {}, absl::ZeroDuration()),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

// Sends `count` copies of one descriptor, past our own limit.
void SendFds(int socket, size_t count) {
  std::vector<char> control(CMSG_SPACE(sizeof(int) * count));
  char byte = 'x';
  iovec part{&byte, 1};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int) * count);
  std::vector<int> fds(count, socket);
  std::memcpy(CMSG_DATA(header), fds.data(), sizeof(int) * count);
  ASSERT_EQ(sendmsg(socket, &message, 0), 1);
}

TEST_F(SocketTest, ExtraDescriptorsAreClosed) {
  ASSERT_OK_AND_ASSIGN(auto pair, SocketPair());
  const size_t before = OpenFds();
  SendFds(pair.first.get(), kMaxMessageFds + 3);
  EXPECT_THAT(ReceiveMessage(pair.second.get(), absl::ZeroDuration()).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("descriptors")));
  EXPECT_EQ(OpenFds(), before);
  SendFds(pair.first.get(), kMaxMessageFds);
  {
    ASSERT_OK_AND_ASSIGN(ReceivedMessage received,
                         ReceiveMessage(pair.second.get(), absl::ZeroDuration()));
    EXPECT_EQ(received.fds.size(), kMaxMessageFds);
    EXPECT_EQ(fcntl(received.fds[0].get(), F_GETFD), FD_CLOEXEC);
  }
  EXPECT_EQ(OpenFds(), before);
}

TEST_F(SocketTest, HangUpEmptyPacketAndSilenceAreToldApart) {
  ASSERT_OK_AND_ASSIGN(auto pair, SocketPair());
  EXPECT_THAT(ReceiveMessage(pair.second.get(), absl::Milliseconds(1)).status(),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
  ASSERT_EQ(send(pair.first.get(), "", 0, 0), 0);
  EXPECT_THAT(ReceiveMessage(pair.second.get(), absl::ZeroDuration()).status(),
              StatusIs(absl::StatusCode::kUnavailable));
  pair.first.reset();
  EXPECT_THAT(ReceiveMessage(pair.second.get(), absl::InfiniteDuration()).status(),
              StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(SendMessage(pair.second.get(), "x", {}, absl::InfiniteDuration()),
              StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(SocketTest, PeerThatDoesNotReadTimesOut) {
  ASSERT_OK_AND_ASSIGN(auto pair, SocketPair());
  const std::string message(kMaxMessageBytes, 'x');
  absl::Status status;
  for (int i = 0; status.ok() && i < 100000; ++i) {
    status = SendMessage(pair.first.get(), message, {}, absl::ZeroDuration());
  }
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kDeadlineExceeded));
}

}  // namespace
}  // namespace fusiond::channel
