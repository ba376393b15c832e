// Loads a shared library that is there to be loaded, or says in words that lead to the reason why
// not.
#ifndef FUSIOND_RUNTIME_BASE_LOAD_LIBRARY_H_
#define FUSIOND_RUNTIME_BASE_LOAD_LIBRARY_H_

#include <string>

#include "absl/status/statusor.h"

namespace fusiond::base {

// dlopen's handle, every symbol bound, for the life of the process. `name`: a path, or what the
// loader looks for if it holds no slash. NOT_FOUND with the reason; then also what is no file,
// whose reading may never end (a pipe), and a file that ends before its segments do, of which the
// loader maps pages whose first touch ends the process (SIGBUS).
absl::StatusOr<void*> LoadLibrary(const std::string& name);

}  // namespace fusiond::base

#endif  // FUSIOND_RUNTIME_BASE_LOAD_LIBRARY_H_
