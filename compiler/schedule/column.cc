#include "compiler/schedule/column.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "compiler/schedule/device_model.h"
#include "compiler/schedule/finalise.h"

namespace fusiond::schedule {
namespace {

using executable::DeviceInfo;

constexpr int kThreads = 256;  // 32 along the columns, 8 along the rows; README, figure "column"
constexpr int kMinThreads = 64;
constexpr int kCtasPerSm = 4;    // README, figure "column"
constexpr int kMaxUnroll = 8;    // README, figure "column"
constexpr int kMaxSlots = 4096;  // unrolled, of a thread; README, figure "text"
// Registers of a thread in bytes that loaded vectors, and that accumulators, may take: a quarter
// each of the 128 that 4 CTAs of 128 threads, or 2 of 256, leave.
constexpr int64_t kMaxLoadedBytes = 128;
constexpr int64_t kMaxAccumulatorBytes = 128;
constexpr int64_t kSharedBytes = 48 * 1024;  // that any launch may have

int64_t AccumulatorBytes(const Region& region) {
  int64_t bytes = 0;
  for (uint32_t i : LateReductions(region)) bytes += ir::ByteSize(region.instrs[i].dtype);
  return bytes;
}

// Of one element of each tensor read row by row.
int64_t LoadedBytes(const Region& region) {
  int64_t bytes = 0;
  for (const Instr& instr : region.instrs) {
    if (instr.kind == Instr::Kind::kLoad && instr.value_class == ValueClass::kFull)
      bytes += ir::ByteSize(region.tensors[instr.access.tensor].dtype);
  }
  return std::max<int64_t>(bytes, 1);
}

// Elements side by side that are one access of some heavy tensor.
int WidestAligned(const Region& region, int vector) {
  int widest = 1;
  const size_t inner = region.dims.size() - 1;
  for (const Instr& instr : region.instrs) {
    if (instr.kind != Instr::Kind::kLoad || instr.value_class != ValueClass::kFull) continue;
    const Tensor& tensor = region.tensors[instr.access.tensor];
    if (instr.access.strides[inner] != 1) continue;
    int64_t unit = tensor.alignment / ir::ByteSize(tensor.dtype);
    for (size_t d = 0; d < inner; ++d) {
      while (unit > 1 && instr.access.strides[d] % unit != 0) unit /= 2;
    }
    // More than 16 bytes are several accesses of 16.
    if (unit * ir::ByteSize(tensor.dtype) >= 16) unit = vector;
    widest = std::max<int>(widest, static_cast<int>(std::min<int64_t>(unit, vector)));
  }
  return widest;
}

int64_t Tiles(const Region& region, const KernelSchedule& s) {
  const int64_t tile = int64_t{s.threads_per_row} * s.vector;
  return (region.Columns() + tile - 1) / tile;
}

const char* Variant(const Region& region, const KernelSchedule& s) {
  const bool masked = region.Columns() % (int64_t{s.threads_per_row} * s.vector) != 0;
  if (s.splits > 1) return masked ? "split_masked" : "split";
  return masked ? "whole_masked" : "whole";
}

std::string Applies(const Region& region, const DeviceInfo& device) {
  if (!region.column_reductions) return "it has no column reductions";
  if (region.row_reductions) return "it has row reductions";
  if (region.dims.empty() || !region.dims.back().column) return "it has no columns";
  const int64_t bytes = kMinThreads * AccumulatorBytes(region);
  if (bytes > device.max_smem_per_block) {
    return absl::StrCat("its sums take ", bytes, " bytes of shared memory, the limit is ",
                        device.max_smem_per_block);
  }
  return "";
}

// Vector and threads along the columns.
KernelSchedule Tile(const Region& region, int vector) {
  // A warp lies along one run of memory: its other threads take further rows.
  const int64_t run = region.dims.back().extent / vector;
  int tile_threads = 1;
  while (tile_threads < 32 && tile_threads < run) tile_threads *= 2;
  return ColumnSchedule(region, kThreads, vector, tile_threads);
}

void Split(const Region& region, const DeviceInfo& device, KernelSchedule& s) {
  const int64_t rows_at_once = int64_t{s.threads} / s.threads_per_row * s.unroll;
  // At least two rounds a CTA, or the finalise kernel costs more than it saves.
  const int64_t most = region.Rows() / (2 * rows_at_once);
  const int64_t wanted = int64_t{kCtasPerSm} * device.sm_count / Tiles(region, s);
  s.splits = static_cast<int>(std::clamp<int64_t>(std::min(most, wanted), 1, 65535));
  s.variant = Variant(region, s);
}

std::vector<KernelSchedule> Propose(const Region& region, const DeviceInfo& device) {
  int vector = VectorElements(region);
  while (region.dims.back().extent % vector != 0) vector /= 2;
  vector = WidestAligned(region, vector);
  const int64_t sums = AccumulatorBytes(region);
  while (vector > 1 && vector * sums > kMaxAccumulatorBytes) vector /= 2;
  std::vector<KernelSchedule> candidates;
  for (; vector >= 1; vector /= 2) {
    KernelSchedule s = Tile(region, vector);
    const int slots = std::max(1, SlotsPerElement(region));
    const int64_t rows = std::max<int64_t>(1, region.Rows() * s.threads_per_row / s.threads);
    s.unroll = kMaxUnroll;
    while (s.unroll > 1 && (s.unroll * vector * LoadedBytes(region) > kMaxLoadedBytes ||
                            int64_t{s.unroll} * vector * slots > kMaxSlots || s.unroll > rows))
      s.unroll /= 2;
    Split(region, device, s);
    candidates.push_back(s);
    if (s.unroll == 1) continue;
    s.unroll = 1;
    candidates.push_back(s);
  }
  return candidates;
}

Cost Estimate(const Region& region, const KernelSchedule& s, const DeviceInfo& device) {
  Cost cost;
  cost.dram_bytes = TouchedBytes(region);
  if (s.splits > 1) {
    cost.kernels = 2;
    cost.dram_bytes += 2 * s.splits * region.Columns() * AccumulatorBytes(region);
  }
  cost.microseconds = Microseconds(device, cost.dram_bytes, cost.kernels);
  return cost;
}

}  // namespace

KernelSchedule ColumnSchedule(const Region& region, int threads, int vector, int tile_threads) {
  KernelSchedule s;
  s.scheduler = SchedulerId::kColumn;
  s.vector = vector;
  s.threads_per_row = tile_threads;
  s.threads = threads;
  while (s.threads > std::max(kMinThreads, tile_threads) &&
         s.threads * vector * AccumulatorBytes(region) > kSharedBytes)
    s.threads /= 2;
  s.splits = 1;
  s.variant = Variant(region, s);
  s.smem_bytes = ColumnSharedOffset(region, s, LateReductions(region).size());
  s.wide_index = NeedsWideIndex(region, region.Elements() + s.threads * vector);
  return s;
}

int64_t ColumnSharedOffset(const Region& region, const KernelSchedule& schedule, size_t index) {
  const std::vector<uint32_t> reductions = LateReductions(region);
  int64_t offset = 0;
  for (size_t r = 0; r < index; ++r) {
    const int64_t bytes = int64_t{schedule.threads} * schedule.vector *
                          ir::ByteSize(region.instrs[reductions[r]].dtype);
    offset += (bytes + 15) / 16 * 16;
  }
  return offset;
}

const Scheduler& ColumnScheduler() {
  static constexpr Scheduler scheduler = {SchedulerId::kColumn, Applies, Propose, Estimate};
  return scheduler;
}

}  // namespace fusiond::schedule
