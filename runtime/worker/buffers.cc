#include "runtime/worker/buffers.h"

#include <utility>

#include "runtime/base/status_macros.h"

namespace fusiond::worker {

absl::StatusOr<channel::AllocatedBuffer> AllocateHost(uint64_t bytes) {
  FUSIOND_ASSIGN_OR_RETURN(base::SharedMemory memory,
                           base::CreatePeerWritable("fusiond-buffer", bytes));
  channel::AllocatedBuffer allocated;
  allocated.buffer = std::make_shared<HostBuffer>(std::move(memory.mapping), bytes);
  allocated.kind = channel::MemoryKind::kHost;
  allocated.fd = std::move(memory.fd);
  return allocated;
}

absl::StatusOr<std::shared_ptr<channel::SessionBuffer>> ImportHost(base::UniqueFd fd,
                                                                   uint64_t bytes) {
  FUSIOND_ASSIGN_OR_RETURN(base::Mapping mapping, base::Mapping::Map(fd.get(), bytes, true));
  return std::static_pointer_cast<channel::SessionBuffer>(
      std::make_shared<HostBuffer>(std::move(mapping), bytes));
}

}  // namespace fusiond::worker
