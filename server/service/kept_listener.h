// KeptListener: a listening socket whose path is kept in place: when somebody removes the socket,
// or the folder it is in, it is made anew.
//
// Thread-safety: single-thread (the accepting thread's), but for problem().
#ifndef FUSIOND_SERVER_SERVICE_KEPT_LISTENER_H_
#define FUSIOND_SERVER_SERVICE_KEPT_LISTENER_H_

#include <functional>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "runtime/base/mutex.h"
#include "runtime/channel/socket.h"

namespace fusiond::server {

class KeptListener {
 public:
  using Log = std::function<void(const std::string& level, const std::string& line)>;

  KeptListener(channel::UnixListener listener, Log log)
      : listener_(std::move(listener)), log_(std::move(log)) {}

  channel::UnixListener& listener() { return listener_; }

  // Looks after the path, for a few system calls. Where the socket is made anew, `unwatch` is told
  // of the descriptor before and `watch` of the one after. What is wrong is logged when it begins
  // and when it ends.
  void Keep(absl::FunctionRef<void(int fd)> unwatch, absl::FunctionRef<absl::Status(int fd)> watch)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // A connection was closed unserved. Whoever connects can do so in a loop: one of ten seconds is
  // logged.
  void TellRefusal(const absl::Status& why);

  // Why nobody reaches us by the path now; empty when all is well.
  std::string problem() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  channel::UnixListener listener_;
  const Log log_;
  absl::Duration next_told_;  // refusal
  mutable base::Mutex mutex_;
  std::string problem_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fusiond::server

#endif  // FUSIOND_SERVER_SERVICE_KEPT_LISTENER_H_
