// The worker role: one process that serves the sessions of one identity on one device.
#ifndef FUSIOND_RUNTIME_WORKER_WORKER_MAIN_H_
#define FUSIOND_RUNTIME_WORKER_WORKER_MAIN_H_

#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "runtime/base/file.h"

namespace fusiond::worker {

struct WorkerOptions {
  std::string device;  // "cpu" or a device UUID
  base::UniqueFd
      adopt_socket;  // ADOPT messages from the supervisor (channel::SupervisorConnection::PassTo)
  base::UniqueFd fetch_socket;  // executable_source.h
  std::string driver_path;      // libcuda; empty = by the loader's search
  // Called once the device is open and before anything of a client is read: gives up rights that
  // are not needed any more. A failure ends the worker.
  std::function<absl::Status()> before_serving = [] { return absl::OkStatus(); };
  // Without sessions for this long the worker exits: a context costs device memory.
  absl::Duration idle_exit = absl::Minutes(5);
  // What its sessions may take of the host's memory together; 0 = all the machine has.
  uint64_t host_memory_bytes = 0;
  // A descriptor that becomes readable when the worker shall drain (signalfd or pipe); -1 = none.
  int drain_fd = -1;
  absl::Duration drain_grace = absl::Seconds(5);
  // Ends the process at once; called from another thread where the driver does not return.
  std::function<void(const absl::Status& why)> give_up = [](const absl::Status&) {
    ::_exit(EXIT_FAILURE);
  };
  std::function<void(const std::string& level, const std::string& line)> log =
      [](const std::string&, const std::string&) {};
};

// Serves until the supervisor hangs up, the worker has been idle, it was drained (all OK), or the
// context is lost (ABORTED). Call before any CUDA call in the process; CUDA_MODULE_LOADING is set
// to EAGER here. After a GPU the process must end: what the device holds is not taken apart. Where
// the driver does not return from a hung device, `give_up` is called.
absl::Status RunWorker(WorkerOptions options);

}  // namespace fusiond::worker

#endif  // FUSIOND_RUNTIME_WORKER_WORKER_MAIN_H_
