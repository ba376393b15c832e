#include "runtime/worker/buffers.h"

#include <sys/sysinfo.h>

#include <utility>

#include "runtime/base/status_macros.h"
#include "runtime/base/status_numbers.h"

namespace fusiond::worker {

HostMemory GetHostMemory() {
  struct sysinfo info;
  if (::sysinfo(&info) != 0) return {};
  return {uint64_t{info.totalram} * info.mem_unit, uint64_t{info.freeram} * info.mem_unit};
}

absl::StatusOr<channel::AllocatedBuffer> AllocateHost(uint64_t bytes) {
  const HostMemory host = GetHostMemory();
  const auto with_need = [&](const absl::Status& status) {
    return absl::IsResourceExhausted(status)
               ? base::WithMemoryNeed(status, {bytes, host.total_bytes, host.free_bytes})
               : status;
  };
  // Asked for anyway, it would be given page by page until the kernel kills somebody.
  if (host.total_bytes > 0 && bytes > host.total_bytes)
    return with_need(absl::ResourceExhaustedError("host memory"));
  absl::StatusOr<base::SharedMemory> created = base::CreatePeerWritable("fusiond-buffer", bytes);
  if (!created.ok()) return with_need(created.status());
  base::SharedMemory memory = *std::move(created);
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
