#include "server/pool/host_limits.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "runtime/base/file.h"

namespace fusiond::server {
namespace {

constexpr size_t kMaxFileBytes = 64 << 10;

// A small file's text without white space at its ends; empty if it cannot be read.
std::string Text(const std::string& path) {
  absl::StatusOr<std::string> text = base::ReadFile(path, kMaxFileBytes);
  return text.ok() ? std::string(absl::StripAsciiWhitespace(*text)) : "";
}

// What names the files of a controller, and where they are.
struct Cgroup {
  const char* controller;  // as /proc/self/cgroup lists it; "" is v2, which has all in one
  const char* mount;
};
constexpr Cgroup kUnified = {"", "/sys/fs/cgroup"};
constexpr Cgroup kCpu = {"cpu", "/sys/fs/cgroup/cpu"};
constexpr Cgroup kMemory = {"memory", "/sys/fs/cgroup/memory"};

// Our cgroup and every one above it, as folders: "/sys/fs/cgroup/a/b", "/sys/fs/cgroup/a", ….
std::vector<std::string> CgroupFolders(const std::string& root, const Cgroup& cgroup) {
  std::vector<std::string> folders;
  for (absl::string_view line : absl::StrSplit(Text(root + "/proc/self/cgroup"), '\n')) {
    const std::vector<absl::string_view> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3) continue;
    const std::vector<absl::string_view> controllers = absl::StrSplit(parts[1], ',');
    if (!absl::c_linear_search(controllers, cgroup.controller)) continue;
    for (std::string path(absl::StripPrefix(parts[2], "/")); !path.empty();) {
      folders.push_back(absl::StrCat(root, cgroup.mount, "/", path));
      const size_t slash = path.rfind('/');
      path.resize(slash == std::string::npos ? 0 : slash);
    }
  }
  folders.push_back(root + cgroup.mount);
  return folders;
}

// "max 100000" (no limit), "150000 100000" (1.5 CPUs).
std::optional<double> QuotaCpus(const std::string& cpu_max) {
  std::vector<absl::string_view> parts = absl::StrSplit(cpu_max, ' ');
  double quota = 0, period = 0;
  if (parts.size() != 2 || !absl::SimpleAtod(parts[0], &quota) ||
      !absl::SimpleAtod(parts[1], &period) || quota <= 0 || period <= 0) {
    return std::nullopt;
  }
  return quota / period;
}

// A line of /proc/meminfo; 0 if it is not there.
uint64_t MemoryInfo(const std::string& root, absl::string_view name) {
  for (absl::string_view line : absl::StrSplit(Text(root + "/proc/meminfo"), '\n')) {
    uint64_t kibibytes = 0;
    if (absl::ConsumePrefix(&line, name) && absl::ConsumeSuffix(&line, "kB") &&
        absl::SimpleAtoi(line, &kibibytes)) {
      return kibibytes << 10;
    }
  }
  return 0;
}

// The smaller of two, of which 0 is not known.
uint64_t Tighter(uint64_t a, uint64_t b) { return a == 0 || (b != 0 && b < a) ? b : a; }

uint64_t NumberIn(const std::string& path) {
  uint64_t number = 0;
  return absl::SimpleAtoi(Text(path), &number) ? number : 0;
}

}  // namespace

HostLimits ReadHostLimits(const std::string& root) {
  HostLimits limits;
  cpu_set_t cpus;
  if (::sched_getaffinity(0, sizeof(cpus), &cpus) == 0) limits.affinity_cpus = CPU_COUNT(&cpus);
  const auto quota = [&limits](const std::string& cpu_max) {
    const std::optional<double> cpus = QuotaCpus(cpu_max);
    if (cpus.has_value()) limits.quota_cpus = std::min(*cpus, limits.quota_cpus.value_or(*cpus));
  };
  limits.memory_bytes = MemoryInfo(root, "MemTotal:");
  for (const std::string& folder : CgroupFolders(root, kUnified)) {
    quota(Text(folder + "/cpu.max"));
    limits.memory_bytes = Tighter(limits.memory_bytes, NumberIn(folder + "/memory.max"));
  }
  for (const std::string& folder : CgroupFolders(root, kCpu))
    quota(
        absl::StrCat(Text(folder + "/cpu.cfs_quota_us"), " ", Text(folder + "/cpu.cfs_period_us")));
  for (const std::string& folder : CgroupFolders(root, kMemory))
    limits.memory_bytes = Tighter(limits.memory_bytes, NumberIn(folder + "/memory.limit_in_bytes"));
  limits.available_bytes = Tighter(limits.memory_bytes, MemoryInfo(root, "MemAvailable:"));
  return limits;
}

int CompileProcessCount(const HostLimits& limits, uint64_t bytes_per_process, int cap) {
  double count = limits.affinity_cpus;
  if (limits.quota_cpus.has_value()) count = std::min(count, std::ceil(*limits.quota_cpus));
  if (limits.memory_bytes != 0 && bytes_per_process != 0) {
    count = std::min(count, std::floor(static_cast<double>(limits.memory_bytes) /
                                       static_cast<double>(bytes_per_process)));
  }
  if (cap > 0) count = std::min(count, static_cast<double>(cap));
  return std::max(1, static_cast<int>(count));
}

int64_t ShareOfMemory(const HostLimits& limits, int64_t divisor, int64_t least, int64_t most) {
  if (limits.available_bytes == 0) return most;
  const uint64_t share = limits.available_bytes / static_cast<uint64_t>(divisor);
  return std::min(most, std::max(least, static_cast<int64_t>(share)));
}

}  // namespace fusiond::server
