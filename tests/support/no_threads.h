// NoThreads: while it lives, this process can start no thread, as where a limit of threads or of
// address space is reached.
//
// Thread-safety: thread-compatible; concerns the whole process.
#ifndef FUSIOND_TESTS_SUPPORT_NO_THREADS_H_
#define FUSIOND_TESTS_SUPPORT_NO_THREADS_H_

#include <pthread.h>

#include <cstddef>

#include "runtime/base/check.h"

namespace fusiond::testing {

class NoThreads {
 public:
  NoThreads() {
    FUSIOND_CHECK(pthread_getattr_default_np(&before_) == 0);
    pthread_attr_t wish;
    FUSIOND_CHECK(pthread_attr_init(&wish) == 0);
    FUSIOND_CHECK(pthread_attr_setstacksize(&wish, kStackBytes) == 0);
    FUSIOND_CHECK(pthread_setattr_default_np(&wish) == 0);
    pthread_attr_destroy(&wish);
  }
  ~NoThreads() {
    pthread_setattr_default_np(&before_);
    pthread_attr_destroy(&before_);
  }
  NoThreads(const NoThreads&) = delete;
  NoThreads& operator=(const NoThreads&) = delete;

 private:
  static constexpr size_t kStackBytes = size_t{1} << 47;  // more than there are addresses

  pthread_attr_t before_;
};

}  // namespace fusiond::testing

#endif  // FUSIOND_TESTS_SUPPORT_NO_THREADS_H_
