#include "runtime/base/memfd.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/base/status_macros.h"
#include "runtime/base/status_numbers.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

namespace fusiond::base {
namespace {

constexpr int kSizeSeals = F_SEAL_SHRINK | F_SEAL_GROW;

// Without pages left: what was wanted and what the machine has.
absl::Status OutOfPages(int error, const std::string& name, size_t size) {
  const absl::Status status = ErrnoStatus(error, absl::StrCat("shared memory for ", name));
  struct sysinfo info;
  if (!absl::IsResourceExhausted(status) || ::sysinfo(&info) != 0) return status;
  return WithMemoryNeed(status, {size, uint64_t{info.totalram} * info.mem_unit,
                                 uint64_t{info.freeram} * info.mem_unit});
}

absl::StatusOr<UniqueFd> CreateMemfd(const std::string& name, size_t size) {
  // MFD_NOEXEC_SEAL needs Linux 6.3; older kernels answer EINVAL.
  UniqueFd fd(::memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL));
  if (!fd.valid() && errno == EINVAL) {
    fd.reset(::memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
  }
  if (!fd.valid()) return ErrnoStatus(errno, absl::StrCat("memfd_create ", name));
  if (::ftruncate(fd.get(), static_cast<off_t>(size)) != 0) {
    return ErrnoStatus(errno, absl::StrCat("resize ", name, " to ", size, " bytes"));
  }
  if (size > 0 && ::fallocate(fd.get(), 0, 0, static_cast<off_t>(size)) != 0) {
    return OutOfPages(errno, name, size);
  }
  return fd;
}

absl::Status Seal(int fd, int seals, const std::string& name) {
  if (::fcntl(fd, F_ADD_SEALS, seals) != 0) return ErrnoStatus(errno, absl::StrCat("seal ", name));
  return absl::OkStatus();
}

absl::StatusOr<SharedMemory> CreateWritable(const std::string& name, size_t size, int more_seals) {
  SharedMemory memory;
  FUSIOND_ASSIGN_OR_RETURN(memory.fd, CreateMemfd(name, size));
  FUSIOND_ASSIGN_OR_RETURN(memory.mapping, Mapping::Map(memory.fd.get(), size, true));
  FUSIOND_RETURN_IF_ERROR(Seal(memory.fd.get(), kSizeSeals | more_seals | F_SEAL_SEAL, name));
  return memory;
}

}  // namespace

absl::StatusOr<Mapping> Mapping::Map(int fd, size_t size, bool writable) {
  if (size == 0) return Mapping();
  void* data =
      ::mmap(nullptr, size, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, fd, 0);
  if (data == MAP_FAILED) return ErrnoStatus(errno, absl::StrCat("map ", size, " bytes"));
  return Mapping(static_cast<char*>(data), size);
}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  if (this != &other) {
    if (data_ != nullptr) ::munmap(data_, size_);
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
  }
  return *this;
}

Mapping::~Mapping() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

absl::StatusOr<SharedMemory> CreatePeerWritable(const std::string& name, size_t size) {
  return CreateWritable(name, size, 0);
}

absl::StatusOr<SharedMemory> CreateOwnerWritable(const std::string& name, size_t size) {
  return CreateWritable(name, size, F_SEAL_FUTURE_WRITE);
}

absl::StatusOr<UniqueFd> CreateImmutable(const std::string& name, absl::string_view contents) {
  FUSIOND_ASSIGN_OR_RETURN(UniqueFd fd, CreateMemfd(name, contents.size()));
  FUSIOND_RETURN_IF_ERROR(WriteAll(fd.get(), contents));
  FUSIOND_RETURN_IF_ERROR(Seal(fd.get(), kSizeSeals | F_SEAL_WRITE | F_SEAL_SEAL, name));
  return fd;
}

absl::StatusOr<size_t> CheckSeals(int fd, int required, size_t min_size) {
  int seals = ::fcntl(fd, F_GET_SEALS);
  if (seals < 0) return absl::FailedPreconditionError("shared memory: not a sealable memfd");
  if ((seals & required) != required) {
    return absl::FailedPreconditionError(
        absl::StrFormat("shared memory: seals %#x required, %#x present", required, seals));
  }
  struct stat info;
  if (::fstat(fd, &info) != 0) return ErrnoStatus(errno, "stat shared memory");
  if (static_cast<size_t>(info.st_size) < min_size) {
    return absl::FailedPreconditionError(absl::StrCat(
        "shared memory: at least ", min_size, " bytes required, ", info.st_size, " present"));
  }
  return static_cast<size_t>(info.st_size);
}

}  // namespace fusiond::base
