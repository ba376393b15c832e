// Validation of submission entries: everything that can be said without knowing the session's
// objects.
//
// Thread-safety: pure function. Works on a private copy of the entry.
#ifndef FUSIOND_RUNTIME_CHANNEL_ENTRY_H_
#define FUSIOND_RUNTIME_CHANNEL_ENTRY_H_

#include <cstdint>

#include "runtime/channel/completion.h"
#include "runtime/channel/layout.h"

namespace fusiond::channel {

struct EntryLimits {
  uint32_t slab_bytes;
  uint32_t stream_slots;
  uint64_t features;  // negotiated
};

// OK, or how the entry is to be answered. After OK a LAUNCH's argument range lies inside the slab,
// 8-byte aligned, with exactly the bytes its counts call for; a COPY's ranges do not wrap.
Outcome CheckEntry(const SubmissionEntry& entry, const EntryLimits& limits);

// Whether [offset, offset + bytes) lies inside [0, limit), for any values.
inline bool InRange(uint64_t offset, uint64_t bytes, uint64_t limit) {
  return offset <= limit && bytes <= limit - offset;
}
// offset + bytes, or the largest value when that wraps.
inline uint64_t SaturatedEnd(uint64_t offset, uint64_t bytes) {
  return offset + bytes < offset ? ~uint64_t{0} : offset + bytes;
}

}  // namespace fusiond::channel

#endif  // FUSIOND_RUNTIME_CHANNEL_ENTRY_H_
