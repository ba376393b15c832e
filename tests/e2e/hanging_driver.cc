// A libcuda.so.1 that never comes back to whoever loads it.
#include <unistd.h>

__attribute__((constructor)) static void Hang() {
  while (true) ::pause();
}
