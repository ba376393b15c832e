// Why a library cannot be loaded, in words that lead to the reason.
#ifndef FUSIOND_RUNTIME_BASE_LOAD_ERROR_H_
#define FUSIOND_RUNTIME_BASE_LOAD_ERROR_H_

#include <string>

namespace fusiond::base {

// What this thread's dlopen(name) has just failed with. Source: glibc says of a file that is for
// another architecture that there is no such file (elf/dl-load.c, open_verify).
std::string LoadError(const std::string& name);

}  // namespace fusiond::base

#endif  // FUSIOND_RUNTIME_BASE_LOAD_ERROR_H_
