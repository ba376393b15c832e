// Anonymous shared memory (memfd) with seals, and mappings of it.
//
// Three kinds, named as the channel and the leases use them (sealing facts: memfd_create(2),
// fcntl(2) F_ADD_SEALS):
//   peer-writable   SHRINK|GROW|SEAL: the peer maps it read-write but can neither truncate nor grow
//   it. owner-writable  + FUTURE_WRITE after the owner's own mapping: everyone else can only map it
//   read-only. immutable       + WRITE: nobody writes any more.
// Pages are allocated up front (fallocate), so that a full /dev/shm shows here as
// RESOURCE_EXHAUSTED and not later as SIGBUS. Thread-safety: the functions are thread-safe, Mapping
// is thread-compatible.
#ifndef FUSIOND_RUNTIME_BASE_MEMFD_H_
#define FUSIOND_RUNTIME_BASE_MEMFD_H_

#include <cstddef>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/base/file.h"

namespace fusiond::base {

// Owns an mmap of a descriptor's first `size` bytes (MAP_SHARED); unmaps on destruction.
class Mapping {
 public:
  Mapping() = default;
  static absl::StatusOr<Mapping> Map(int fd, size_t size, bool writable);
  Mapping(Mapping&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  Mapping& operator=(Mapping&& other) noexcept;
  ~Mapping();

  char* data() const { return data_; }
  size_t size() const { return size_; }
  absl::string_view view() const { return {data_, size_}; }

 private:
  Mapping(char* data, size_t size) : data_(data), size_(size) {}
  char* data_ = nullptr;
  size_t size_ = 0;
};

struct SharedMemory {
  UniqueFd fd;
  Mapping mapping;  // the creator's own, read-write (empty for immutable memory)
};

absl::StatusOr<SharedMemory> CreatePeerWritable(const std::string& name, size_t size);
absl::StatusOr<SharedMemory> CreateOwnerWritable(const std::string& name, size_t size);
absl::StatusOr<UniqueFd> CreateImmutable(const std::string& name, absl::string_view contents);

// The seals of `fd` must include `required` (F_SEAL_* bits) and its size must be at least
// `min_size`: FAILED_PRECONDITION otherwise. A receiver calls this before it maps memory that a
// peer sent. Returns the size.
absl::StatusOr<size_t> CheckSeals(int fd, int required, size_t min_size);

}  // namespace fusiond::base

#endif  // FUSIOND_RUNTIME_BASE_MEMFD_H_
