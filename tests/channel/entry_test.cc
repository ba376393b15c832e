#include "runtime/channel/entry.h"

#include <gtest/gtest.h>

#include <functional>

namespace fusiond::channel {
namespace {

constexpr EntryLimits kLimits{8192, 16, kAllFeatures};
constexpr uint64_t kMax = ~uint64_t{0};

SubmissionEntry ValidLaunch() {
  SubmissionEntry entry;
  entry.opcode = static_cast<uint16_t>(Opcode::kLaunch);
  entry.launch = {};
  entry.launch.tensors = 3;
  entry.launch.extents = 2;
  entry.launch.arguments_bytes = 64;
  entry.launch.arguments_offset = 8192 - 64;
  return entry;
}

SubmissionEntry ValidCopy() {
  SubmissionEntry entry;
  entry.opcode = static_cast<uint16_t>(Opcode::kCopy);
  entry.copy = {{0, 1}, 4096, {1, 1}, 0, 4096};
  return entry;
}

TEST(EntryTest, ValidEntriesPass) {
  EXPECT_TRUE(CheckEntry(ValidLaunch(), kLimits).ok());
  EXPECT_TRUE(CheckEntry(ValidCopy(), kLimits).ok());
  SubmissionEntry timed = ValidLaunch();
  timed.flags = kTimed;
  EXPECT_TRUE(CheckEntry(timed, kLimits).ok());
  SubmissionEntry nop;
  nop.opcode = static_cast<uint16_t>(Opcode::kNop);
  EXPECT_TRUE(CheckEntry(nop, kLimits).ok());
}

struct Case {
  const char* name;
  SubmissionEntry (*base)();
  std::function<void(SubmissionEntry*)> damage;
  CompletionReason reason;
  uint64_t limit;
  uint64_t actual;
};

TEST(EntryTest, F32_HostileEntriesAreRefusedWithLimitAndActual) {
  using R = CompletionReason;
  const Case cases[] = {
      {"zeroed entry", [] { return SubmissionEntry(); }, [](auto*) {}, R::kOpcode, 0, 0},
      {"unknown opcode", ValidLaunch, [](auto* e) { e->opcode = 4; }, R::kOpcode, 0, 4},
      {"flags", ValidLaunch, [](auto* e) { e->flags = 3; }, R::kReserved, 1, 3},
      {"stream slot", ValidLaunch, [](auto* e) { e->stream_slot = 16; }, R::kStreamSlot, 16, 16},
      {"reserved word", ValidLaunch, [](auto* e) { e->launch.reserved[1] = 9; }, R::kReserved, 0,
       9},
      {"too many tensors", ValidLaunch, [](auto* e) { e->launch.tensors = 1025; }, R::kTensorCount,
       1024, 1025},
      {"too many extents", ValidLaunch, [](auto* e) { e->launch.extents = 8193; }, R::kExtentCount,
       8192, 8193},
      {"short arguments", ValidLaunch, [](auto* e) { e->launch.arguments_bytes = 56; },
       R::kArgumentLength, 64, 56},
      {"huge arguments", ValidLaunch, [](auto* e) { e->launch.arguments_bytes = ~0u; },
       R::kArgumentLength, 64, ~0u},
      {"odd offset", ValidLaunch, [](auto* e) { e->launch.arguments_offset = 4; },
       R::kArgumentAlignment, 8, 4},
      {"one word beyond", ValidLaunch, [](auto* e) { e->launch.arguments_offset += 8; },
       R::kArgumentRange, 8192, 8200},
      {"offset near 2^64", ValidLaunch, [](auto* e) { e->launch.arguments_offset = kMax - 7; },
       R::kArgumentRange, 8192, kMax},
      {"end wraps to zero", ValidLaunch, [](auto* e) { e->launch.arguments_offset = kMax - 63; },
       R::kArgumentRange, 8192, kMax},
      {"copy source wraps", ValidCopy, [](auto* e) { e->copy.source_offset = kMax; },
       R::kBufferRange, kMax, kMax},
      {"copy destination wraps", ValidCopy,
       [](auto* e) {
         e->copy.destination_offset = 8;
         e->copy.bytes = kMax - 5000;
         e->copy.source_offset = 5001;
       },
       R::kBufferRange, kMax, kMax},
      {"nop with a body",
       [] {
         SubmissionEntry nop;
         nop.opcode = static_cast<uint16_t>(Opcode::kNop);
         return nop;
       },
       [](auto* e) { e->words[4] = 5; }, R::kReserved, 0, 5},
  };
  for (const Case& c : cases) {
    SubmissionEntry entry = c.base();
    c.damage(&entry);
    const Outcome outcome = CheckEntry(entry, kLimits);
    EXPECT_EQ(outcome.code, CompletionCode::kInvalidArgument) << c.name;
    EXPECT_EQ(outcome.reason, c.reason) << c.name;
    EXPECT_EQ(outcome.limit, c.limit) << c.name;
    EXPECT_EQ(outcome.actual, c.actual) << c.name;
  }
}

TEST(EntryTest, CopyWithoutItsFeatureIsUnimplemented) {
  const Outcome outcome = CheckEntry(ValidCopy(), {8192, 16, 0});
  EXPECT_EQ(outcome.code, CompletionCode::kUnimplemented);
  EXPECT_EQ(outcome.reason, CompletionReason::kFeatureNotNegotiated);
}

TEST(EntryTest, InRangeHoldsAtTheEdges) {
  EXPECT_TRUE(InRange(0, 0, 0));
  EXPECT_TRUE(InRange(8, 0, 8));
  EXPECT_TRUE(InRange(4, 4, 8));
  EXPECT_FALSE(InRange(5, 4, 8));
  EXPECT_FALSE(InRange(kMax, 2, 8));
  EXPECT_FALSE(InRange(2, kMax, 8));
  EXPECT_FALSE(InRange(9, 0, 8));
}

}  // namespace
}  // namespace fusiond::channel
