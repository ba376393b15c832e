#include "runtime/base/utf8.h"

#include <gtest/gtest.h>

namespace fusiond::base {
namespace {

TEST(ToUtf8Test, ValidTextStays) {
  for (const char* text : {"", "plain", "ä€𝄞", "\xc2\x80", "\xed\x9f\xbf", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_EQ(ToUtf8(text), text);
  }
}

TEST(ToUtf8Test, InvalidBytesBecomeQuestionMarks) {
  EXPECT_EQ(ToUtf8("a\xff"
                   "b"),
            "a?b");
  EXPECT_EQ(ToUtf8("\x80"), "?");
  EXPECT_EQ(ToUtf8("\xc0\xaf"), "??");                        // overlong
  EXPECT_EQ(ToUtf8("\xe0\x80\x80"), "???");                   // overlong
  EXPECT_EQ(ToUtf8("\xed\xa0\x80"), "???");                   // surrogate
  EXPECT_EQ(ToUtf8("\xf4\x90\x80\x80"), "????");              // above U+10FFFF
  EXPECT_EQ(ToUtf8("\xe2\x82"), "??");                        // cut off
  EXPECT_EQ(ToUtf8("\xe2\x82z"), "??z");                      // broken off
  EXPECT_EQ(ToUtf8(absl::string_view("\0x", 2)).size(), 2u);  // a valid character, if an odd one
}

TEST(ToUtf8Test, LongTextIsCutBetweenCharacters) {
  EXPECT_EQ(ToUtf8("abcdef", 6), "abcdef");
  EXPECT_EQ(ToUtf8("abcdef", 5), "abcde …");
  EXPECT_EQ(ToUtf8("ab€", 4), "ab …");
}

}  // namespace
}  // namespace fusiond::base
