#include "runtime/base/file.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace fusiond::base {

void UniqueFd::reset(int fd) {
  if (fd_ >= 0) ::close(fd_);
  fd_ = fd;
}

absl::Status ErrnoStatus(int error, absl::string_view what) {
  char buffer[128];
  const char* reason = strerror_r(error, buffer, sizeof(buffer));  // GNU form: returns the text
  std::string text = absl::StrCat(what, ": ", reason);
  switch (error) {
    case ENOENT:
      return absl::NotFoundError(text);
    case EACCES:
    case EPERM:
      return absl::PermissionDeniedError(text);
    case ENAMETOOLONG:
      return absl::InvalidArgumentError(text);
    case EMFILE: {
      struct rlimit limit;
      if (::getrlimit(RLIMIT_NOFILE, &limit) == 0)
        absl::StrAppend(&text, "; this process may have ", limit.rlim_cur);
      return absl::ResourceExhaustedError(text);
    }
    case EFBIG: {
      struct rlimit limit;
      if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        absl::StrAppend(&text, "; this process may write ", limit.rlim_cur, " bytes");
      return absl::ResourceExhaustedError(text);
    }
    case ENOSPC:
    case EDQUOT:
    case ENFILE:
    case ENOMEM:
      return absl::ResourceExhaustedError(text);
    case EROFS:
    case EISDIR:
    case ENOTDIR:
    case ELOOP:
      return absl::FailedPreconditionError(text);
    default:
      return absl::InternalError(text);
  }
}

absl::StatusOr<std::string> ReadFile(const std::string& path, size_t max_bytes) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return ErrnoStatus(errno, absl::StrCat("open ", path));
  std::string data;
  char buffer[1 << 16];
  while (true) {
    ssize_t n = ::read(fd.get(), buffer, sizeof(buffer));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus(errno, absl::StrCat("read ", path));
    if (n == 0) return data;
    if (data.size() + n > max_bytes) {
      return absl::ResourceExhaustedError(
          absl::StrCat(path, ": more than the limit of ", max_bytes, " bytes"));
    }
    data.append(buffer, n);
  }
}

absl::Status WriteAll(int fd, absl::string_view data) {
  while (!data.empty()) {
    ssize_t n = ::write(fd, data.data(), data.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus(errno, "write");
    data.remove_prefix(n);
  }
  return absl::OkStatus();
}

absl::Status ReadExactly(int fd, char* data, size_t size) {
  size_t done = 0;
  while (done < size) {
    ssize_t n = ::read(fd, data + done, size - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus(errno, "read");
    if (n == 0 && done == 0) return absl::OutOfRangeError("end of stream");
    if (n == 0) return absl::DataLossError("end of stream inside a message");
    done += n;
  }
  return absl::OkStatus();
}

absl::Status WriteFileAtomically(const std::string& path, absl::string_view data) {
  const std::string temp = absl::StrCat(path, ".tmp.", ::getpid());
  absl::Status status = [&]() -> absl::Status {
    UniqueFd fd(::open(temp.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    if (!fd.valid()) return ErrnoStatus(errno, absl::StrCat("create ", temp));
    FUSIOND_RETURN_IF_ERROR(WriteAll(fd.get(), data));
    if (::fsync(fd.get()) != 0) return ErrnoStatus(errno, absl::StrCat("fsync ", temp));
    if (::rename(temp.c_str(), path.c_str()) != 0) {
      return ErrnoStatus(errno, absl::StrCat("rename to ", path));
    }
    return absl::OkStatus();
  }();
  if (!status.ok()) {
    ::unlink(temp.c_str());
    return status;
  }
  std::string folder = std::filesystem::path(path).parent_path().string();
  UniqueFd folder_fd(
      ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder_fd.valid() || ::fsync(folder_fd.get()) != 0) {
    return ErrnoStatus(errno, absl::StrCat("sync folder ", folder));
  }
  return absl::OkStatus();
}

absl::Status MakeFolders(const std::string& path) {
  for (size_t at = 1; at <= path.size(); ++at) {
    if (at != path.size() && path[at] != '/') continue;
    std::string part = path.substr(0, at);
    if (::mkdir(part.c_str(), 0700) != 0 && errno != EEXIST) {
      return ErrnoStatus(errno, absl::StrCat("create folder ", part));
    }
  }
  return absl::OkStatus();
}

}  // namespace fusiond::base
