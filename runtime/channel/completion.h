// How an entry ended: the closed set of codes and reasons that a completion carries.
//
// Thread-safety: values and pure functions.
#ifndef FUSIOND_RUNTIME_CHANNEL_COMPLETION_H_
#define FUSIOND_RUNTIME_CHANNEL_COMPLETION_H_

#include <cstdint>

#include "absl/status/status.h"
#include "runtime/channel/layout.h"

namespace fusiond::channel {

// Numbers are part of the ABI: append only.
enum class CompletionCode : uint32_t {
  kOk = 0,
  kInvalidArgument = 1,
  kNotFound = 2,
  kFailedPrecondition = 3,
  kResourceExhausted = 4,
  kDeadlineExceeded = 5,
  kUnimplemented = 6,
  kInternal = 7,
  kContextLost = 8,  // the worker's context, or the worker, is gone; the work may have run
  kDraining = 9,     // not started; try again on a new session
};

// Which check failed; says what index, limit and actual mean. Append only.
enum class CompletionReason : uint32_t {
  kNone = 0,
  kOpcode = 1,                 // actual: the opcode
  kReserved = 2,               // a flag or reserved word is not zero; actual: its value
  kStreamSlot = 3,             // limit: slots; actual: slot
  kArgumentRange = 4,          // limit: slab bytes; actual: end of the arguments, saturated
  kArgumentAlignment = 5,      // limit: alignment; actual: offset
  kArgumentLength = 6,         // limit: bytes expected; actual: bytes
  kTensorCount = 7,            // limit: tensors expected or allowed; actual
  kExtentCount = 8,            // limit: extents expected or allowed; actual
  kExecutable = 9,             // unknown or stale handle; actual: slot
  kBuffer = 10,                // index: tensor (COPY: 0 source, 1 destination); actual: slot
  kBufferRange = 11,           // index; limit: buffer bytes; actual: end of the access, saturated
  kBufferAlignment = 12,       // index; limit: alignment; actual: offset
  kExtentValue = 13,           // index: extent; limit; actual
  kGuard = 14,                 // index: the guard that does not hold
  kFeatureNotNegotiated = 15,  // actual: the feature bit
  kOverlap = 16,               // index: tensor; source and destination of a COPY, or an output
  kMemory = 17,                // limit: bytes there are; actual: needed, 0 unknown; index: MiB free
  kDeadline = 18,              // limit: deadline; actual: now (both CLOCK_MONOTONIC ns)
  kDevice = 19,                // index: work of its stream before it; actual: driver's error number
  kDropped = 20,               // the device let go of the work without an answer
  kQueue = 21,                 // limit: work the device accepts at once
  kArguments = 22,             // contradict each other or the executable
};

// How the device, or a check before it, ended one entry.
struct Outcome {
  CompletionCode code = CompletionCode::kOk;
  CompletionReason reason = CompletionReason::kNone;
  uint32_t index = 0;
  uint64_t limit = 0;
  uint64_t actual = 0;
  uint64_t queue_ns = 0;
  uint64_t device_ns = 0;

  bool ok() const { return code == CompletionCode::kOk; }
};

// OK, or the status whose text names the check, index, limit and actual value. CONTEXT_LOST is
// ABORTED (not to be retried blindly: the work may have run), DRAINING is UNAVAILABLE, and both
// stand in the text. A code or reason that this build does not know gives INTERNAL.
absl::Status ToStatus(const CompletionEntry& completion);

// Writes every field of `*entry`, which may stand in shared memory.
inline void SetCompletion(uint64_t cookie, uint64_t epoch, const Outcome& outcome,
                          CompletionEntry* entry) {
  entry->cookie = cookie;
  entry->epoch = epoch;
  entry->code = static_cast<uint32_t>(outcome.code);
  entry->reason = static_cast<uint32_t>(outcome.reason);
  entry->index = outcome.index;
  entry->reserved = 0;
  entry->limit = outcome.limit;
  entry->actual = outcome.actual;
  entry->queue_ns = outcome.queue_ns;
  entry->device_ns = outcome.device_ns;
}

}  // namespace fusiond::channel

#endif  // FUSIOND_RUNTIME_CHANNEL_COMPLETION_H_
