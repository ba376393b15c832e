// A libcuda.so.1 that ends whoever initialises it.
#include <cstdlib>

extern "C" __attribute__((visibility("default"))) int cuInit(unsigned) { std::abort(); }
