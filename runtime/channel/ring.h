// The four ends of a ring pair: single producer, single consumer in each direction.
//
//   client: SubmissionProducer ──A──► SubmissionConsumer :worker
//   client: CompletionConsumer ◄──B── CompletionProducer :worker
//
// Credits: entries taken and not yet reaped never exceed the ring size, so a completion always has
// a place and the worker never waits for a client. The client's ends keep to it; the worker's end
// verifies it.
//
// Sleeping: a side that wants to sleep announces it (an odd number in its SleepLine), looks at the
// other side's index once more, and only then waits for its eventfd. A side that has published
// looks at the other's SleepLine afterwards. All four accesses are seq_cst, hence in one total
// order, so at least one of the two sees the other: no wake-up is lost. The ends make no system
// call: Publish returns whether the caller must write the eventfd.
//
// Thread-safety: each end is single-thread (its side's); two ends of one direction may run
// concurrently. Ownership: the region memory outlives the ends.
// Cost: no allocation after construction, no lock, no system call.
#ifndef FUSIOND_RUNTIME_CHANNEL_RING_H_
#define FUSIOND_RUNTIME_CHANNEL_RING_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/channel/layout.h"
#include "runtime/channel/region.h"

namespace fusiond::channel {

// Client: writes entries and arguments. The caller keeps credits: it pushes only while fewer than
// geometry.entries pushed entries are unanswered.
class SubmissionProducer {
 public:
  SubmissionProducer(const RegionA& a, const ReadOnlyRegionB& b, const RingGeometry& geometry);

  // Room for the next entry's arguments: contiguous, 8-byte aligned; none while the slab is full of
  // arguments that the worker has not copied yet. The pointer is valid until the entry is
  // published.
  struct Slab {
    char* data;
    uint32_t offset;
  };
  std::optional<Slab> AllocateArguments(uint32_t bytes);

  // The slot to fill next; Push() completes it, and the worker sees it after Publish(). Arguments
  // allocated since the last Push are free again once the worker has taken the entry.
  SubmissionEntry& Next() { return a_.entries[tail_ & mask_]; }
  void Push();

  // Makes pushed entries visible. Returns whether the worker must be woken.
  [[nodiscard]] bool Publish();
  bool has_unpublished() const { return tail_ != published_; }

 private:
  void ReclaimSlab();

  const RegionA a_;
  const ReadOnlyRegionB b_;
  const uint32_t mask_;
  const uint32_t slab_bytes_;
  uint32_t tail_ = kFirstIndex;
  uint32_t published_ = kFirstIndex;
  // Free-running byte counters; bytes in [slab_head_, slab_tail_) are in use.
  uint64_t slab_tail_ = 0;
  uint64_t slab_head_ = 0;
  uint64_t pushed_end_ = 0;            // slab_tail_ at the last Push
  std::vector<uint64_t> slab_begins_;  // by slot: pushed_end_ before that entry
  uint64_t last_woken_ = 0;
};

// Worker: takes entries. Everything it reads is hostile.
class SubmissionConsumer {
 public:
  SubmissionConsumer(const RegionA& a, const RegionB& b, const RingGeometry& geometry);

  // Copies at most out.size() entries, each once; returns how many. INVALID_ARGUMENT when the
  // client's indices are impossible or it has spent more credit than it has: the session must end.
  // Every entry returned must be answered by one completion.
  absl::StatusOr<size_t> Take(absl::Span<SubmissionEntry> out);

  // Whether Take would find something: one load.
  bool Ready() const;

  // Copies `out.size()` 8-byte words from the slab at byte `offset`.
  // Requires: offset is a multiple of 8 and the range lies inside the slab.
  void CopyArguments(uint64_t offset, absl::Span<uint64_t> out) const;

  // Tells the client that arguments of all entries taken are copied. Comes before the publication
  // of their completions, which the client takes as leave to reuse the slots.
  void PublishHead();

  // Announces a sleep. True: wait for the eventfd, then call EndSleep(). False: entries are there;
  // call EndSleep() and take them.
  [[nodiscard]] bool BeginSleep();
  void EndSleep();

  uint32_t slab_bytes() const { return slab_bytes_; }
  uint32_t taken() const { return head_; }

 private:
  const RegionA a_;
  const RegionB b_;
  const uint32_t mask_;
  const uint32_t slab_bytes_;
  uint32_t head_ = kFirstIndex;
  uint32_t published_head_ = kFirstIndex;
  uint32_t reaped_ = kFirstIndex;  // client's completion_head as last read
  uint64_t sleeps_ = 0;
};

// Worker: writes completions.
class CompletionProducer {
 public:
  CompletionProducer(const RegionA& a, const RegionB& b, const RingGeometry& geometry);

  // As SubmissionProducer. Requires: answers an entry that was taken and not answered yet.
  CompletionEntry& Next() { return b_.entries[tail_ & mask_]; }
  void Push() { ++tail_; }
  // As SubmissionProducer::Publish.
  [[nodiscard]] bool Publish();
  bool has_unpublished() const { return tail_ != published_; }
  uint32_t pushed() const { return tail_; }

 private:
  const RegionA a_;
  const RegionB b_;
  const uint32_t mask_;
  uint32_t tail_ = kFirstIndex;
  uint32_t published_ = kFirstIndex;
  uint64_t last_woken_ = 0;
};

// Client: takes completions.
class CompletionConsumer {
 public:
  CompletionConsumer(const RegionA& a, const ReadOnlyRegionB& b, const RingGeometry& geometry);

  // Copies at most out.size() completions and gives their credit back. INTERNAL when the worker's
  // index is impossible.
  absl::StatusOr<size_t> Take(absl::Span<CompletionEntry> out);
  bool Ready() const;

  [[nodiscard]] bool BeginSleep();
  void EndSleep();

 private:
  const RegionA a_;
  const ReadOnlyRegionB b_;
  const uint32_t mask_;
  uint32_t head_ = kFirstIndex;
  uint64_t sleeps_ = 0;
};

}  // namespace fusiond::channel

#endif  // FUSIOND_RUNTIME_CHANNEL_RING_H_
