// The NVRTC identity used last, kept as a small file in the state folder.
//
// A daemon that finds no NVRTC still answers from the cache: it puts this identity into its request
// keys and so meets the entries that were compiled under it.
//
// Thread-safety: thread-safe. Errors of Remember: as base::WriteFileAtomically.
#ifndef FUSIOND_SERVER_CACHE_NVRTC_IDENTITY_H_
#define FUSIOND_SERVER_CACHE_NVRTC_IDENTITY_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace fusiond::cache {

// Nothing when there is no such file, or one that RememberNvrtcIdentity did not write.
std::optional<std::string> LastNvrtcIdentity(const std::string& state_folder);

// Writes only when the identity differs from the one kept.
absl::Status RememberNvrtcIdentity(const std::string& state_folder, absl::string_view identity);

}  // namespace fusiond::cache

#endif  // FUSIOND_SERVER_CACHE_NVRTC_IDENTITY_H_
