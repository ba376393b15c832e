#include "server/lifecycle/stop_limit.h"

#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace fusiond::server {
namespace {

// For the signal handler alone. Written before the alarm is set, but for `waits_for`, of which any
// value will do.
std::atomic<const char*> waits_for{"its parts"};
char line_begin[128];
int code = 0;

void Write(const char* text) {
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text, std::strlen(text));
}

void EndAtOnce(int) {
  Write(line_begin);
  Write(waits_for.load(std::memory_order_relaxed));
  Write("; it ends at once\n");
  ::_exit(code);
}

}  // namespace

void LimitStop(absl::Duration limit, int exit_code, const std::string& line_head) {
  code = exit_code;
  const std::string begin = absl::StrCat(line_head, "told to stop, fusiond still waits after ",
                                         absl::FormatDuration(limit), " for ");
  std::strncpy(line_begin, begin.c_str(), sizeof(line_begin) - 1);
  struct sigaction action = {};
  action.sa_handler = EndAtOnce;
  sigaction(SIGALRM, &action, nullptr);
  itimerval timer = {};
  timer.it_value = absl::ToTimeval(limit);
  setitimer(ITIMER_REAL, &timer, nullptr);
}

void StopWaitsFor(const char* part) { waits_for.store(part, std::memory_order_relaxed); }

}  // namespace fusiond::server
