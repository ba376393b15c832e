#include "server/process/thread_room.h"

#include <sys/resource.h>

#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "runtime/base/thread.h"

namespace fusiond::server {

absl::Status CheckRoomForThreads(int count) {
  absl::Notification end;
  std::vector<std::thread> threads;
  absl::Status refused;
  for (int i = 0; i < count && refused.ok(); ++i) {
    absl::StatusOr<std::thread> thread = base::StartThread([&end] { end.WaitForNotification(); });
    refused = thread.status();
    if (thread.ok()) threads.push_back(*std::move(thread));
  }
  end.Notify();
  for (std::thread& thread : threads) thread.join();
  if (refused.ok()) return absl::OkStatus();
  struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
  ::getrlimit(RLIMIT_NPROC, &limit);
  return absl::ResourceExhaustedError(absl::StrCat(
      count, " threads needed, ", threads.size(), " could be started; the user may have ",
      limit.rlim_cur == RLIM_INFINITY ? "any number" : absl::StrCat(limit.rlim_cur),
      " (ulimit -u), the cgroup pids.max (TasksMax= of a unit)"));
}

}  // namespace fusiond::server
