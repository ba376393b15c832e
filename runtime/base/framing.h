// Length-prefixed messages over a stream descriptor, used between the supervisor and its child
// processes.
//
// A frame is a 4-byte little-endian length followed by that many bytes. Blocking; thread-compatible
// (one reader and one writer a descriptor).
#ifndef FUSIOND_RUNTIME_BASE_FRAMING_H_
#define FUSIOND_RUNTIME_BASE_FRAMING_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace fusiond::base {

inline constexpr uint32_t kMaxFrameBytes = 256u << 20;

// RESOURCE_EXHAUSTED when `payload` is larger than kMaxFrameBytes.
absl::Status WriteFrame(int fd, absl::string_view payload);
// OUT_OF_RANGE when the peer closed between frames, DATA_LOSS inside one, RESOURCE_EXHAUSTED for an
// announced length above `max_bytes` (nothing is read or allocated then).
absl::StatusOr<std::string> ReadFrame(int fd, uint32_t max_bytes = kMaxFrameBytes);

}  // namespace fusiond::base

#endif  // FUSIOND_RUNTIME_BASE_FRAMING_H_
