#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/executable/device_info.h"

namespace fusiond::executable {
namespace {

constexpr int64_t kKiB = 1024;
constexpr int64_t kMiB = 1024 * kKiB;

// What the compute capability alone decides. Source: CUDA C++ Programming Guide 13.0, table
// "Technical Specifications per Compute Capability" (shared memory, registers, threads) and its
// feature table; kernel arguments of 32,764 bytes from 7.0 with driver 530 (CUDA 12.1 release
// notes).
struct ArchRow {
  const char* arch;
  int compute_capability;
  int64_t max_smem_per_block;
  int64_t smem_per_sm;
  int max_threads_per_sm;
};
constexpr ArchRow kArchs[] = {
    {"sm_80", 80, 163 * kKiB, 164 * kKiB, 2048},    {"sm_86", 86, 99 * kKiB, 100 * kKiB, 1536},
    {"sm_89", 89, 99 * kKiB, 100 * kKiB, 1536},     {"sm_90a", 90, 227 * kKiB, 228 * kKiB, 2048},
    {"sm_100a", 100, 227 * kKiB, 228 * kKiB, 2048}, {"sm_120a", 120, 99 * kKiB, 100 * kKiB, 1536},
};

// What the card decides. Source: NVIDIA data sheets (SMs, L2, memory rate); `match` is a part of
// the marketing name. The first row of an arch gives its default.
struct CardRow {
  const char* profile;
  const char* match;
  const char* arch;
  int sm_count;
  int64_t l2_bytes;
  double dram_gb_per_s;
};
constexpr CardRow kCards[] = {
    {"a100", "A100", "sm_80", 108, 40 * kMiB, 2039},
    {"a30", "A30", "sm_80", 56, 24 * kMiB, 933},
    {"a10", "A10", "sm_86", 72, 6 * kMiB, 600},
    {"rtx3090", "RTX 3090", "sm_86", 82, 6 * kMiB, 936},
    {"l40s", "L40S", "sm_89", 142, 96 * kMiB, 864},
    {"rtx6000ada", "RTX 6000 Ada", "sm_89", 142, 96 * kMiB, 960},
    {"rtx4090", "RTX 4090", "sm_89", 128, 72 * kMiB, 1008},
    {"l4", "L4", "sm_89", 58, 48 * kMiB, 300},
    {"h100", "H100", "sm_90a", 132, 50 * kMiB, 3352},
    {"h200", "H200", "sm_90a", 132, 60 * kMiB, 4800},
    {"b200", "B200", "sm_100a", 148, 126 * kMiB, 8000},
    {"rtx5090", "RTX 5090", "sm_120a", 170, 96 * kMiB, 1792},
};

DeviceInfo Make(const ArchRow& arch, const CardRow& card, absl::string_view profile) {
  DeviceInfo info;
  info.arch = arch.arch;
  info.profile = std::string(profile);
  info.compute_capability = arch.compute_capability;
  info.sm_count = card.sm_count;
  info.max_smem_per_block = arch.max_smem_per_block;
  info.smem_per_sm = arch.smem_per_sm;
  info.max_threads_per_sm = arch.max_threads_per_sm;
  info.l2_bytes = card.l2_bytes;
  info.dram_gb_per_s = card.dram_gb_per_s;
  info.has_cp_async = true;
  const bool hopper = arch.compute_capability >= 90;
  info.has_bulk_copy = hopper;
  info.has_clusters = hopper;
  info.has_pdl = hopper;
  return info;
}

const ArchRow* FindArch(absl::string_view name) {
  auto row = std::find_if(std::begin(kArchs), std::end(kArchs),
                          [name](const ArchRow& a) { return a.arch == name; });
  return row == std::end(kArchs) ? nullptr : row;
}

}  // namespace

const std::vector<DeviceInfo>& Profiles() {
  static const std::vector<DeviceInfo> profiles = [] {
    std::vector<DeviceInfo> all;
    for (const CardRow& card : kCards)
      all.push_back(Make(*FindArch(card.arch), card, card.profile));
    for (const ArchRow& arch : kArchs) {
      const CardRow* first =
          std::find_if(std::begin(kCards), std::end(kCards),
                       [&](const CardRow& c) { return arch.arch == std::string(c.arch); });
      all.push_back(Make(arch, *first, arch.arch));
    }
    DeviceInfo cpu;
    cpu.arch = std::string(kCpuArch);
    cpu.profile = std::string(kCpuArch);
    cpu.sm_count = 1;
    all.push_back(cpu);
    return all;
  }();
  return profiles;
}

absl::StatusOr<DeviceInfo> ProfileByName(absl::string_view name) {
  for (const DeviceInfo& info : Profiles()) {
    if (info.profile == name) return info;
  }
  return absl::NotFoundError(absl::StrCat(
      "device profile '", absl::CHexEscape(name.substr(0, 64)), "' is unknown; known: ",
      absl::StrJoin(Profiles(), ", ",
                    [](std::string* out, const DeviceInfo& info) { out->append(info.profile); })));
}

absl::StatusOr<DeviceInfo> ProfileForCard(absl::string_view card_name, int compute_capability) {
  const ArchRow* arch = std::find_if(std::begin(kArchs), std::end(kArchs), [&](const ArchRow& a) {
    return a.compute_capability == compute_capability;
  });
  if (arch == std::end(kArchs)) {
    return absl::FailedPreconditionError(
        absl::StrCat(card_name, ": compute capability ", compute_capability / 10, ".",
                     compute_capability % 10, " is not one of 8.0, 8.6, 8.9, 9.0, 10.0, 12.0"));
  }
  // The longest match decides, so that "L40S" is not taken for an L4.
  const CardRow* best = nullptr;
  for (const CardRow& card : kCards) {
    if (card.arch != absl::string_view(arch->arch) || !absl::StrContains(card_name, card.match))
      continue;
    if (best == nullptr ||
        absl::string_view(card.match).size() > absl::string_view(best->match).size()) {
      best = &card;
    }
  }
  return ProfileByName(best != nullptr ? best->profile : arch->arch);
}

}  // namespace fusiond::executable
