// Length-prefixed messages over a stream descriptor, used between the supervisor and its child
// processes.
//
// A frame is a 4-byte little-endian length followed by that many bytes. WriteFrame and ReadFrame
// block; EncodeFrame and FrameDecoder serve loops that may not. Thread-compatible (one reader and
// one writer a descriptor).
#ifndef FUSIOND_RUNTIME_BASE_FRAMING_H_
#define FUSIOND_RUNTIME_BASE_FRAMING_H_

#include <cstdint>
#include <optional>
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

// The bytes of one frame. RESOURCE_EXHAUSTED as WriteFrame.
absl::StatusOr<std::string> EncodeFrame(absl::string_view payload);

// Cuts a stream of bytes, fed in pieces of any size, into frames. Holds at most one unfinished
// frame and what was fed behind it; memory grows with the bytes that came, not with an announced
// length.
class FrameDecoder {
 public:
  explicit FrameDecoder(uint32_t max_bytes = kMaxFrameBytes) : max_bytes_(max_bytes) {}

  void Append(absl::string_view bytes) { buffer_.append(bytes.data(), bytes.size()); }
  // The next whole frame's payload, nullopt until there is one. RESOURCE_EXHAUSTED for an announced
  // length above the limit, from then on always.
  absl::StatusOr<std::optional<std::string>> Next();

 private:
  const uint32_t max_bytes_;
  std::string buffer_;
};

}  // namespace fusiond::base

#endif  // FUSIOND_RUNTIME_BASE_FRAMING_H_
