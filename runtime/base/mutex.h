// Mutex, MutexLock, CondVar: absl::Mutex that ThreadSanitizer understands.
//
// Debian's Abseil is built without TSan instrumentation, so that every lock taken through it looks
// like a race. These wrappers announce lock and unlock to TSan and cost nothing in other builds.
// Raw absl::Mutex is a lint error.
//
// Thread-safety: all three are thread-safe. Ownership: a Mutex must outlive its locks and waiters.
#ifndef FUSIOND_RUNTIME_BASE_MUTEX_H_
#define FUSIOND_RUNTIME_BASE_MUTEX_H_

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

#if defined(__SANITIZE_THREAD__)
#define FUSIOND_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define FUSIOND_TSAN 1
#endif
#endif
#ifdef FUSIOND_TSAN
#include <sanitizer/tsan_interface.h>
#endif

namespace fusiond::base {

class ABSL_LOCKABLE Mutex {
 public:
#ifdef FUSIOND_TSAN
  Mutex() { __tsan_mutex_create(this, 0); }
  ~Mutex() { __tsan_mutex_destroy(this, 0); }
#else
  Mutex() = default;
#endif
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() {
    BeforeLock();
    mutex_.Lock();
    AfterLock();
  }
  void Unlock() ABSL_UNLOCK_FUNCTION() {
    BeforeUnlock();
    mutex_.Unlock();
    AfterUnlock();
  }

 private:
  friend class CondVar;

#ifdef FUSIOND_TSAN
  void BeforeLock() { __tsan_mutex_pre_lock(this, 0); }
  void AfterLock() { __tsan_mutex_post_lock(this, 0, 0); }
  void BeforeUnlock() { __tsan_mutex_pre_unlock(this, 0); }
  void AfterUnlock() { __tsan_mutex_post_unlock(this, 0); }
#else
  void BeforeLock() {}
  void AfterLock() {}
  void BeforeUnlock() {}
  void AfterUnlock() {}
#endif

  absl::Mutex mutex_;
};

class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  explicit MutexLock(Mutex* mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex) : mutex_(mutex) {
    mutex_->Lock();
  }
  ~MutexLock() ABSL_UNLOCK_FUNCTION() { mutex_->Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex* const mutex_;
};

// Waits release `mutex` and take it again before they return; wake-ups may be spurious, so wait in
// a loop.
class CondVar {
 public:
  CondVar() = default;
  CondVar(const CondVar&) = delete;
  CondVar& operator=(const CondVar&) = delete;

  void Wait(Mutex* mutex) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    mutex->BeforeUnlock();
    mutex->AfterUnlock();
    cond_.Wait(&mutex->mutex_);
    mutex->BeforeLock();
    mutex->AfterLock();
  }
  // Returns true when `timeout` has passed without a signal.
  bool WaitWithTimeout(Mutex* mutex, absl::Duration timeout) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    mutex->BeforeUnlock();
    mutex->AfterUnlock();
    bool timed_out = cond_.WaitWithTimeout(&mutex->mutex_, timeout);
    mutex->BeforeLock();
    mutex->AfterLock();
    return timed_out;
  }
  void Signal() { cond_.Signal(); }
  void SignalAll() { cond_.SignalAll(); }

 private:
  absl::CondVar cond_;
};

}  // namespace fusiond::base

#endif  // FUSIOND_RUNTIME_BASE_MUTEX_H_
