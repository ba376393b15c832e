// The identity of a shared library's file: two builds of one version differ by it, so it belongs in
// every key over what that library produced.
//
// Thread-safety: thread-safe. Source: ELF-64 (System V ABI), NT_GNU_BUILD_ID of the GNU linker.
#ifndef FUSIOND_COMPILER_NVRTC_BUILD_ID_H_
#define FUSIOND_COMPILER_NVRTC_BUILD_ID_H_

#include <string>

#include "absl/status/statusor.h"

namespace fusiond::nvrtc {

// The GNU build id of the ELF file at `path` in hexadecimal, or "sha256:" and the digest of the
// whole file where it carries none. Errors: as base::ReadFile.
// Cost: reads the program headers and notes; the whole file only without a build id.
absl::StatusOr<std::string> LibraryBuildId(const std::string& path);

}  // namespace fusiond::nvrtc

#endif  // FUSIOND_COMPILER_NVRTC_BUILD_ID_H_
