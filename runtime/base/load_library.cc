#include "runtime/base/load_library.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/file.h"

namespace fusiond::base {
namespace {

const char* KindOf(mode_t mode) {
  return S_ISDIR(mode)    ? "a folder"
         : S_ISFIFO(mode) ? "a pipe"
         : S_ISSOCK(mode) ? "a socket"
                          : "a device";
}

template <class T>
bool ReadAt(int fd, uint64_t offset, T& value) {
  return offset <= INT64_MAX && ::pread(fd, &value, sizeof(value), static_cast<off_t>(offset)) ==
                                    static_cast<ssize_t>(sizeof(value));
}

// How long an ELF-64 file must be for its segments; 0 for what is none, which the loader refuses.
uint64_t BytesOfSegments(int fd) {
  Elf64_Ehdr elf;
  if (!ReadAt(fd, 0, elf) || std::memcmp(elf.e_ident, ELFMAG, SELFMAG) != 0 ||
      elf.e_ident[EI_CLASS] != ELFCLASS64 || elf.e_phentsize != sizeof(Elf64_Phdr)) {
    return 0;
  }
  uint64_t bytes = 0;
  for (unsigned i = 0; i < elf.e_phnum; ++i) {
    Elf64_Phdr segment;
    if (!ReadAt(fd, elf.e_phoff + i * sizeof(segment), segment)) return 0;
    if (segment.p_type == PT_LOAD && segment.p_offset <= INT64_MAX && segment.p_filesz <= INT64_MAX)
      bytes = std::max(bytes, segment.p_offset + segment.p_filesz);
  }
  return bytes;
}

// OK for a file that is worth the loader's time.
absl::Status CheckFile(const std::string& path) {
  struct stat info;
  if (::stat(path.c_str(), &info) != 0) return absl::OkStatus();  // the loader says why
  if (!S_ISREG(info.st_mode))
    return absl::NotFoundError(absl::StrCat(path, ": is ", KindOf(info.st_mode), ", no file"));
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  const uint64_t needed = file.valid() ? BytesOfSegments(file.get()) : 0;
  const auto size = static_cast<uint64_t>(info.st_size);
  if (needed <= size) return absl::OkStatus();
  return absl::NotFoundError(
      absl::StrCat(path, ": is cut short: ", size, " bytes of at least ", needed));
}

// Why dlopen has just failed. glibc says of a file that is for another architecture that there is
// no such file (elf/dl-load.c, open_verify).
std::string LoadError(const std::string& name) {
  const char* text = ::dlerror();  // NOLINT(concurrency-mt-unsafe): per thread in glibc
  std::string reason = text == nullptr ? "unknown reason" : text;
  const bool missing =
      absl::StartsWith(reason, name + ": ") && absl::StrContains(reason, "No such file");
  if (missing && absl::StrContains(name, '/') && ::access(name.c_str(), R_OK) == 0)
    return absl::StrCat(name, ": is there, but for another architecture");
  return reason;
}

}  // namespace

absl::StatusOr<void*> LoadLibrary(const std::string& name) {
  if (absl::StrContains(name, '/')) {
    const absl::Status worth = CheckFile(name);
    if (!worth.ok()) return worth;
  }
  void* handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return absl::NotFoundError(LoadError(name));
  return handle;
}

}  // namespace fusiond::base
