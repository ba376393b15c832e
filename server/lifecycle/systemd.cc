#include "server/lifecycle/systemd.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "runtime/base/file.h"

namespace fusiond::server {
namespace {

constexpr int kFirstListenFd = 3;

// Whether variables for process `pid` are for us: children inherit them.
bool IsOurs(const std::string& pid) {
  int64_t number = 0;
  return absl::SimpleAtoi(pid, &number) && number == ::getpid();
}

}  // namespace

void NotifySystemd(const std::string& socket_path, const std::string& state) {
  sockaddr_un address{};
  if (socket_path.size() < 2 || socket_path.size() >= sizeof(address.sun_path)) return;
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, socket_path.data(), socket_path.size());
  if (socket_path[0] == '@') address.sun_path[0] = '\0';
  base::UniqueFd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return;
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socket_path.size());
  ::sendto(fd.get(), state.data(), state.size(), MSG_NOSIGNAL,
           reinterpret_cast<const sockaddr*>(&address), length);
}

absl::Duration WatchdogPeriod(const std::string& usec, const std::string& pid) {
  int64_t microseconds = 0;
  if (!pid.empty() && !IsOurs(pid)) return absl::ZeroDuration();
  if (!absl::SimpleAtoi(usec, &microseconds) || microseconds <= 0) return absl::ZeroDuration();
  return absl::Microseconds(microseconds);
}

std::map<std::string, int> ListeningSockets(const std::string& fds, const std::string& pid,
                                            const std::string& names) {
  std::map<std::string, int> sockets;
  int count = 0;
  if (!IsOurs(pid) || !absl::SimpleAtoi(fds, &count)) return sockets;
  const std::vector<std::string> name = absl::StrSplit(names, ':');
  for (int i = 0; i < count; ++i) {
    if (::fcntl(kFirstListenFd + i, F_SETFD, FD_CLOEXEC) != 0) break;  // no such descriptor
    if (i < static_cast<int>(name.size())) sockets[name[i]] = kFirstListenFd + i;
  }
  return sockets;
}

bool IsJournal(const std::string& journal_stream, int fd) {
  struct stat file;
  return ::fstat(fd, &file) == 0 && journal_stream == absl::StrCat(file.st_dev, ":", file.st_ino);
}

}  // namespace fusiond::server
