#include "runtime/channel/socket.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "runtime/base/clock.h"
#include "runtime/base/status_macros.h"

namespace fusiond::channel {
namespace {

constexpr int kBacklog = 128;

absl::StatusOr<sockaddr_un> MakeAddress(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path)) {
    return absl::InvalidArgumentError(absl::StrCat("socket path: limit is ",
                                                   sizeof(address.sun_path) - 1, " bytes, '", path,
                                                   "' has ", path.size()));
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

int ConnectOnce(int fd, const sockaddr_un& address) {
  while (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

// Whether `path` still leads to the file that `fd` has open.
bool IsFile(int fd, const std::string& path) {
  struct stat open, there;
  return fd >= 0 && ::fstat(fd, &open) == 0 && ::lstat(path.c_str(), &there) == 0 &&
         open.st_dev == there.st_dev && open.st_ino == there.st_ino;
}

// Empty when it has none.
std::string BoundPath(int fd) {
  sockaddr_un address{};
  socklen_t size = sizeof(address);
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0 ||
      size <= offsetof(sockaddr_un, sun_path)) {
    return "";
  }
  return std::string(address.sun_path,
                     ::strnlen(address.sun_path, size - offsetof(sockaddr_un, sun_path)));
}

base::UniqueFd NewSocket(int type) {
  return base::UniqueFd(::socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

// Removes a socket file that nobody listens on. The caller holds the path's lock, so that no second
// starter does the same at the same time; a program that does not know the lock is found by
// connecting.
absl::Status RemoveStaleSocket(const std::string& path, const sockaddr_un& address, int type) {
  struct stat info;
  if (::lstat(path.c_str(), &info) != 0) {
    if (errno == ENOENT) return absl::OkStatus();
    return base::ErrnoStatus(errno, absl::StrCat("stat ", path));
  }
  if (!S_ISSOCK(info.st_mode)) {
    return absl::FailedPreconditionError(absl::StrCat(path, ": exists and is no socket"));
  }
  base::UniqueFd probe = NewSocket(type);
  if (!probe.valid()) return base::ErrnoStatus(errno, "create socket");
  const int error = ConnectOnce(probe.get(), address);
  // Any answer but "refused" comes from a live listener (EAGAIN: its queue is full, EPROTOTYPE: it
  // is of another type) or from something we may not judge.
  if (error != ECONNREFUSED) {
    return absl::AlreadyExistsError(absl::StrCat(path, ": another process listens there"));
  }
  if (::unlink(path.c_str()) != 0) return base::ErrnoStatus(errno, absl::StrCat("remove ", path));
  return absl::OkStatus();
}

// Milliseconds for poll(2), rounded up so that the last one does not spin.
int PollTimeout(absl::Duration left) {
  if (left <= absl::ZeroDuration()) return 0;
  if (left == absl::InfiniteDuration()) return -1;
  return static_cast<int>(
      std::min<int64_t>(absl::ToInt64Milliseconds(left + absl::Microseconds(999)), INT_MAX));
}

// Waits until `fd` shows `events` or hang-up.
absl::Status WaitFor(int fd, short events, absl::Duration deadline, const char* what) {
  while (true) {
    const absl::Duration left = deadline - base::Clock::System().Now();
    pollfd poll_fd{fd, events, 0};
    const int ready = ::poll(&poll_fd, 1, PollTimeout(left));
    if (ready > 0) return absl::OkStatus();
    if (ready < 0 && errno != EINTR) return base::ErrnoStatus(errno, "poll");
    if (ready == 0 && left <= absl::ZeroDuration()) {
      return absl::DeadlineExceededError(absl::StrCat("socket: no chance to ", what, " in time"));
    }
  }
}

bool IsHangUp(int error) { return error == EPIPE || error == ECONNRESET || error == ENOTCONN; }

absl::Status HungUp() { return absl::UnavailableError("socket: the peer has hung up"); }

}  // namespace

absl::StatusOr<PeerIdentity> GetPeerIdentity(int fd) {
  ucred credentials{};
  socklen_t size = sizeof(credentials);
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) {
    return base::ErrnoStatus(errno, "read peer credentials");
  }
  return PeerIdentity{credentials.uid, credentials.gid, credentials.pid};
}

absl::StatusOr<UnixListener> UnixListener::Listen(const std::string& path, int type, mode_t mode) {
  UnixListener listener;
  listener.path_ = path;
  listener.type_ = type;
  listener.mode_ = mode;
  FUSIOND_RETURN_IF_ERROR(listener.Bind());
  listener.reserve_.reset(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  return listener;
}

absl::Status UnixListener::TakeLock() {
  const std::string lock_path = absl::StrCat(path_, ".lock");
  if (IsFile(lock_.get(), lock_path)) return absl::OkStatus();
  base::UniqueFd lock(::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock.valid()) return base::ErrnoStatus(errno, absl::StrCat("open ", lock_path));
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return base::ErrnoStatus(errno, absl::StrCat("lock ", lock_path));
    return absl::AlreadyExistsError(
        absl::StrCat(path_, ": another process listens there and holds ", lock_path));
  }
  lock_ = std::move(lock);
  return absl::OkStatus();
}

absl::Status UnixListener::Bind() {
  FUSIOND_ASSIGN_OR_RETURN(sockaddr_un address, MakeAddress(path_));
  FUSIOND_RETURN_IF_ERROR(TakeLock());
  if (IsOurs()) return absl::OkStatus();
  FUSIOND_RETURN_IF_ERROR(RemoveStaleSocket(path_, address, type_));
  base::UniqueFd fd = NewSocket(type_);
  if (!fd.valid()) return base::ErrnoStatus(errno, "create socket");
  // The mode of the unbound socket, less the umask, becomes that of the file, which is therefore
  // never more open than asked for; chmod then restores what the umask took.
  if (::fchmod(fd.get(), mode_) != 0) return base::ErrnoStatus(errno, "fchmod socket");
  if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0)
    return base::ErrnoStatus(errno, absl::StrCat("bind ", path_));
  if (::chmod(path_.c_str(), mode_) != 0)
    return base::ErrnoStatus(errno, absl::StrCat("chmod ", path_));
  if (::listen(fd.get(), kBacklog) != 0)
    return base::ErrnoStatus(errno, absl::StrCat("listen on ", path_));
  fd_ = std::move(fd);
  NotePlace();
  return absl::OkStatus();
}

void UnixListener::NotePlace() {
  struct stat file, folder;
  if (::lstat(path_.c_str(), &file) != 0 || !S_ISSOCK(file.st_mode) ||
      ::stat(FolderOf(path_).c_str(), &folder) != 0) {
    return;
  }
  place_ = Place{file.st_dev, file.st_ino, folder.st_mode & 07777, folder.st_gid};
}

bool UnixListener::IsOurs() const {
  struct stat file;
  return place_.has_value() && ::lstat(path_.c_str(), &file) == 0 &&
         file.st_dev == place_->device && file.st_ino == place_->inode;
}

bool UnixListener::InPlace() const {
  if (!place_.has_value()) return true;  // never known, so not to be missed
  return IsOurs() && (!lock_.valid() || IsFile(lock_.get(), absl::StrCat(path_, ".lock")));
}

absl::Status UnixListener::Rebind() {
  if (!lock_.valid()) {
    return absl::FailedPreconditionError(
        absl::StrCat(path_, ": is made by whoever started us with it"));
  }
  const std::string folder = FolderOf(path_);
  if (struct stat info; ::stat(folder.c_str(), &info) != 0) {
    FUSIOND_RETURN_IF_ERROR(base::MakeFolders(folder));
    // As it was, for those who must get through it.
    if (::chmod(folder.c_str(), place_->folder_mode) != 0 ||
        ::chown(folder.c_str(), static_cast<uid_t>(-1), place_->folder_group) != 0) {
      return base::ErrnoStatus(errno, absl::StrCat("restore the mode of ", folder));
    }
  }
  return Bind();
}

absl::StatusOr<UnixListener> UnixListener::Adopt(base::UniqueFd fd) {
  int listening = 0;
  socklen_t size = sizeof(listening);
  if (::getsockopt(fd.get(), SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) != 0) {
    return base::ErrnoStatus(errno, "inspect listening socket");
  }
  if (listening == 0) return absl::FailedPreconditionError("adopted socket does not listen");
  const int flags = ::fcntl(fd.get(), F_GETFL);
  if (flags < 0 || ::fcntl(fd.get(), F_SETFL, flags | O_NONBLOCK) != 0) {
    return base::ErrnoStatus(errno, "make listening socket non-blocking");
  }
  UnixListener listener;
  listener.path_ = BoundPath(fd.get());
  listener.NotePlace();
  listener.fd_ = std::move(fd);
  listener.reserve_.reset(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  return listener;
}

UnixListener& UnixListener::operator=(UnixListener&& other) noexcept {
  if (this != &other) {
    Unlink();
    fd_ = std::move(other.fd_);
    lock_ = std::move(other.lock_);
    reserve_ = std::move(other.reserve_);
    path_ = std::exchange(other.path_, std::string());
    type_ = other.type_;
    mode_ = other.mode_;
    place_ = std::exchange(other.place_, std::nullopt);
  }
  return *this;
}

UnixListener::~UnixListener() { Unlink(); }

void UnixListener::Unlink() {
  // What stands there may be another's by now.
  if (lock_.valid() && IsOurs()) ::unlink(path_.c_str());
}

absl::StatusOr<AcceptedConnection> UnixListener::Accept() {
  while (true) {
    base::UniqueFd fd(::accept4(fd_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (fd.valid()) {
      FUSIOND_ASSIGN_OR_RETURN(PeerIdentity peer, GetPeerIdentity(fd.get()));
      return AcceptedConnection{std::move(fd), peer};
    }
    const int error = errno;
    if (error == EINTR || error == ECONNABORTED) continue;
    if (error == EAGAIN) return absl::UnavailableError("no connection waits");
    if (error != EMFILE && error != ENFILE) return base::ErrnoStatus(error, "accept");
    // Take the connection with the reserved descriptor's place and close it: left waiting, it would
    // keep the listener readable for ever.
    reserve_.reset();
    base::UniqueFd shed(::accept4(fd_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    shed.reset();
    reserve_.reset(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    return base::ErrnoStatus(error, "accept: connection closed");
  }
}

absl::Status CheckSocketPath(const std::string& path) { return MakeAddress(path).status(); }

absl::StatusOr<base::UniqueFd> Connect(const std::string& path, int type, absl::Duration timeout) {
  FUSIOND_ASSIGN_OR_RETURN(sockaddr_un address, MakeAddress(path));
  const absl::Duration deadline = base::Clock::System().Now() + timeout;
  while (true) {
    base::UniqueFd fd = NewSocket(type);
    if (!fd.valid()) return base::ErrnoStatus(errno, "create socket");
    const int error = ConnectOnce(fd.get(), address);
    if (error == 0) return fd;
    if (error == ENOENT || error == ECONNREFUSED) {
      return absl::UnavailableError(absl::StrCat("nobody listens on ", path));
    }
    // EAGAIN: the listener's queue is full. Unix sockets give no event for its end.
    if (error != EAGAIN) return base::ErrnoStatus(error, absl::StrCat("connect to ", path));
    if (base::Clock::System().Now() >= deadline) {
      return absl::DeadlineExceededError(absl::StrCat("connect to ", path, ": queue is full"));
    }
    ::poll(nullptr, 0, 1);
  }
}

absl::Status SendMessage(int fd, absl::string_view bytes, absl::Span<const int> fds,
                         absl::Duration timeout) {
  if (bytes.size() > kMaxMessageBytes || fds.size() > kMaxMessageFds) {
    return absl::InvalidArgumentError(
        absl::StrCat("message: limits are ", kMaxMessageBytes, " bytes and ", kMaxMessageFds,
                     " descriptors, got ", bytes.size(), " and ", fds.size()));
  }
  iovec part{const_cast<char*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMaxMessageFds)] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (!fds.empty()) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(sizeof(int) * fds.size());
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int) * fds.size());
    std::memcpy(CMSG_DATA(header), fds.data(), sizeof(int) * fds.size());
  }
  const absl::Duration deadline = base::Clock::System().Now() + timeout;
  while (::sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
    if (errno == EINTR) continue;
    if (IsHangUp(errno)) return HungUp();
    if (errno != EAGAIN) return base::ErrnoStatus(errno, "send message");
    FUSIOND_RETURN_IF_ERROR(WaitFor(fd, POLLOUT, deadline, "send"));
  }
  return absl::OkStatus();
}

absl::StatusOr<ReceivedMessage> ReceiveMessage(int fd, absl::Duration timeout) {
  ReceivedMessage received;
  iovec part{received.bytes, sizeof(received.bytes)};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMaxMessageFds)];
  msghdr message{};
  ssize_t size;
  absl::Duration deadline = absl::ZeroDuration();
  while (true) {
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    size = ::recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (size >= 0) break;
    if (errno == EINTR) continue;
    if (IsHangUp(errno)) return HungUp();
    if (errno != EAGAIN) return base::ErrnoStatus(errno, "receive message");
    if (deadline == absl::ZeroDuration()) deadline = base::Clock::System().Now() + timeout;
    FUSIOND_RETURN_IF_ERROR(WaitFor(fd, POLLIN, deadline, "receive"));
  }
  // Own the descriptors first, so that every way out closes them.
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int passed;
      std::memcpy(&passed, CMSG_DATA(header) + i * sizeof(int), sizeof(int));
      received.fds.emplace_back(passed);
    }
  }
  if ((message.msg_flags & MSG_CTRUNC) != 0) {
    return absl::InvalidArgumentError(absl::StrCat("message: more than the limit of ",
                                                   kMaxMessageFds,
                                                   " descriptors, or this process has none left"));
  }
  if ((message.msg_flags & MSG_TRUNC) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("message: longer than the limit of ", kMaxMessageBytes, " bytes"));
  }
  if (size == 0) return HungUp();
  received.size = static_cast<size_t>(size);
  return received;
}

bool HasHungUp(int fd) {
  pollfd poll_fd{fd, POLLRDHUP, 0};
  return ::poll(&poll_fd, 1, 0) > 0 &&
         (poll_fd.revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL)) != 0;
}

absl::StatusOr<std::pair<base::UniqueFd, base::UniqueFd>> SocketPair() {
  int fds[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0) {
    return base::ErrnoStatus(errno, "create socket pair");
  }
  return std::pair(base::UniqueFd(fds[0]), base::UniqueFd(fds[1]));
}

}  // namespace fusiond::channel
