// What the runtime tells the sanitizers. It is not instrumented itself; each build of it knows one
// sanitizer by its macro (FDE_ASAN, FDE_TSAN) or none.
#ifndef FUSIOND_TESTS_EMULATION_RUNTIME_ANNOTATIONS_H_
#define FUSIOND_TESTS_EMULATION_RUNTIME_ANNOTATIONS_H_

#ifdef FDE_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef FDE_TSAN
#include <sanitizer/tsan_interface.h>
extern "C" {
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
void AnnotateIgnoreWritesBegin(const char* file, int line);
void AnnotateIgnoreWritesEnd(const char* file, int line);
}
#endif

namespace fusiond::emulation {

// Orders memory as CUDA does at this point: what was done before a Release of `token` is seen after
// a later Acquire of it.
inline void Acquire([[maybe_unused]] void* token) {
#ifdef FDE_TSAN
  __tsan_acquire(token);
#endif
}
inline void Release([[maybe_unused]] void* token) {
#ifdef FDE_TSAN
  __tsan_release(token);
#endif
}

// While one lives, what the runtime does through intercepted functions (memcpy, free) on behalf of
// the current CUDA thread is not held to be that thread's access.
class Quiet {
 public:
#ifdef FDE_TSAN
  Quiet() {
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
  }
  ~Quiet() {
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
  }
#else
  Quiet() {}
#endif
  Quiet(const Quiet&) = delete;
  Quiet& operator=(const Quiet&) = delete;
};

// Bytes that no kernel may touch, though they lie in one of our allocations.
inline void Forbid([[maybe_unused]] void* p, [[maybe_unused]] unsigned long bytes) {
#ifdef FDE_ASAN
  __asan_poison_memory_region(p, bytes);
#endif
}
inline void Allow([[maybe_unused]] void* p, [[maybe_unused]] unsigned long bytes) {
#ifdef FDE_ASAN
  __asan_unpoison_memory_region(p, bytes);
#endif
}

}  // namespace fusiond::emulation

#endif  // FUSIOND_TESTS_EMULATION_RUNTIME_ANNOTATIONS_H_
