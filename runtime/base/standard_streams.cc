#include "runtime/base/standard_streams.h"

#include <fcntl.h>
#include <unistd.h>

namespace fusiond::base {
namespace {

// What came through exec does not close at the next one: everything else was opened since.
bool WasGiven(int fd) {
  const int flags = ::fcntl(fd, F_GETFD);
  return flags >= 0 && (flags & FD_CLOEXEC) == 0;
}

}  // namespace

void HoldStandardStreams(char** argv) {
  bool all_given = true;
  for (int fd = 0; fd <= 2; ++fd) {
    if (WasGiven(fd)) continue;
    all_given = false;
    // Of the wrong direction, so that use fails. dup2 leaves out close-on-exec.
    const int null = ::open("/dev/null", O_CLOEXEC | (fd == 0 ? O_WRONLY : O_RDONLY));
    if (null == fd) {
      ::fcntl(fd, F_SETFD, 0);
    } else {
      ::dup2(null, fd);
      ::close(null);
    }
  }
  if (!all_given) ::execv("/proc/self/exe", argv);
}

}  // namespace fusiond::base
