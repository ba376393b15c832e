#include "runtime/channel/ring.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/check.h"

namespace fusiond::channel {
namespace {

// Copies 8-byte words that the peer may be changing. Each word is read once; relaxed, because order
// is given by the acquire of the index before it, and a peer that writes afterwards anyway gets
// some mixture of its own words, which is then validated.
inline void CopyWords(const void* source, void* out, size_t words) {
  const auto* from = static_cast<const uint64_t*>(source);
  auto* to = static_cast<char*>(out);
  for (size_t i = 0; i < words; ++i) {
    const uint64_t word = __atomic_load_n(from + i, __ATOMIC_RELAXED);
    std::memcpy(to + i * sizeof(word), &word, sizeof(word));
  }
}

template <typename Entry>
void CopyEntry(const Entry& source, Entry* out) {
  CopyWords(&source, out, sizeof(Entry) / sizeof(uint64_t));
}

// Publishes `tail`, then tells whether the consumer, which sleeps under a number not yet woken, has
// to be woken.
//
// release (part of seq_cst): the entries written before are visible with the index; pairs with the
// acquire in Take. seq_cst with the load after it: pairs with AnnounceSleep, which stores the sleep
// and then loads the index. In the single total order either our load sees the sleep or its load
// sees our index.
bool PublishIndex(IndexLine* tail, uint32_t value, const SleepLine& sleep, uint64_t* last_woken) {
  tail->value.store(value, std::memory_order_seq_cst);
  const uint64_t sequence = sleep.sequence.load(std::memory_order_seq_cst);
  if ((sequence & 1) == 0 || sequence == *last_woken) return false;
  *last_woken = sequence;
  return true;
}

// Announces a sleep (Requires: awake); returns whether `tail` still shows nothing beyond `head`.
// Pairs with PublishIndex.
bool AnnounceSleep(SleepLine* sleep, uint64_t* sleeps, const IndexLine& tail, uint32_t head) {
  sleep->sequence.store(++*sleeps, std::memory_order_seq_cst);
  return tail.value.load(std::memory_order_seq_cst) == head;
}

// No effect while awake. relaxed: a peer that still sees the sleep makes one needless wake-up, no
// more.
void WithdrawSleep(SleepLine* sleep, uint64_t* sleeps) {
  if ((*sleeps & 1) == 0) return;
  sleep->sequence.store(++*sleeps, std::memory_order_relaxed);
}

}  // namespace

SubmissionProducer::SubmissionProducer(const RegionA& a, const ReadOnlyRegionB& b,
                                       const RingGeometry& geometry)
    : a_(a),
      b_(b),
      mask_(geometry.entries - 1),
      slab_bytes_(geometry.slab_bytes),
      slab_begins_(geometry.entries, 0) {}

void SubmissionProducer::ReclaimSlab() {
  // acquire: pairs with the release in PublishHead; the worker has read the arguments before we
  // write over them.
  const uint32_t head = b_.control->submission_head.value.load(std::memory_order_acquire);
  // The worker publishes the head before it answers, so an honest head is at most one ring behind.
  if (tail_ - head > mask_ + 1) return;
  slab_head_ = std::max(slab_head_, head == tail_ ? pushed_end_ : slab_begins_[head & mask_]);
}

std::optional<SubmissionProducer::Slab> SubmissionProducer::AllocateArguments(uint32_t bytes) {
  const uint64_t wanted = (uint64_t{bytes} + 7) & ~uint64_t{7};
  const uint64_t position = slab_tail_ % slab_bytes_;
  // Arguments are contiguous: what does not fit before the slab's end starts at its beginning.
  const uint64_t skip = position + wanted > slab_bytes_ ? slab_bytes_ - position : 0;
  if (slab_tail_ + skip + wanted - slab_head_ > slab_bytes_) {
    ReclaimSlab();
    if (slab_head_ == slab_tail_) slab_head_ += skip;  // nothing in use: the gap is free too
    if (slab_tail_ + skip + wanted - slab_head_ > slab_bytes_) return std::nullopt;
  }
  slab_tail_ += skip + wanted;
  const auto offset = static_cast<uint32_t>((slab_tail_ - wanted) % slab_bytes_);
  return Slab{a_.slab + offset, offset};
}

void SubmissionProducer::Push() {
  slab_begins_[tail_ & mask_] = std::exchange(pushed_end_, slab_tail_);
  ++tail_;
}

bool SubmissionProducer::Publish() {
  published_ = tail_;
  return PublishIndex(&a_.control->submission_tail, tail_, b_.control->worker_sleep, &last_woken_);
}

SubmissionConsumer::SubmissionConsumer(const RegionA& a, const RegionB& b,
                                       const RingGeometry& geometry)
    : a_(a), b_(b), mask_(geometry.entries - 1), slab_bytes_(geometry.slab_bytes) {}

absl::StatusOr<size_t> SubmissionConsumer::Take(absl::Span<SubmissionEntry> out) {
  // acquire: pairs with the store in SubmissionProducer::Publish; entries and arguments up to the
  // tail are visible.
  const uint32_t tail = a_.control->submission_tail.value.load(std::memory_order_acquire);
  const uint32_t available = tail - head_;
  if (available == 0) return size_t{0};
  const uint32_t entries = mask_ + 1;
  // head_ - reaped_ is the credit spent before; a sum of two values of at most `entries`... unless
  // the client lies, hence 64 bits.
  if (uint64_t{available} + (head_ - reaped_) > entries) {
    // acquire: pairs with the release in CompletionConsumer::Take; it has read the completions that
    // we may write over now.
    const uint32_t reaped = a_.control->completion_head.value.load(std::memory_order_acquire);
    if (reaped - reaped_ > head_ - reaped_) {
      return absl::InvalidArgumentError(absl::StrCat("ring: completion head moved by ",
                                                     reaped - reaped_, ", limit ", head_ - reaped_,
                                                     " outstanding"));
    }
    reaped_ = reaped;
    if (uint64_t{available} + (head_ - reaped_) > entries) {
      return absl::InvalidArgumentError(absl::StrCat("ring: ", available,
                                                     " entries submitted with ", head_ - reaped_,
                                                     " outstanding, limit ", entries));
    }
  }
  const size_t count = std::min<size_t>(available, out.size());
  for (size_t i = 0; i < count; ++i) CopyEntry(a_.entries[(head_ + i) & mask_], &out[i]);
  head_ += static_cast<uint32_t>(count);
  return count;
}

bool SubmissionConsumer::Ready() const {
  // relaxed: only a hint; Take acquires.
  return a_.control->submission_tail.value.load(std::memory_order_relaxed) != head_;
}

void SubmissionConsumer::CopyArguments(uint64_t offset, absl::Span<uint64_t> out) const {
  FUSIOND_CHECK(offset % 8 == 0 && offset <= slab_bytes_ &&
                out.size() <= (slab_bytes_ - offset) / 8);
  CopyWords(a_.slab + offset, out.data(), out.size());
}

void SubmissionConsumer::PublishHead() {
  if (published_head_ == head_) return;
  published_head_ = head_;
  // release: pairs with the acquire in ReclaimSlab.
  b_.control->submission_head.value.store(head_, std::memory_order_release);
}

bool SubmissionConsumer::BeginSleep() {
  return AnnounceSleep(&b_.control->worker_sleep, &sleeps_, a_.control->submission_tail, head_);
}

void SubmissionConsumer::EndSleep() { WithdrawSleep(&b_.control->worker_sleep, &sleeps_); }

CompletionProducer::CompletionProducer(const RegionA& a, const RegionB& b,
                                       const RingGeometry& geometry)
    : a_(a), b_(b), mask_(geometry.entries - 1) {}

bool CompletionProducer::Publish() {
  published_ = tail_;
  return PublishIndex(&b_.control->completion_tail, tail_, a_.control->client_sleep, &last_woken_);
}

CompletionConsumer::CompletionConsumer(const RegionA& a, const ReadOnlyRegionB& b,
                                       const RingGeometry& geometry)
    : a_(a), b_(b), mask_(geometry.entries - 1) {}

absl::StatusOr<size_t> CompletionConsumer::Take(absl::Span<CompletionEntry> out) {
  // acquire: pairs with the store in CompletionProducer::Publish.
  const uint32_t tail = b_.control->completion_tail.value.load(std::memory_order_acquire);
  const uint32_t available = tail - head_;
  if (available == 0) return size_t{0};
  if (available > mask_ + 1) {
    return absl::InternalError(
        absl::StrCat("ring: ", available, " completions, limit ", mask_ + 1));
  }
  const size_t count = std::min<size_t>(available, out.size());
  for (size_t i = 0; i < count; ++i) CopyEntry(b_.entries[(head_ + i) & mask_], &out[i]);
  head_ += static_cast<uint32_t>(count);
  // release: pairs with the acquire in SubmissionConsumer::Take; our reads are done before the
  // worker may write over the slots.
  a_.control->completion_head.value.store(head_, std::memory_order_release);
  return count;
}

bool CompletionConsumer::Ready() const {
  // relaxed: only a hint; Take acquires.
  return b_.control->completion_tail.value.load(std::memory_order_relaxed) != head_;
}

bool CompletionConsumer::BeginSleep() {
  return AnnounceSleep(&a_.control->client_sleep, &sleeps_, b_.control->completion_tail, head_);
}

void CompletionConsumer::EndSleep() { WithdrawSleep(&a_.control->client_sleep, &sleeps_); }

}  // namespace fusiond::channel
