// The bytes that a client and its worker share: two regions a ring, their control pages and
// entries.
//
//   region A (client writes)      control page | submission entries | argument slab
//   region B (worker writes)      control page | completion entries
//
// The worker makes both. A carries seals SHRINK|GROW|SEAL; B carries FUTURE_WRITE besides, so that
// the client can map it only read-only. Everything is fixed-width, little-endian (both ends run on
// one host), addressed by offsets; there is no pointer and no lock. README.md has the byte tables.
//
// Indices are free-running 32-bit counters; `counter & (entries - 1)` is the slot. Each stands
// alone on 128 bytes, two cache lines, because processors prefetch lines in pairs.
//
// Trust: the worker never reads the header of A after it wrote it, copies every other word of A
// once before it looks at it, and keeps its own indices in private memory: what stands in B is a
// publication.
//
// Thread-safety: plain data; ring.h says who writes what. Any change bumps kAbiMajor or kAbiMinor.
#ifndef FUSIOND_RUNTIME_CHANNEL_LAYOUT_H_
#define FUSIOND_RUNTIME_CHANNEL_LAYOUT_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace fusiond::channel {

// A client of another major version is refused; of another minor version, both sides use the
// features that both have.
inline constexpr uint16_t kAbiMajor = 1;
// 1: OPEN_DEVICE's reply names the worker's process. 2: WHY_ENDED. 3: flag kTimed; before, every
// entry was timed.
inline constexpr uint16_t kAbiMinor = 3;

inline constexpr uint64_t kFeatureCopy = 1u << 0;    // opcode COPY
inline constexpr uint64_t kFeatureImport = 1u << 1;  // message IMPORT
inline constexpr uint64_t kAllFeatures = kFeatureCopy | kFeatureImport;

// Names an object of one session. Generations start at 1 and change when a slot is reused, so a
// stale handle is noticed; a zero handle is never valid. Handles mean nothing in another session.
struct Handle {
  uint32_t slot;
  uint32_t generation;
  bool operator==(const Handle&) const = default;
};

// Zero is no opcode: a hole punched into the ring reads as an error, not as work.
enum class Opcode : uint16_t { kNop = 1, kLaunch = 2, kCopy = 3 };

// Of an entry: its completion carries device_ns. Two events and a query of the driver, about 2 us
// of a GPU launch that has nothing in front of it.
inline constexpr uint16_t kTimed = 1;

inline constexpr uint32_t kMaxTensors = 1024;             // inputs + outputs of one launch
inline constexpr uint32_t kMaxExtents = 8 * kMaxTensors;  // rank 8

// In the argument slab: `tensors` of these, then `extents` 8-byte signed extents.
struct TensorArgument {
  Handle buffer;
  uint64_t offset;  // bytes
};

inline constexpr uint32_t kMaxArgumentBytes =
    kMaxTensors * sizeof(TensorArgument) + kMaxExtents * sizeof(int64_t);

struct LaunchBody {
  Handle executable;
  uint64_t arguments_offset;  // bytes from the start of the slab; multiple of 8
  uint32_t arguments_bytes;   // exactly 16 * tensors + 8 * extents
  uint16_t tensors;
  uint16_t extents;
  uint64_t reserved[2];  // zero
};

struct CopyBody {
  Handle source;
  uint64_t source_offset;
  Handle destination;
  uint64_t destination_offset;
  uint64_t bytes;
};

struct alignas(64) SubmissionEntry {
  uint16_t opcode = 0;
  uint16_t flags = 0;        // kTimed; the others are zero
  uint32_t stream_slot = 0;  // entries of one ring and slot are executed in order
  uint64_t cookie = 0;       // comes back in the completion
  uint64_t deadline_ns = 0;  // CLOCK_MONOTONIC; 0 = none
  union {
    uint64_t words[5] = {};  // zero for NOP
    LaunchBody launch;
    CopyBody copy;
  };
};

// Every entry that the worker has taken is answered by exactly one of these.
struct alignas(64) CompletionEntry {
  uint64_t cookie = 0;
  uint64_t epoch = 0;      // of the worker that answered
  uint32_t code = 0;       // CompletionCode (completion.h)
  uint32_t reason = 0;     // CompletionReason
  uint32_t index = 0;      // which tensor, extent or guard
  uint32_t reserved = 0;   // zero
  uint64_t limit = 0;      // what was allowed or expected
  uint64_t actual = 0;     // what was found
  uint64_t queue_ns = 0;   // taken by the worker until started
  uint64_t device_ns = 0;  // started until finished; 0 unless kTimed was asked for
};

// First bytes of both regions, written once by the worker before the regions are sent.
struct RegionHeader {
  uint64_t magic;  // kRegionMagicA or kRegionMagicB
  uint16_t abi_major;
  uint16_t abi_minor;
  uint32_t header_bytes;  // sizeof(RegionHeader)
  uint64_t epoch;         // random, one a worker life
  uint64_t features;      // as negotiated
  uint32_t control_bytes;
  uint32_t submission_entry_bytes;
  uint32_t completion_entry_bytes;
  uint32_t tensor_argument_bytes;
  uint32_t ring_entries;  // of both rings; a power of two
  uint32_t ring_offset;   // of the region's ring from its start
  uint32_t slab_offset;   // region A only, else 0
  uint32_t slab_bytes;    // region A only, else 0
  uint64_t region_bytes;
  uint64_t reserved[7];
};

inline constexpr uint64_t kRegionMagicA = 0x41676e6972647366;  // "fsdringA"
inline constexpr uint64_t kRegionMagicB = 0x42676e6972647366;  // "fsdringB"

// Near the end of 32 bits, so that every ring passes the overflow early in its life.
inline constexpr uint32_t kFirstIndex = 0xffffff00;

struct alignas(128) IndexLine {
  std::atomic<uint32_t> value{0};
};

// Odd while its writer sleeps or is about to; each sleep has a new number, so that the other side
// wakes it once a sleep.
struct alignas(128) SleepLine {
  std::atomic<uint64_t> sequence{0};
};

struct ClientControl {
  RegionHeader header;
  IndexLine submission_tail;  // entries published
  IndexLine completion_head;  // completions consumed: gives credit back
  SleepLine client_sleep;
};

enum class WorkerState : uint32_t { kServing = 1, kDraining = 2, kLost = 3 };

struct WorkerControl {
  RegionHeader header;
  IndexLine submission_head;  // entries taken, arguments copied: slab bytes are free again
  IndexLine completion_tail;  // completions published
  SleepLine worker_sleep;
  IndexLine state;  // WorkerState
};

inline constexpr uint32_t kControlPageBytes = 4096;

static_assert(sizeof(Handle) == 8 && std::is_trivially_copyable_v<Handle>);
static_assert(sizeof(TensorArgument) == 16 && std::is_trivially_copyable_v<TensorArgument>);
static_assert(sizeof(LaunchBody) == 40 && sizeof(CopyBody) == 40);
static_assert(sizeof(SubmissionEntry) == 64 && std::is_trivially_copyable_v<SubmissionEntry>);
static_assert(offsetof(SubmissionEntry, cookie) == 8 && offsetof(SubmissionEntry, launch) == 24);
static_assert(sizeof(CompletionEntry) == 64 && std::is_trivially_copyable_v<CompletionEntry>);
static_assert(offsetof(CompletionEntry, limit) == 32 && offsetof(CompletionEntry, device_ns) == 56);
static_assert(sizeof(RegionHeader) == 128 && std::is_trivially_copyable_v<RegionHeader>);
static_assert(offsetof(RegionHeader, epoch) == 16 && offsetof(RegionHeader, region_bytes) == 64);
static_assert(std::is_standard_layout_v<ClientControl> && std::is_standard_layout_v<WorkerControl>);
static_assert(sizeof(ClientControl) == 512 && offsetof(ClientControl, submission_tail) == 128 &&
              offsetof(ClientControl, completion_head) == 256 &&
              offsetof(ClientControl, client_sleep) == 384);
static_assert(sizeof(WorkerControl) == 640 && offsetof(WorkerControl, submission_head) == 128 &&
              offsetof(WorkerControl, completion_tail) == 256 &&
              offsetof(WorkerControl, worker_sleep) == 384 &&
              offsetof(WorkerControl, state) == 512);
static_assert(std::atomic<uint32_t>::is_always_lock_free &&
              std::atomic<uint64_t>::is_always_lock_free);

}  // namespace fusiond::channel

#endif  // FUSIOND_RUNTIME_CHANNEL_LAYOUT_H_
