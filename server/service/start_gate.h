// StartGate: holds calls that come before the daemon knows what it keys by (the NVRTC that its
// compile processes find, the GPUs of the host), some hundred milliseconds after its start.
//
// Thread-safety: thread-safe; what waited runs on the thread that opens the gate.
#ifndef FUSIOND_SERVER_SERVICE_START_GATE_H_
#define FUSIOND_SERVER_SERVICE_START_GATE_H_

#include <functional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "runtime/base/mutex.h"
#include "runtime/base/retry_hint.h"

namespace fusiond::server {

class StartGate {
 public:
  static constexpr size_t kMaxWaiting = 1024;
  // False: already kMaxWaiting wait, and `call` will not run. Full() says so to the caller.
  [[nodiscard]] bool Pass(std::function<void()> call) {
    {
      base::MutexLock lock(&mutex_);
      if (!open_) {
        if (waiting_.size() >= kMaxWaiting) return false;
        waiting_.push_back(std::move(call));
        return true;
      }
    }
    call();
    return true;
  }

  static absl::Status Full() {
    return base::WithRetryHint(absl::ResourceExhaustedError(
                                   absl::StrCat("calls that wait for the daemon's start: limit is ",
                                                kMaxWaiting, ", are ", kMaxWaiting + 1)),
                               absl::Milliseconds(250));
  }

  void Open() {
    std::vector<std::function<void()>> waiting;
    {
      base::MutexLock lock(&mutex_);
      open_ = true;
      waiting.swap(waiting_);
    }
    for (std::function<void()>& call : waiting) call();
  }

  bool open() const {
    base::MutexLock lock(&mutex_);
    return open_;
  }

 private:
  mutable base::Mutex mutex_;
  bool open_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::function<void()>> waiting_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fusiond::server

#endif  // FUSIOND_SERVER_SERVICE_START_GATE_H_
