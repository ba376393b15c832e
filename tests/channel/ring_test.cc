#include "runtime/channel/ring.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <deque>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "runtime/base/file.h"
#include "runtime/channel/entry.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_seed.h"

namespace fusiond::channel {
namespace {

using ::fusiond::testing::IsOk;
using ::fusiond::testing::StatusIs;
using ::testing::HasSubstr;

// Both regions on the heap, exactly as large as they are in shared memory, so that AddressSanitizer
// sees a step outside and ThreadSanitizer both ends of the protocol.
class Memory {
 public:
  explicit Memory(const RingGeometry& geometry)
      : memory_a_(static_cast<char*>(aligned_alloc(128, RegionABytes(geometry)))),
        memory_b_(static_cast<char*>(aligned_alloc(128, RegionBBytes(geometry)))) {
    std::memset(memory_a_.get(), 0, RegionABytes(geometry));
    std::memset(memory_b_.get(), 0, RegionBBytes(geometry));
    a = FormatRegionA(memory_a_.get(), geometry, 1, kAllFeatures);
    b = FormatRegionB(memory_b_.get(), geometry, 1, kAllFeatures);
  }
  ReadOnlyRegionB read_only_b() const { return {b.control, b.entries}; }

  RegionA a;
  RegionB b;

 private:
  struct Free {
    void operator()(char* p) const { std::free(p); }
  };
  std::unique_ptr<char, Free> memory_a_;
  std::unique_ptr<char, Free> memory_b_;
};

struct Ends {
  explicit Ends(const RingGeometry& geometry)
      : memory(geometry),
        submit(memory.a, memory.read_only_b(), geometry),
        take(memory.a, memory.b, geometry),
        answer(memory.a, memory.b, geometry),
        reap(memory.a, memory.read_only_b(), geometry) {}

  Memory memory;
  SubmissionProducer submit;
  SubmissionConsumer take;
  CompletionProducer answer;
  CompletionConsumer reap;
};

SubmissionEntry Nop(uint64_t cookie) {
  SubmissionEntry entry;
  entry.opcode = static_cast<uint16_t>(Opcode::kNop);
  entry.cookie = cookie;
  return entry;
}

CompletionEntry Done(uint64_t cookie) {
  CompletionEntry entry;
  SetCompletion(cookie, 1, Outcome(), &entry);
  return entry;
}

template <typename Producer, typename Entry>
void Push(Producer& producer, const Entry& entry) {
  producer.Next() = entry;
  producer.Push();
}

TEST(RingTest, IndexOverflowKeepsOrderAndContents) {
  Ends ends({4, 4096});
  ASSERT_GT(1000u, 0u - kFirstIndex) << "the loop must pass 2^32";
  for (uint64_t i = 0; i < 1000; i += 3) {
    for (uint64_t j = i; j < i + 3; ++j) Push(ends.submit, Nop(j));
    EXPECT_FALSE(ends.submit.Publish()) << "nobody sleeps";
    SubmissionEntry taken[4];
    ASSERT_OK_AND_ASSIGN(size_t count, ends.take.Take(taken));
    ASSERT_EQ(count, 3u);
    for (uint64_t j = 0; j < 3; ++j) {
      EXPECT_EQ(taken[j].cookie, i + j);
      Push(ends.answer, Done(i + j));
    }
    EXPECT_FALSE(ends.answer.Publish());
    CompletionEntry reaped[4];
    ASSERT_OK_AND_ASSIGN(count, ends.reap.Take(reaped));
    ASSERT_EQ(count, 3u);
    for (uint64_t j = 0; j < 3; ++j) EXPECT_EQ(reaped[j].cookie, i + j);
  }
}

TEST(RingTest, TakeStopsAtTheCallersBatch) {
  Ends ends({8, 4096});
  for (uint64_t i = 0; i < 8; ++i) Push(ends.submit, Nop(i));
  ASSERT_FALSE(ends.submit.Publish());
  SubmissionEntry taken[3];
  for (size_t expected : {3, 3, 2, 0}) {
    ASSERT_OK_AND_ASSIGN(size_t count, ends.take.Take(taken));
    EXPECT_EQ(count, expected);
  }
}

TEST(RingTest, EntriesAreInvisibleBeforePublish) {
  Ends ends({4, 4096});
  Push(ends.submit, Nop(7));
  SubmissionEntry taken[1];
  ASSERT_OK_AND_ASSIGN(size_t count, ends.take.Take(taken));
  EXPECT_EQ(count, 0u);
}

TEST(RingTest, F30_UnreapedCompletionsKeepTheirCredit) {
  Ends ends({4, 4096});
  SubmissionEntry taken[4];
  for (uint64_t i = 0; i < 4; ++i) Push(ends.submit, Nop(i));
  ASSERT_FALSE(ends.submit.Publish());
  ASSERT_THAT(ends.take.Take(taken), IsOk());
  for (uint64_t i = 0; i < 4; ++i) Push(ends.answer, Done(i));
  ASSERT_FALSE(ends.answer.Publish());
  // A fifth without reaping is a violation; after reaping one it would have been none.
  Push(ends.submit, Nop(4));
  ASSERT_FALSE(ends.submit.Publish());
  EXPECT_THAT(ends.take.Take(taken),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("limit 4")));
  CompletionEntry reaped[1];
  ASSERT_THAT(ends.reap.Take(reaped), IsOk());
  ASSERT_OK_AND_ASSIGN(size_t count, ends.take.Take(taken));
  EXPECT_EQ(count, 1u);
}

TEST(RingTest, F32_ImpossibleIndicesEndTheSession) {
  for (uint32_t tail : {kFirstIndex - 1, kFirstIndex + 5, kFirstIndex + 0x80000000, 0x1234u}) {
    Ends ends({4, 4096});
    ends.memory.a.control->submission_tail.value = tail;
    SubmissionEntry taken[4];
    EXPECT_THAT(ends.take.Take(taken), StatusIs(absl::StatusCode::kInvalidArgument)) << tail;
  }
  for (uint32_t head : {kFirstIndex - 1, kFirstIndex + 5, kFirstIndex + 0x80000000}) {
    Ends ends({4, 4096});
    for (uint64_t i = 0; i < 4; ++i) Push(ends.submit, Nop(i));
    ASSERT_FALSE(ends.submit.Publish());
    SubmissionEntry taken[4];
    ASSERT_THAT(ends.take.Take(taken), IsOk());
    ends.memory.a.control->completion_head.value = head;
    ends.memory.a.control->submission_tail.value = kFirstIndex + 5;
    EXPECT_THAT(ends.take.Take(taken),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("completion head")))
        << head;
  }
}

TEST(RingTest, ClientRefusesImpossibleCompletionIndex) {
  Ends ends({4, 4096});
  ends.memory.b.control->completion_tail.value = kFirstIndex + 5;
  CompletionEntry reaped[4];
  EXPECT_THAT(ends.reap.Take(reaped), StatusIs(absl::StatusCode::kInternal));
}

TEST(RingTest, SleeperIsWokenOncePerSleep) {
  Ends ends({8, 4096});
  SubmissionEntry taken[8];
  for (int round = 0; round < 3; ++round) {
    EXPECT_TRUE(ends.take.BeginSleep());
    Push(ends.submit, Nop(0));
    EXPECT_TRUE(ends.submit.Publish());
    Push(ends.submit, Nop(1));
    EXPECT_FALSE(ends.submit.Publish()) << "already woken";
    ends.take.EndSleep();
    ends.take.EndSleep();  // no effect
    ASSERT_THAT(ends.take.Take(taken), IsOk());
    Push(ends.answer, Done(0));
    Push(ends.answer, Done(1));
    ASSERT_FALSE(ends.answer.Publish());
    CompletionEntry reaped[2];
    ASSERT_THAT(ends.reap.Take(reaped), IsOk());
  }
  Push(ends.submit, Nop(2));
  EXPECT_FALSE(ends.submit.Publish()) << "awake";
  EXPECT_FALSE(ends.take.BeginSleep()) << "an entry is there";
  ends.take.EndSleep();
}

TEST(RingTest, SlabGapAtItsEndIsUsableWhenNothingIsInUse) {
  Ends ends({4, 4096});
  SubmissionEntry taken[4];
  for (uint32_t bytes : {2048u, 3000u, 4096u, 8u, 4096u}) {
    auto slab = ends.submit.AllocateArguments(bytes);
    ASSERT_TRUE(slab.has_value()) << bytes;
    EXPECT_LE(slab->offset + bytes, 4096u);
    Push(ends.submit, Nop(bytes));
    ASSERT_FALSE(ends.submit.Publish());
    ASSERT_THAT(ends.take.Take(taken), IsOk());
    ends.take.PublishHead();
    Push(ends.answer, Done(bytes));
    ASSERT_FALSE(ends.answer.Publish());
    CompletionEntry reaped[4];
    ASSERT_THAT(ends.reap.Take(reaped), IsOk());
  }
  EXPECT_FALSE(ends.submit.AllocateArguments(4104).has_value()) << "larger than the slab";
}

// Random pushes, takes and reaps against a model: live arguments never overlap, and the slab never
// refuses for good.
TEST(RingTest, RandomSlabUseNeverOverwritesLiveArguments) {
  std::mt19937 random(::fusiond::testing::TestSeed());
  Ends ends({8, 4096});
  struct Live {
    uint32_t offset, bytes;
    uint64_t value;
  };
  std::deque<Live> live;  // pushed, not taken
  uint32_t unanswered = 0, unreaped = 0;
  uint64_t pushed = 0;
  for (int step = 0; step < 20000; ++step) {
    switch (random() % 3) {
      case 0: {
        if (unanswered + unreaped == 8) break;
        const uint32_t bytes = 8 * (random() % 100);
        const uint64_t value = ++pushed;
        uint32_t offset = 0;
        if (bytes > 0) {
          auto slab = ends.submit.AllocateArguments(bytes);
          if (!slab.has_value()) {
            ASSERT_FALSE(live.empty()) << "an empty slab refused " << bytes << " bytes";
            break;
          }
          offset = slab->offset;
          for (uint32_t i = 0; i < bytes; i += 8) std::memcpy(slab->data + i, &value, 8);
        }
        Push(ends.submit, Nop(value));
        ASSERT_FALSE(ends.submit.Publish());
        live.push_back({offset, bytes, value});
        ++unanswered;
        break;
      }
      case 1: {
        SubmissionEntry taken[3];
        ASSERT_OK_AND_ASSIGN(size_t count, ends.take.Take(taken));
        for (size_t i = 0; i < count; ++i) {
          const Live expected = live.front();
          live.pop_front();
          ASSERT_EQ(taken[i].cookie, expected.value);
          std::vector<uint64_t> words(expected.bytes / 8);
          ends.take.CopyArguments(expected.offset, absl::MakeSpan(words));
          for (uint64_t word : words) ASSERT_EQ(word, expected.value);
          Push(ends.answer, Done(expected.value));
          --unanswered;
          ++unreaped;
        }
        ends.take.PublishHead();
        ASSERT_FALSE(ends.answer.Publish());
        break;
      }
      case 2: {
        CompletionEntry reaped[5];
        ASSERT_OK_AND_ASSIGN(size_t count, ends.reap.Take(reaped));
        unreaped -= count;
        break;
      }
    }
  }
}

void Wake(int fd) {
  const uint64_t one = 1;
  ASSERT_EQ(write(fd, &one, sizeof(one)), 8);
}

void WaitAndClear(int fd) {
  pollfd poll_fd{fd, POLLIN, 0};
  poll(&poll_fd, 1, -1);
  uint64_t count;
  ASSERT_EQ(read(fd, &count, sizeof(count)), 8);
}

// Both sides sleep whenever they find nothing. A lost wake-up would hang the test.
TEST(RingTest, SleepingBothSidesLosesNoWakeup) {
  constexpr uint64_t kTotal = 100000;
  Ends ends({16, 4096});
  base::UniqueFd wake_worker(eventfd(0, EFD_CLOEXEC)), wake_client(eventfd(0, EFD_CLOEXEC));
  std::thread worker([&] {
    uint64_t expected = 0;
    while (expected < kTotal) {
      SubmissionEntry taken[5];
      auto count = ends.take.Take(taken);
      ASSERT_THAT(count, IsOk());
      if (*count == 0) {
        if (ends.take.BeginSleep()) WaitAndClear(wake_worker.get());
        ends.take.EndSleep();
        continue;
      }
      for (size_t i = 0; i < *count; ++i) {
        ASSERT_EQ(taken[i].cookie, expected);
        Push(ends.answer, Done(expected++));
      }
      ends.take.PublishHead();
      if (ends.answer.Publish()) Wake(wake_client.get());
    }
  });
  uint64_t submitted = 0, reaped = 0;
  while (reaped < kTotal) {
    while (submitted < kTotal && submitted - reaped < 16) {
      Push(ends.submit, Nop(submitted++));
      if (ends.submit.Publish()) Wake(wake_worker.get());
    }
    CompletionEntry out[7];
    auto count = ends.reap.Take(out);
    ASSERT_THAT(count, IsOk());
    if (*count == 0) {
      if (ends.reap.BeginSleep()) WaitAndClear(wake_client.get());
      ends.reap.EndSleep();
    }
    for (size_t i = 0; i < *count; ++i) ASSERT_EQ(out[i].cookie, reaped++);
  }
  worker.join();
}

// The client rewrites a published entry all the time, between a valid launch and one whose
// arguments lie outside the slab. What is judged must be what is used.
TEST(RingTest, F33_RewrittenEntryIsJudgedAndUsedAsOneCopy) {
  constexpr RingGeometry kGeometry{2, 4096};
  Memory memory(kGeometry);
  SubmissionEntry good;
  good.opcode = static_cast<uint16_t>(Opcode::kLaunch);
  good.launch = {};
  good.launch.tensors = 2;
  good.launch.arguments_bytes = 32;
  good.launch.arguments_offset = 4096 - 32;
  SubmissionEntry bad = good;
  bad.launch.arguments_offset = ~uint64_t{0} - 31;
  bad.launch.tensors = 1000;
  std::atomic<bool> stop{false};
  std::thread client([&] {
    for (bool flip = false; !stop; flip = !flip) {
      const SubmissionEntry& entry = flip ? bad : good;
      for (SubmissionEntry* slot : {&memory.a.entries[0], &memory.a.entries[1]}) {
        uint64_t words[8];
        std::memcpy(words, &entry, sizeof(words));
        for (int i = 0; i < 8; ++i) {
          __atomic_store_n(reinterpret_cast<uint64_t*>(slot) + i, words[i], __ATOMIC_RELAXED);
        }
      }
    }
  });
  SubmissionConsumer consumer(memory.a, memory.b, kGeometry);
  int accepted = 0, refused = 0;
  for (uint32_t i = 1; i <= 100000; ++i) {
    memory.a.control->completion_head.value = kFirstIndex + i - 1;
    memory.a.control->submission_tail.value = kFirstIndex + i;
    SubmissionEntry taken[1];
    ASSERT_OK_AND_ASSIGN(size_t count, consumer.Take(taken));
    ASSERT_EQ(count, 1u);
    if (!CheckEntry(taken[0], {kGeometry.slab_bytes, 1, kAllFeatures}).ok()) {
      ++refused;
      continue;
    }
    ++accepted;
    std::vector<uint64_t> words(taken[0].launch.arguments_bytes / 8);
    ASSERT_EQ(words.size(), taken[0].launch.tensors * 2u);
    consumer.CopyArguments(taken[0].launch.arguments_offset, absl::MakeSpan(words));
  }
  stop = true;
  client.join();
  EXPECT_EQ(accepted + refused, 100000);
}

}  // namespace
}  // namespace fusiond::channel
