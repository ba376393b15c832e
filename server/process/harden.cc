#include "server/process/harden.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "runtime/base/status_macros.h"
#include "server/process/child_process.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FUSIOND_SHADOW_MEMORY 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define FUSIOND_SHADOW_MEMORY 1
#endif
#endif

namespace fusiond::server {
namespace {

absl::Status Failure(absl::string_view step) {
  return absl::InternalError(base::ErrnoStatus(errno, step).message());
}

absl::Status DropCapabilities() {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {};
  if (::syscall(SYS_capset, &header, none) != 0) return Failure("drop capabilities");
  return absl::OkStatus();
}

// Best effort: a container's score may stand higher already, and is then not ours to lower.
void BecomeFirstChoiceOfOutOfMemoryKiller() {
  constexpr absl::string_view kScore = "500";  // as if it used half of the memory besides
  base::UniqueFd file(::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC));
  if (!file.valid() || ::write(file.get(), kScore.data(), kScore.size()) < 0) return;
}

}  // namespace

absl::Status Harden() {
  // Before it is undumpable, when its files in /proc become root's.
  BecomeFirstChoiceOfOutOfMemoryKiller();
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return Failure("set no_new_privs");
  const struct rlimit no_core = {0, 0};
  if (::setrlimit(RLIMIT_CORE, &no_core) != 0) return Failure("forbid core files");
  if (::chdir("/") != 0) return Failure("chdir /");
  FUSIOND_RETURN_IF_ERROR(DropCapabilities());
  // After the change of credentials, which resets both.
  if (::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) return Failure("become undumpable");
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0) return Failure("set parent-death signal");
  // A parent that died before that line sends no signal, but its end of our socket has hung up.
  pollfd socket = {kChildSocket, 0, 0};
  if (::poll(&socket, 1, 0) > 0 && (socket.revents & POLLHUP) != 0)
    return absl::UnavailableError("the parent process has ended");
  return absl::OkStatus();
}

absl::StatusOr<MemoryMeter> MemoryMeter::Open() {
  base::UniqueFd status(::open("/proc/self/status", O_RDONLY | O_CLOEXEC));
  if (!status.valid()) return Failure("open /proc/self/status");
  return MemoryMeter(std::move(status));
}

uint64_t MemoryMeter::Field(const char* name) const {
  char buffer[4096];
  ssize_t n = ::pread(status_.get(), buffer, sizeof(buffer), 0);
  if (n <= 0) return 0;
  absl::string_view text(buffer, static_cast<size_t>(n));
  size_t at = text.find(name);
  if (at == absl::string_view::npos) return 0;
  text.remove_prefix(at + absl::string_view(name).size());
  text = absl::StripAsciiWhitespace(text.substr(0, text.find(" kB")));
  uint64_t kibibytes = 0;
  return absl::SimpleAtoi(text, &kibibytes) ? kibibytes << 10 : 0;
}

#ifdef FUSIOND_SHADOW_MEMORY

bool MemoryLimitWorks() { return false; }
absl::Status LimitMemory(const MemoryMeter&, uint64_t) { return absl::OkStatus(); }

#else

bool MemoryLimitWorks() { return true; }

absl::Status LimitMemory(const MemoryMeter& meter, uint64_t bytes) {
  const uint64_t now = meter.SizeBytes();
  if (now == 0) return absl::InternalError("limit memory: size of the process is unknown");
  struct rlimit limit;
  if (::getrlimit(RLIMIT_AS, &limit) != 0) return Failure("read the memory limit");
  // What we were given may be less, and cannot be raised.
  limit.rlim_cur = limit.rlim_max = std::min<rlim_t>(limit.rlim_max, now + bytes);
  if (::setrlimit(RLIMIT_AS, &limit) != 0) return Failure("limit memory");
  return absl::OkStatus();
}

#endif

}  // namespace fusiond::server
