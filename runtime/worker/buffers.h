// Host memory of a session: a memfd that client and worker both map.
#ifndef FUSIOND_RUNTIME_WORKER_BUFFERS_H_
#define FUSIOND_RUNTIME_WORKER_BUFFERS_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "runtime/base/memfd.h"
#include "runtime/channel/device.h"
#include "runtime/worker/host_memory.h"

namespace fusiond::worker {

class HostBuffer : public channel::SessionBuffer {
 public:
  HostBuffer(base::Mapping mapping, uint64_t bytes)
      : SessionBuffer(bytes), mapping_(std::move(mapping)) {}
  char* data() const { return mapping_.data(); }

 private:
  const base::Mapping mapping_;
};

// Zeroed, sealed against resizing, pages allocated; taken from `memory`, which is given it back
// with the buffer. RESOURCE_EXHAUSTED, with limit and what is free.
absl::StatusOr<channel::AllocatedBuffer> AllocateHost(HostMemory& memory, uint64_t bytes);
// Maps a client's memfd, whose seals and size the session has checked.
absl::StatusOr<std::shared_ptr<channel::SessionBuffer>> ImportHost(base::UniqueFd fd,
                                                                   uint64_t bytes);

}  // namespace fusiond::worker

#endif  // FUSIOND_RUNTIME_WORKER_BUFFERS_H_
