// LocalExecutable: a leased executable in the caller's own CUDA context, launched at the driver's
// cost.
//
// Once loaded it needs no daemon. Thread-safety and errors: as cuda::LoadedExecutable, which it is;
// each launch brings its own outputs and workspace.
#ifndef FUSIOND_CLIENT_CC_LOCAL_EXECUTABLE_H_
#define FUSIOND_CLIENT_CC_LOCAL_EXECUTABLE_H_

#include "runtime/cuda/loaded_executable.h"

namespace fusiond::client {

using LocalExecutable = cuda::LoadedExecutable;

}  // namespace fusiond::client

#endif  // FUSIOND_CLIENT_CC_LOCAL_EXECUTABLE_H_
