#include "server/pool/host_limits.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

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

// Our cgroup and every one above it, as folders: "/sys/fs/cgroup/a/b", "/sys/fs/cgroup/a", ….
std::vector<std::string> CgroupFolders(const std::string& root) {
  std::vector<std::string> folders;
  for (absl::string_view line : absl::StrSplit(Text(root + "/proc/self/cgroup"), '\n')) {
    if (!absl::ConsumePrefix(&line, "0::/")) continue;  // cgroup v2's line
    for (std::string path(line); !path.empty();) {
      folders.push_back(absl::StrCat(root, "/sys/fs/cgroup/", path));
      const size_t slash = path.rfind('/');
      path.resize(slash == std::string::npos ? 0 : slash);
    }
  }
  folders.push_back(root + "/sys/fs/cgroup");
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

uint64_t HostMemoryBytes(const std::string& root) {
  for (absl::string_view line : absl::StrSplit(Text(root + "/proc/meminfo"), '\n')) {
    uint64_t kibibytes = 0;
    if (absl::ConsumePrefix(&line, "MemTotal:") && absl::ConsumeSuffix(&line, "kB") &&
        absl::SimpleAtoi(line, &kibibytes)) {
      return kibibytes << 10;
    }
  }
  return 0;
}

}  // namespace

HostLimits ReadHostLimits(const std::string& root) {
  HostLimits limits;
  cpu_set_t cpus;
  if (::sched_getaffinity(0, sizeof(cpus), &cpus) == 0) limits.affinity_cpus = CPU_COUNT(&cpus);
  limits.memory_bytes = HostMemoryBytes(root);
  for (const std::string& folder : CgroupFolders(root)) {
    if (std::optional<double> quota = QuotaCpus(Text(folder + "/cpu.max")); quota.has_value()) {
      limits.quota_cpus = std::min(*quota, limits.quota_cpus.value_or(*quota));
    }
    uint64_t bytes = 0;
    if (absl::SimpleAtoi(Text(folder + "/memory.max"), &bytes) &&
        (limits.memory_bytes == 0 || bytes < limits.memory_bytes)) {
      limits.memory_bytes = bytes;
    }
  }
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

}  // namespace fusiond::server
