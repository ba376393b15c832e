// The folder that one daemon keeps its state in: owned by a lock, and on a local file system.
//
// Thread-safety: thread-safe functions.
#ifndef FUSIOND_SERVER_CACHE_STATE_FOLDER_H_
#define FUSIOND_SERVER_CACHE_STATE_FOLDER_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/base/file.h"

namespace fusiond::cache {

// Name of a file system whose locks or file handles cannot be relied on (network file systems,
// FUSE, overlays), by statfs(2)'s f_type; empty for every other.
absl::string_view UnreliableFileSystemName(int64_t f_type);

// FAILED_PRECONDITION when `folder` lies on such a file system; names it, and the flag that allows
// it. Requires: the folder exists.
absl::Status CheckFileSystem(const std::string& folder);

// Takes the lock `folder`/lock for this process until the descriptor closes; the file holds our
// process id. ALREADY_EXISTS, naming the holder: another daemon owns the folder. Otherwise as
// base/file.h.
absl::StatusOr<base::UniqueFd> LockFolder(const std::string& folder);

// Whether `folder`/lock is still the file that LockFolder opened: false once somebody has removed
// or replaced it, alone or with its folder.
bool HoldsFolder(const base::UniqueFd& lock, const std::string& folder);

}  // namespace fusiond::cache

#endif  // FUSIOND_SERVER_CACHE_STATE_FOLDER_H_
