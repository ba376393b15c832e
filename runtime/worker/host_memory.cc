#include "runtime/worker/host_memory.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "runtime/base/status_numbers.h"

namespace fusiond::worker {
namespace {

constexpr uint64_t kUnknown = std::numeric_limits<uint64_t>::max();

uint64_t MachineBytes() {
  struct sysinfo info;
  return ::sysinfo(&info) == 0 ? uint64_t{info.totalram} * info.mem_unit : kUnknown;
}

// ulimit -v, which buffers and evaluations count against too.
uint64_t AddressSpace() {
  struct rlimit limit;
  const bool given = ::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  return given ? limit.rlim_cur : kUnknown;
}

// MemAvailable, which counts what the kernel would drop for us.
std::optional<uint64_t> AvailableBytes(int meminfo) {
  char text[1024];  // it is the third line
  const ssize_t size = ::pread(meminfo, text, sizeof(text), 0);
  if (size <= 0) return std::nullopt;
  for (absl::string_view line :
       absl::StrSplit(absl::string_view(text, static_cast<size_t>(size)), '\n')) {
    uint64_t kibibytes = 0;
    if (absl::ConsumePrefix(&line, "MemAvailable:") && absl::ConsumeSuffix(&line, "kB") &&
        absl::SimpleAtoi(line, &kibibytes)) {
      return kibibytes << 10;
    }
  }
  return std::nullopt;
}

}  // namespace

HostMemory::HostMemory(uint64_t limit_bytes, const std::string& meminfo)
    : meminfo_(::open(meminfo.c_str(), O_RDONLY | O_CLOEXEC)),
      limit_bytes_(std::min(limit_bytes != 0 ? limit_bytes : MachineBytes(), AddressSpace())) {}

uint64_t HostMemory::FreeBytes() const {
  const uint64_t taken = std::min(taken_.load(std::memory_order_relaxed), limit_bytes_);
  return std::min(limit_bytes_ - taken, AvailableBytes(meminfo_.get()).value_or(kUnknown));
}

absl::Status HostMemory::CheckRoom(absl::string_view what, uint64_t bytes) const {
  const uint64_t free = FreeBytes();
  if (bytes <= free) return absl::OkStatus();
  return base::WithMemoryNeed(absl::ResourceExhaustedError(what), {bytes, limit_bytes_, free});
}

}  // namespace fusiond::worker
