// Text that must be UTF-8: protobuf's string fields and gRPC's error texts, which may quote bytes
// from anywhere.
//
// Thread-safety: pure functions. Source: RFC 3629.
#ifndef FUSIOND_RUNTIME_BASE_UTF8_H_
#define FUSIOND_RUNTIME_BASE_UTF8_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace fusiond::base {

// `text` with every byte that belongs to no valid character replaced by '?'. Longer results are cut
// before the character that passes `max_bytes`, and " …" is put behind (within max_bytes + 4).
std::string ToUtf8(absl::string_view text, size_t max_bytes = absl::string_view::npos);

}  // namespace fusiond::base

#endif  // FUSIOND_RUNTIME_BASE_UTF8_H_
