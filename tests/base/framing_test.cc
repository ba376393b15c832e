#include "runtime/base/framing.h"

#include <sys/socket.h>

#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "runtime/base/file.h"
#include "tests/support/status_matchers.h"

namespace fusiond::base {
namespace {

using ::fusiond::testing::IsOk;
using ::fusiond::testing::StatusIs;

class FramingTest : public ::testing::Test {
 protected:
  void SetUp() override {
    int fds[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    a_.reset(fds[0]);
    b_.reset(fds[1]);
  }
  UniqueFd a_, b_;
};

TEST_F(FramingTest, LargeAndEmptyFramesArriveWhole) {
  std::string large(3 << 20, 'x');
  std::thread writer([&] {
    EXPECT_THAT(WriteFrame(a_.get(), large), IsOk());
    EXPECT_THAT(WriteFrame(a_.get(), ""), IsOk());
  });
  ASSERT_OK_AND_ASSIGN(std::string first, ReadFrame(b_.get()));
  ASSERT_OK_AND_ASSIGN(std::string second, ReadFrame(b_.get()));
  writer.join();
  EXPECT_EQ(first, large);
  EXPECT_EQ(second, "");
}

TEST_F(FramingTest, CloseBetweenFramesIsEndOfStream) {
  a_.reset();
  EXPECT_THAT(ReadFrame(b_.get()), StatusIs(absl::StatusCode::kOutOfRange));
}

TEST_F(FramingTest, CloseInsideFrameIsDataLoss) {
  ASSERT_THAT(WriteAll(a_.get(), absl::string_view("\x08\0\0\0abc", 7)), IsOk());
  a_.reset();
  EXPECT_THAT(ReadFrame(b_.get()), StatusIs(absl::StatusCode::kDataLoss));
}

TEST_F(FramingTest, OversizeAnnouncementIsRefused) {
  ASSERT_THAT(WriteAll(a_.get(), absl::string_view("\xff\xff\xff\xff", 4)), IsOk());
  EXPECT_THAT(ReadFrame(b_.get(), 1024),
              StatusIs(absl::StatusCode::kResourceExhausted, ::testing::HasSubstr("1024")));
}

TEST(FrameDecoderTest, FramesFedByteByByteComeOutWhole) {
  ASSERT_OK_AND_ASSIGN(std::string stream, EncodeFrame("first"));
  ASSERT_OK_AND_ASSIGN(std::string empty, EncodeFrame(""));
  stream += empty + stream;
  FrameDecoder decoder;
  std::vector<std::string> frames;
  for (char byte : stream) {
    decoder.Append(absl::string_view(&byte, 1));
    ASSERT_OK_AND_ASSIGN(std::optional<std::string> frame, decoder.Next());
    if (frame.has_value()) frames.push_back(*frame);
  }
  EXPECT_EQ(frames, (std::vector<std::string>{"first", "", "first"}));
}

TEST(FrameDecoderTest, FramesFedTogetherComeOutInTurn) {
  ASSERT_OK_AND_ASSIGN(std::string a, EncodeFrame("a"));
  ASSERT_OK_AND_ASSIGN(std::string b, EncodeFrame("b"));
  FrameDecoder decoder;
  decoder.Append(a + b);
  EXPECT_EQ(*decoder.Next(), "a");
  EXPECT_EQ(*decoder.Next(), "b");
  EXPECT_EQ(*decoder.Next(), std::nullopt);
}

TEST(FrameDecoderTest, OversizeAnnouncementIsRefusedForGood) {
  FrameDecoder decoder(4);
  decoder.Append(*EncodeFrame("12345"));
  EXPECT_THAT(decoder.Next(), StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_THAT(decoder.Next(), StatusIs(absl::StatusCode::kResourceExhausted));
}

}  // namespace
}  // namespace fusiond::base
