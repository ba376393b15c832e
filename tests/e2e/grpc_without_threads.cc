// To be preloaded: threads that gRPC's core wants do not start, as where a limit of threads is
// reached. Those of its C++ layer do: it aborts without.
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <pthread.h>
#include <string.h>

namespace {

using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);

// gpr_thd_new's caller: the first frame above libgpr.
bool WantedByCore() {
  void* frames[16];
  const int count = backtrace(frames, 16);
  bool in_gpr = false;
  for (int i = 0; i < count; ++i) {
    Dl_info info = {};
    if (dladdr(frames[i], &info) == 0 || info.dli_fname == nullptr) continue;
    const bool gpr = strstr(info.dli_fname, "libgpr.so") != nullptr;
    if (in_gpr && !gpr) return strstr(info.dli_fname, "libgrpc.so") != nullptr;
    in_gpr = in_gpr || gpr;
  }
  return false;
}

}  // namespace

extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                              void* (*start)(void*), void* argument) {
  static const auto next = reinterpret_cast<Create>(dlsym(RTLD_NEXT, "pthread_create"));
  return WantedByCore() ? EAGAIN : next(thread, attributes, start, argument);
}
