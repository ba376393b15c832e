// Starting threads where the system may refuse: std::thread tells by an exception.
#ifndef FUSIOND_RUNTIME_BASE_THREAD_H_
#define FUSIOND_RUNTIME_BASE_THREAD_H_

#include <functional>
#include <thread>

#include "absl/status/statusor.h"

namespace fusiond::base {

// RESOURCE_EXHAUSTED: the system starts no more threads now, and says why.
absl::StatusOr<std::thread> StartThread(std::function<void()> body);

}  // namespace fusiond::base

#endif  // FUSIOND_RUNTIME_BASE_THREAD_H_
