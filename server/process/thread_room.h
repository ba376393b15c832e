// Whether this process may have more threads: libraries end it where one does not start.
//
// Thread-safety: pure function. Cost: some 20 us a thread.
#ifndef FUSIOND_SERVER_PROCESS_THREAD_ROOM_H_
#define FUSIOND_SERVER_PROCESS_THREAD_ROOM_H_

#include "absl/status/status.h"

namespace fusiond::server {

// Starts that many threads at once and ends them. RESOURCE_EXHAUSTED with their number and the
// limit of the user's processes.
absl::Status CheckRoomForThreads(int count);

}  // namespace fusiond::server

#endif  // FUSIOND_SERVER_PROCESS_THREAD_ROOM_H_
