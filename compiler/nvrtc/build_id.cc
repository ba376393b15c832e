#include "compiler/nvrtc/build_id.h"

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "runtime/base/file.h"
#include "runtime/base/sha256.h"
#include "runtime/base/status_macros.h"

namespace fusiond::nvrtc {
namespace {

constexpr size_t kMaxNoteBytes = 64 << 10;  // of one note segment; real ones hold about 100

// pread of exactly `size` bytes; false on any shortfall.
bool ReadAt(int fd, uint64_t offset, void* data, size_t size) {
  return ::pread(fd, data, size, static_cast<off_t>(offset)) == static_cast<ssize_t>(size);
}

size_t Align4(size_t n) { return (n + 3) & ~size_t{3}; }

// The build id in one note segment's bytes, or "".
std::string FindBuildId(absl::string_view notes) {
  while (notes.size() >= sizeof(Elf64_Nhdr)) {
    Elf64_Nhdr header;
    std::memcpy(&header, notes.data(), sizeof(header));
    notes.remove_prefix(sizeof(header));
    const size_t name_bytes = Align4(header.n_namesz);
    const size_t description_bytes = header.n_descsz;
    if (name_bytes > notes.size() || description_bytes > notes.size() - name_bytes) return "";
    absl::string_view name = notes.substr(0, header.n_namesz);
    if (header.n_type == NT_GNU_BUILD_ID && name == absl::string_view("GNU", 4)) {
      return absl::BytesToHexString(notes.substr(name_bytes, description_bytes));
    }
    notes.remove_prefix(std::min(notes.size(), name_bytes + Align4(description_bytes)));
  }
  return "";
}

// The build id of an open ELF-64 file, or "" (no such note, another format, cut short).
std::string ReadBuildId(int fd) {
  Elf64_Ehdr elf;
  if (!ReadAt(fd, 0, &elf, sizeof(elf)) || std::memcmp(elf.e_ident, ELFMAG, SELFMAG) != 0 ||
      elf.e_ident[EI_CLASS] != ELFCLASS64 || elf.e_phentsize != sizeof(Elf64_Phdr)) {
    return "";
  }
  for (unsigned i = 0; i < elf.e_phnum; ++i) {
    Elf64_Phdr segment;
    if (!ReadAt(fd, elf.e_phoff + i * sizeof(segment), &segment, sizeof(segment))) return "";
    if (segment.p_type != PT_NOTE || segment.p_filesz > kMaxNoteBytes) continue;
    std::string notes(segment.p_filesz, '\0');
    if (!ReadAt(fd, segment.p_offset, notes.data(), notes.size())) return "";
    if (std::string id = FindBuildId(notes); !id.empty()) return id;
  }
  return "";
}

}  // namespace

absl::StatusOr<std::string> LibraryBuildId(const std::string& path) {
  base::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return base::ErrnoStatus(errno, absl::StrCat("open ", path));
  if (std::string id = ReadBuildId(fd.get()); !id.empty()) return id;
  FUSIOND_ASSIGN_OR_RETURN(std::string bytes, base::ReadFile(path));
  return absl::StrCat("sha256:", base::Sha256(bytes).Hex());
}

}  // namespace fusiond::nvrtc
