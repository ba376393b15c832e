// The protocol of sessions spoken by hand: what ClientSession never sends.
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/channel/client_ring.h"
#include "runtime/channel/client_session.h"
#include "tests/channel/add_fixture.h"
#include "tests/channel/test_daemon.h"
#include "tests/support/status_matchers.h"

namespace fusiond::channel {
namespace {

using ::fusiond::testing::IsOk;
using ::fusiond::testing::StatusIs;
using ::fusiond::testing::ThreadDaemon;
using ::testing::HasSubstr;

class RawClient {
 public:
  explicit RawClient(const std::string& path)
      : socket_(*channel::Connect(path, SOCK_SEQPACKET, kPatience)) {}

  template <typename M>
  absl::Status Say(const M& message) {
    return Send(socket_.get(), message, {}, kPatience);
  }
  absl::StatusOr<ReceivedMessage> Hear() { return ReceiveMessage(socket_.get(), kPatience); }
  template <typename Reply, typename M>
  absl::StatusOr<Reply> Ask(const M& message) {
    FUSIOND_RETURN_IF_ERROR(Say(message));
    FUSIOND_ASSIGN_OR_RETURN(last, Hear());
    return DecodeReply<Reply>(last);
  }
  void OpenCpu() {
    ASSERT_THAT(Ask<HelloReply>(MakeHello()), IsOk());
    ASSERT_THAT(Ask<OpenDeviceReply>(*MakeOpenDevice("cpu")), IsOk());
  }
  void ExpectHangUp() { EXPECT_THAT(Hear().status(), StatusIs(absl::StatusCode::kUnavailable)); }
  int fd() const { return socket_.get(); }

  ReceivedMessage last;

 private:
  base::UniqueFd socket_;
};

TEST(SessionProtocolTest, F38_OtherAbiMajorIsToldBothVersions) {
  ThreadDaemon daemon;
  RawClient client(daemon.path());
  Hello hello = MakeHello();
  hello.abi_major = 99;
  EXPECT_THAT(
      client.Ask<HelloReply>(hello).status(),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr(absl::StrCat("99.", kAbiMinor))));
  client.ExpectHangUp();
}

TEST(SessionProtocolTest, F38_ClientWithoutCopyIsRefusedCopyAlone) {
  ThreadDaemon daemon;
  RawClient client(daemon.path());
  Hello hello = MakeHello();
  hello.features = 0;
  ASSERT_OK_AND_ASSIGN(HelloReply reply, client.Ask<HelloReply>(hello));
  EXPECT_EQ(reply.features, 0u);
  ASSERT_THAT(client.Ask<OpenDeviceReply>(*MakeOpenDevice("cpu")), IsOk());
  Import import = Make<Import>();
  import.bytes = 1;
  import.kind = static_cast<uint32_t>(MemoryKind::kHost);
  ASSERT_THAT(Send(client.fd(), import, {client.fd()}, kPatience), IsOk());
  ASSERT_OK_AND_ASSIGN(ReceivedMessage received, client.Hear());
  EXPECT_THAT(DecodeReply<ImportReply>(received).status(),
              StatusIs(absl::StatusCode::kUnimplemented));
}

TEST(SessionProtocolTest, MalformedOrMisplacedMessageEndsThatConnectionAlone) {
  ThreadDaemon daemon;
  AddFixture witness(daemon);
  {
    RawClient client(daemon.path());  // a request before HELLO
    ASSERT_THAT(client.Say(Make<Load>()), IsOk());
    client.ExpectHangUp();
  }
  {
    RawClient client(daemon.path());  // a worker's request to the supervisor
    ASSERT_THAT(client.Ask<HelloReply>(MakeHello()), IsOk());
    ASSERT_THAT(client.Say(Make<Load>()), IsOk());
    client.ExpectHangUp();
  }
  {
    RawClient client(daemon.path());  // a reply as a request
    client.OpenCpu();
    ASSERT_THAT(client.Say(Make<LoadReply>()), IsOk());
    client.ExpectHangUp();
  }
  {
    RawClient client(daemon.path());  // garbage
    client.OpenCpu();
    ASSERT_EQ(send(client.fd(), "garbage", 7, 0), 7);
    client.ExpectHangUp();
  }
  {
    RawClient client(daemon.path());  // a descriptor too many
    client.OpenCpu();
    ASSERT_THAT(Send(client.fd(), Make<Goodbye>(), {client.fd()}, kPatience), IsOk());
    client.ExpectHangUp();
  }
  ASSERT_THAT(witness.Launch(8), IsOk());
  EXPECT_THAT(Finish(*witness.ring), IsOk());
}

TEST(SessionProtocolTest, ClientThatNeverReadsRepliesIsDropped) {
  ThreadDaemon daemon;
  RawClient client(daemon.path());
  client.OpenCpu();
  absl::Status sent;
  while (sent.ok()) sent = client.Say(Make<Unload>());
  EXPECT_THAT(sent, StatusIs(absl::StatusCode::kUnavailable));
}

TEST(SessionProtocolTest, F32_GarbageIndicesEndThatSessionAlone) {
  ThreadDaemon daemon;
  AddFixture witness(daemon);
  for (uint32_t tail : {0u, kFirstIndex - 1, kFirstIndex + 17, kFirstIndex + 0x80000000}) {
    RawClient client(daemon.path());
    client.OpenCpu();
    OpenRing open = Make<OpenRing>();
    open.entries = 16;
    open.slab_bytes = 4096;
    ASSERT_THAT(client.Ask<OpenRingReply>(open), IsOk());
    ASSERT_OK_AND_ASSIGN(ClientRegions regions, MapRegions(client.last.fds[0].get(),
                                                           client.last.fds[1].get(), {16, 4096}));
    regions.a.control->submission_tail.value = tail;
    const uint64_t one = 1;
    ASSERT_EQ(write(client.last.fds[2].get(), &one, 8), 8);
    client.ExpectHangUp();
    ASSERT_THAT(witness.Launch(8), IsOk());
    EXPECT_THAT(Finish(*witness.ring), IsOk());
  }
}

}  // namespace
}  // namespace fusiond::channel
