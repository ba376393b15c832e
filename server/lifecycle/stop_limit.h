// A limit to how long the process takes to end. What waits for a library's threads may wait for
// ever: gRPC does, for threads of its own that could not be started. Kept by SIGALRM, which needs
// no thread.
//
// Thread-safety: of the process; called by main's thread alone.
#ifndef FUSIOND_SERVER_LIFECYCLE_STOP_LIMIT_H_
#define FUSIOND_SERVER_LIFECYCLE_STOP_LIMIT_H_

#include <string>

#include "absl/time/time.h"

namespace fusiond::server {

// A process that still runs after `limit` says on stderr, behind `line_head`, what it waits for,
// and ends with `exit_code`. Once only; nothing else may use SIGALRM.
void LimitStop(absl::Duration limit, int exit_code, const std::string& line_head);

// What is waited for from now on; a literal.
void StopWaitsFor(const char* part);

}  // namespace fusiond::server

#endif  // FUSIOND_SERVER_LIFECYCLE_STOP_LIMIT_H_
