#include "runtime/channel/messages.h"

#include <fcntl.h>
#include <sys/socket.h>

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
using ::testing::AllOf;
using ::testing::HasSubstr;

template <typename M>
ReceivedMessage Received(const M& message, size_t fds = 0) {
  ReceivedMessage received;
  received.size = sizeof(M);
  std::memcpy(received.bytes, &message, sizeof(M));
  for (size_t i = 0; i < fds; ++i) received.fds.emplace_back(open("/dev/null", O_RDONLY));
  return received;
}

TEST(MessagesTest, RequestSurvivesTheSocket) {
  ASSERT_OK_AND_ASSIGN(auto pair, SocketPair());
  OpenRing request = Make<OpenRing>();
  request.entries = 64;
  request.slab_bytes = 8192;
  ASSERT_THAT(Send(pair.first.get(), request, {}, absl::Seconds(5)), IsOk());
  ASSERT_OK_AND_ASSIGN(ReceivedMessage received,
                       ReceiveMessage(pair.second.get(), absl::Seconds(5)));
  EXPECT_EQ(*PeekType(received), MessageType::kOpenRing);
  ASSERT_OK_AND_ASSIGN(OpenRing decoded, DecodeRequest<OpenRing>(received));
  EXPECT_EQ(decoded.entries, 64u);
  EXPECT_EQ(decoded.slab_bytes, 8192u);
}

TEST(MessagesTest, WrongSizeTypeOrDescriptorsAreNamed) {
  ReceivedMessage received = Received(Make<Load>());
  received.size -= 1;
  EXPECT_THAT(
      DecodeRequest<Load>(received).status(),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("announces 40 bytes, has 39")));
  received.size = 3;
  EXPECT_THAT(PeekType(received).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("got 3")));
  EXPECT_THAT(DecodeRequest<Load>(Received(Make<Lease>())).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("type 3 where 9")));
  for (uint32_t type : {0u, 24u, ~0u}) {
    const MessageHeader header{type, sizeof(MessageHeader)};
    EXPECT_THAT(PeekType(Received(header)).status(),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(absl::StrCat(type))));
  }
  struct Longer {
    Load load = Make<Load>();
    uint64_t more = 0;
  } longer;
  longer.load.header.bytes = sizeof(longer);
  EXPECT_THAT(DecodeRequest<Load>(Received(longer)).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("has 40 bytes, got 48")));
}

TEST(MessagesTest, DescriptorsMustBeExactlyTheExpected) {
  const size_t before = OpenFds();
  EXPECT_THAT(DecodeRequest<Load>(Received(Make<Load>(), 1)).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("0 descriptors, got 1")));
  Import import = Make<Import>();
  import.kind = static_cast<uint32_t>(MemoryKind::kHost);
  EXPECT_THAT(DecodeRequest<Import>(Received(import, 0)).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("1 descriptors, got 0")));
  EXPECT_THAT(DecodeRequest<Import>(Received(import, 2)).status(),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(DecodeRequest<Import>(Received(import, 1)), IsOk());
  EXPECT_EQ(OpenFds(), before);
}

TEST(MessagesTest, F38_OtherMajorVersionIsRefusedNamingBoth) {
  Hello hello = MakeHello();
  hello.abi_major = kAbiMajor + 1;
  hello.abi_minor = 7;
  EXPECT_THAT(Negotiate(hello).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr(absl::StrCat(kAbiMajor + 1, ".7")),
                             HasSubstr(absl::StrCat(kAbiMajor, ".", kAbiMinor)))));
}

TEST(MessagesTest, F38_OtherMinorVersionReducesFeatures) {
  Hello hello = MakeHello();
  hello.abi_minor = 0xffff;
  hello.features = kFeatureCopy | uint64_t{1} << 63;
  ASSERT_OK_AND_ASSIGN(Negotiated negotiated, Negotiate(hello));
  EXPECT_EQ(negotiated.abi_minor, kAbiMinor);
  EXPECT_EQ(negotiated.features, kFeatureCopy);
}

TEST(MessagesTest, BadFieldsAreRefused) {
  Hello hello = MakeHello();
  hello.magic = 0;
  EXPECT_THAT(DecodeRequest<Hello>(Received(hello)).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("magic")));
  ASSERT_OK_AND_ASSIGN(OpenDevice open, MakeOpenDevice("cpu"));
  EXPECT_THAT(DecodeRequest<OpenDevice>(Received(open)), IsOk());
  std::memset(open.device, 'x', sizeof(open.device));
  EXPECT_THAT(DecodeRequest<OpenDevice>(Received(open)).status(),
              StatusIs(absl::StatusCode::kInvalidArgument));
  std::memset(open.device, 0, sizeof(open.device));
  EXPECT_FALSE(DecodeRequest<OpenDevice>(Received(open)).ok());
  Allocate allocate = Make<Allocate>();
  allocate.kind = 3;
  EXPECT_THAT(DecodeRequest<Allocate>(Received(allocate)).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("kind 3")));
  EXPECT_FALSE(MakeOpenDevice("").ok());
  EXPECT_FALSE(MakeOpenDevice(std::string(64, 'x')).ok());
  EXPECT_TRUE(MakeOpenDevice(std::string(63, 'x')).ok());
}

TEST(MessagesTest, ErrorReplyCarriesCodeAndBoundedText) {
  ASSERT_OK_AND_ASSIGN(auto pair, SocketPair());
  const std::string text(2000, 'e');
  ASSERT_THAT(SendError<AllocateReply>(pair.first.get(), absl::ResourceExhaustedError(text),
                                       absl::ZeroDuration()),
              IsOk());
  ASSERT_OK_AND_ASSIGN(ReceivedMessage received,
                       ReceiveMessage(pair.second.get(), absl::ZeroDuration()));
  EXPECT_THAT(DecodeReply<AllocateReply>(received).status(),
              StatusIs(absl::StatusCode::kResourceExhausted, std::string(511, 'e')));
}

TEST(MessagesTest, MalformedReplyIsInternal) {
  AllocateReply reply = Make<AllocateReply>();
  EXPECT_THAT(DecodeReply<AllocateReply>(Received(reply, 0)).status(),
              StatusIs(absl::StatusCode::kInternal))
      << "descriptor missing";
  EXPECT_THAT(DecodeReply<AllocateReply>(Received(reply, 1)), IsOk());
  reply.head.code = 99;
  EXPECT_THAT(DecodeReply<AllocateReply>(Received(reply, 0)).status(),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("99")));
  reply.head.code = 5;
  EXPECT_THAT(DecodeReply<AllocateReply>(Received(reply, 1)).status(),
              StatusIs(absl::StatusCode::kInternal))
      << "an error with a descriptor";
  std::memset(reply.head.text, 'x', sizeof(reply.head.text));
  EXPECT_THAT(DecodeReply<AllocateReply>(Received(reply, 0)).status(),
              StatusIs(absl::StatusCode::kInternal))
      << "text without end";
}

}  // namespace
}  // namespace fusiond::channel
