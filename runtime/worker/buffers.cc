#include "runtime/worker/buffers.h"

#include <utility>

#include "runtime/base/status_macros.h"

namespace fusiond::worker {

namespace {

class TakenHostBuffer : public HostBuffer {
 public:
  TakenHostBuffer(HostMemory& memory, base::Mapping mapping, uint64_t bytes)
      : HostBuffer(std::move(mapping), bytes), memory_(memory) {
    memory_.Take(bytes);
  }
  ~TakenHostBuffer() override { memory_.Give(bytes()); }

 private:
  HostMemory& memory_;
};

}  // namespace

absl::StatusOr<channel::AllocatedBuffer> AllocateHost(HostMemory& memory, uint64_t bytes) {
  FUSIOND_RETURN_IF_ERROR(memory.CheckRoom("host memory", bytes));
  FUSIOND_ASSIGN_OR_RETURN(base::SharedMemory shared,
                           base::CreatePeerWritable("fusiond-buffer", bytes));
  channel::AllocatedBuffer allocated;
  allocated.buffer = std::make_shared<TakenHostBuffer>(memory, std::move(shared.mapping), bytes);
  allocated.kind = channel::MemoryKind::kHost;
  allocated.fd = std::move(shared.fd);
  return allocated;
}

absl::StatusOr<std::shared_ptr<channel::SessionBuffer>> ImportHost(base::UniqueFd fd,
                                                                   uint64_t bytes) {
  FUSIOND_ASSIGN_OR_RETURN(base::Mapping mapping, base::Mapping::Map(fd.get(), bytes, true));
  return std::static_pointer_cast<channel::SessionBuffer>(
      std::make_shared<HostBuffer>(std::move(mapping), bytes));
}

}  // namespace fusiond::worker
