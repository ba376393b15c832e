// File descriptors that close themselves, and whole-file reads and writes.
//
// Errors: NOT_FOUND (no such file), PERMISSION_DENIED, RESOURCE_EXHAUSTED (no space, quota, no
// descriptors), FAILED_PRECONDITION (read-only file system), INTERNAL otherwise; each names the
// path and the system's reason.
#ifndef FUSIOND_RUNTIME_BASE_FILE_H_
#define FUSIOND_RUNTIME_BASE_FILE_H_

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace fusiond::base {

// Owns a descriptor; -1 when empty. Thread-compatible.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(other.release()) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    reset(other.release());
    return *this;
  }
  ~UniqueFd() { reset(); }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  void reset(int fd = -1);

 private:
  int fd_ = -1;
};

// The status for errno value `error`, with `what` (an action and its object) in front of the
// system's text. INTERNAL is left for what neither the path nor the system's state explains.
absl::Status ErrnoStatus(int error, absl::string_view what);

// Reads a whole file of at most `max_bytes`; RESOURCE_EXHAUSTED names limit and actual size beyond
// that.
absl::StatusOr<std::string> ReadFile(const std::string& path, size_t max_bytes = size_t{1} << 30);

// Writes beside `path`, syncs, renames over it and syncs the folder: readers see the old bytes or
// the new ones, also after a power cut.
absl::Status WriteFileAtomically(const std::string& path, absl::string_view data);

// write() until all of `data` is written.
absl::Status WriteAll(int fd, absl::string_view data);
// read() exactly `size` bytes; OUT_OF_RANGE when the peer closed before the first byte, DATA_LOSS
// in the middle.
absl::Status ReadExactly(int fd, char* data, size_t size);

// mkdir -p with mode 0700 for new folders.
absl::Status MakeFolders(const std::string& path);

}  // namespace fusiond::base

#endif  // FUSIOND_RUNTIME_BASE_FILE_H_
