#include "server/cache/state_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace fusiond::cache {

// Source: statfs(2) and linux/magic.h (kernel 6.1); numbers, because not every system's headers
// have them all.
absl::string_view UnreliableFileSystemName(int64_t f_type) {
  switch (static_cast<uint32_t>(f_type)) {
    case 0x6969:
      return "NFS";
    case 0x517B:
    case 0xFE534D42:
      return "SMB";
    case 0xFF534D42:
      return "CIFS";
    case 0x01021997:
      return "9P";
    case 0x65735546:
      return "FUSE";
    case 0x794C7630:
      return "overlayfs";
    case 0x00C36400:
      return "Ceph";
    case 0x5346414F:
    case 0x6B414653:
      return "AFS";
    case 0x73757245:
      return "Coda";
    case 0x0BD00BD0:
      return "Lustre";
    case 0x47504653:
      return "GPFS";
    case 0x01161970:
      return "GFS2";
    case 0x7461636F:
      return "OCFS2";
    default:
      return {};
  }
}

absl::Status CheckFileSystem(const std::string& folder) {
  struct statfs info;
  if (::statfs(folder.c_str(), &info) != 0) {
    return base::ErrnoStatus(errno, absl::StrCat("statfs ", folder));
  }
  absl::string_view name = UnreliableFileSystemName(info.f_type);
  if (name.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("state folder ", folder, " lies on ", name,
                   ", where locks and file handles cannot be relied on; choose a local folder, or "
                   "allow it with --allow-network-fs"));
}

// An open-file-description lock rather than a process's: closing some other descriptor of the file
// does not drop it, and a second store in the same process meets it too.
absl::StatusOr<base::UniqueFd> LockFolder(const std::string& folder) {
  const std::string path = absl::StrCat(folder, "/lock");
  base::UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!fd.valid()) return base::ErrnoStatus(errno, absl::StrCat("open ", path));
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  if (::fcntl(fd.get(), F_OFD_SETLK, &lock) != 0) {
    if (errno != EAGAIN && errno != EACCES) {
      return base::ErrnoStatus(errno, absl::StrCat("lock ", path));
    }
    char holder[32] = {};
    const ssize_t read = ::pread(fd.get(), holder, sizeof(holder) - 1, 0);
    return absl::AlreadyExistsError(absl::StrCat(
        "state folder ", folder, " is in use by process ",
        read > 0 ? absl::StripAsciiWhitespace(holder) : absl::string_view("(unknown)")));
  }
  // Only for the message above: a full disk must not keep us from starting.
  const std::string self = absl::StrCat(::getpid(), "\n");
  if (::ftruncate(fd.get(), 0) == 0) {
    [[maybe_unused]] ssize_t written = ::pwrite(fd.get(), self.data(), self.size(), 0);
  }
  return fd;
}

bool HoldsFolder(const base::UniqueFd& lock, const std::string& folder) {
  struct stat held, there;
  return ::fstat(lock.get(), &held) == 0 &&
         ::stat(absl::StrCat(folder, "/lock").c_str(), &there) == 0 &&
         held.st_dev == there.st_dev && held.st_ino == there.st_ino;
}

}  // namespace fusiond::cache
