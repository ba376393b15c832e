// A clock that stands until told to move. Thread-safe.
#ifndef FUSIOND_TESTS_SUPPORT_FAKE_CLOCK_H_
#define FUSIOND_TESTS_SUPPORT_FAKE_CLOCK_H_

#include "absl/time/time.h"
#include "runtime/base/clock.h"
#include "runtime/base/mutex.h"

namespace fusiond::testing {

class FakeClock : public base::Clock {
 public:
  absl::Duration Now() const override {
    base::MutexLock lock(&mutex_);
    return now_;
  }
  void Advance(absl::Duration by) {
    base::MutexLock lock(&mutex_);
    now_ += by;
  }

 private:
  mutable base::Mutex mutex_;
  absl::Duration now_ ABSL_GUARDED_BY(mutex_) = absl::Hours(1);
};

}  // namespace fusiond::testing

#endif  // FUSIOND_TESTS_SUPPORT_FAKE_CLOCK_H_
