#include "compiler/schedule/device_model.h"

#include <algorithm>
#include <limits>

#include "compiler/schedule/cost.h"

namespace fusiond::schedule {
namespace {

constexpr double kCopyShare = 0.9;      // of the sheet rate; README, figure "copy"
constexpr double kReachedShare = 0.97;  // of a copy; README, figure "time"
constexpr double kKernelStartUs = 1.5;  // README, figure "time"
constexpr double kCtaBytesPerUs = 40e3;
constexpr double kLatencyUs = 1.0;  // of loads that bytes in flight must cover

}  // namespace

int64_t InFlightBytes(const executable::DeviceInfo& device) {
  return static_cast<int64_t>(device.dram_gb_per_s * 1000 * kLatencyUs / device.sm_count);
}

int64_t TouchedBytes(const Region& region, const Access& access) {
  int64_t bytes = ir::ByteSize(region.tensors[access.tensor].dtype);
  for (size_t d = 0; d < region.dims.size(); ++d)
    if (access.strides[d] != 0) bytes *= region.dims[d].extent;
  return bytes;
}

int64_t TouchedBytes(const Region& region) {
  int64_t bytes = 0;
  ForEachAccess(region, [&](const Access& access) { bytes += TouchedBytes(region, access); });
  return bytes;
}

double Microseconds(const executable::DeviceInfo& device, int64_t dram_bytes, int kernels) {
  return Microseconds(device, dram_bytes, kernels, std::numeric_limits<int64_t>::max());
}

double Microseconds(const executable::DeviceInfo& device, int64_t dram_bytes, int kernels,
                    int64_t ctas) {
  const double bytes_per_us = std::min(device.dram_gb_per_s * 1000 * kCopyShare * kReachedShare,
                                       static_cast<double>(ctas) * kCtaBytesPerUs);
  return kernels * kKernelStartUs + static_cast<double>(dram_bytes) / bytes_per_us;
}

int VectorElements(const Region& region) {
  int64_t narrowest = 8, widest = 1;
  const int64_t elements = region.Elements();
  ForEachAccess(region, [&](const Access& access) {
    const int64_t size = ir::ByteSize(region.tensors[access.tensor].dtype);
    // Small operands come from cache and do not decide.
    if (2 * TouchedBytes(region, access) < elements * size) return;
    narrowest = std::min(narrowest, size);
    widest = std::max(widest, size);
  });
  // Masks of one byte follow their wider companions: 16 elements of anything else cost registers.
  if (widest > 1) narrowest = std::max<int64_t>(narrowest, 2);
  return static_cast<int>(std::min(16 / narrowest, 32 / widest));
}

int64_t VaryingLoadBytes(const Region& region) {
  int64_t bytes = 0;
  for (const Instr& instr : region.instrs) {
    if (instr.kind == Instr::Kind::kLoad && instr.dims != 0)
      bytes += ir::ByteSize(region.tensors[instr.access.tensor].dtype);
  }
  return bytes;
}

int SlotsPerElement(const Region& region) {
  int slots = 0;
  for (const Instr& instr : region.instrs) {
    if (instr.dims == 0) continue;
    slots += IsComputed(instr) || instr.kind == Instr::Kind::kReduce ? IssueSlots(instr) : 1;
  }
  return slots + static_cast<int>(region.stores.size());
}

bool NeedsWideIndex(const Region& region, int64_t elements) {
  constexpr int64_t kLimit = int64_t{1} << 31;
  bool wide = elements >= kLimit;
  ForEachAccess(region, [&](const Access& access) {
    int64_t last = 0;
    for (size_t d = 0; d < region.dims.size(); ++d)
      last += (region.dims[d].extent - 1) * access.strides[d];
    wide |= last >= kLimit;
  });
  return wide;
}

Strides DenseStrides(const Region& region) {
  Strides strides(region.dims.size(), 1);
  for (size_t d = region.dims.size(); d-- > 1;) strides[d - 1] = strides[d] * region.dims[d].extent;
  return strides;
}

}  // namespace fusiond::schedule
