#include "compiler/schedule/row_column.h"

#include <algorithm>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler/schedule/cluster.h"
#include "compiler/schedule/device_model.h"
#include "compiler/schedule/finalise.h"

namespace fusiond::schedule {
namespace {

using executable::DeviceInfo;

// README, figure "row and column".
constexpr int kWarps = 16;  // of a CTA
constexpr int kWarpsOfOneWarpRows = 12;
constexpr int kMaxColumnsOfLane = 32;
constexpr int kStages = 3;
constexpr int kStagesOfCluster = 6;
constexpr int64_t kMaxColumnsOfClusterLane = 16;
// As kMaxWords: two rows are under way.
constexpr int64_t kMaxClusterWords = 64;
constexpr int64_t kMaxRingBytes = 192 * 1024;
// Words of a thread that live through a row, out of the 128 registers of 16 warps: with 96 (layer
// norm, 32 columns a lane) NVRTC 13.0 spills.
constexpr int64_t kMaxWords = 92;
// Rows that come straight to registers keep an address and a mask for what is in flight: with 96
// words NVRTC 13.0 spills on sm_86, sm_89 and sm_90a.
constexpr int64_t kMaxDirectWords = 88;
// Up to here elements are kept converted, which spares NVRTC a tenth of its work.
constexpr int64_t kMaxUnpackedWords = 80;
constexpr int kMaxSlots = 4096;  // unrolled, of a thread; README, figure "text"
constexpr int64_t kBulkAlignment = 128;
constexpr size_t kCandidatesOfSource = 2;

enum class Source { kBulk, kAsync, kDirect };

const char* Name(Source source) {
  return source == Source::kBulk ? "bulk" : source == Source::kAsync ? "async" : "direct";
}

int64_t RoundUp(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

uint32_t RowMask(const Region& region) {
  uint32_t mask = 0;
  for (size_t d = 0; d < region.dims.size(); ++d)
    if (!region.dims[d].column) mask |= 1u << d;
  return mask;
}

// Whether an element load's rows are runs of memory that copies of 16 bytes can bring.
bool CopiesRows(const Region& region, const Access& access, Source source, int vector) {
  if (source == Source::kDirect) return false;
  const size_t inner = region.dims.size() - 1;
  if (access.strides[inner] != 1) return false;
  if (inner > 0 && region.dims[inner - 1].column) return false;
  const Tensor& tensor = region.tensors[access.tensor];
  const int64_t size = ir::ByteSize(tensor.dtype);
  if (tensor.alignment % 16 != 0) return false;
  for (size_t d = 0; d < inner; ++d)
    if (access.strides[d] * size % 16 != 0) return false;
  // A thread copies the very vectors that it will read; a bulk copy takes the row as a whole.
  return (source == Source::kAsync ? vector : region.Columns()) * size % 16 == 0;
}

std::vector<uint32_t> ElementLoads(const Region& region, const Stages& stages) {
  std::vector<bool> used(region.instrs.size(), false);
  for (const Pass& pass : stages.passes)
    for (uint32_t i : pass.loads) used[i] = true;
  std::vector<uint32_t> loads;
  for (uint32_t i = 0; i < used.size(); ++i)
    if (used[i]) loads.push_back(i);
  return loads;
}

// Registers of `columns` values of a thread, in vectors of `vector`.
int64_t Words(ir::DType dtype, int64_t columns, int vector) {
  const int64_t vector_words = std::max<int64_t>(1, vector * ir::ByteSize(dtype) / 4);
  return columns / vector * vector_words;
}

struct Pressure {
  int64_t words = 0;         // that live through a row
  int64_t column_words = 0;  // of them, of loads that are the same for all rows
  int64_t packed_words = 0;  // what they would grow by, were all loads converted
};

Pressure PressureOf(const Region& region, const Stages& stages, int64_t columns, int vector) {
  Pressure pressure;
  for (uint32_t i : ElementLoads(region, stages)) {
    const Instr& instr = region.instrs[i];
    const int64_t words = Words(region.tensors[instr.access.tensor].dtype, columns, vector);
    pressure.words += words;
    pressure.packed_words += std::max<int64_t>(0, Words(instr.dtype, columns, vector) - words);
    if ((instr.dims & RowMask(region)) == 0) pressure.column_words += words;
  }
  for (uint32_t i : stages.held) pressure.words += Words(region.instrs[i].dtype, columns, vector);
  for (uint32_t i : LateReductions(region))
    pressure.words += columns * std::max<int64_t>(1, ir::ByteSize(region.instrs[i].dtype) / 4);
  return pressure;
}

int VectorOf(const Region& region) {
  int vector = VectorElements(region);
  while (region.dims.back().extent % vector != 0) vector /= 2;
  return vector;
}

// Warps that share a row: 1 up to 1024 columns, 4 at 2048, 8 at 4096, 16 at 8192 (README, figure
// "row and column").
int WarpsByRule(int64_t columns) {
  return columns <= 1024 ? 1 : columns <= 2048 ? 4 : columns <= 4096 ? 8 : 16;
}

// With `warps` warps a row; nullopt where that does not fit.
std::optional<KernelSchedule> WithWarps(const Region& region, const Stages& stages,
                                        const DeviceInfo& device, Source source, int warps) {
  KernelSchedule s;
  s.scheduler = SchedulerId::kRowColumn;
  s.vector = VectorOf(region);
  s.threads_per_row = warps * 32;
  const int64_t step = int64_t{s.threads_per_row} * s.vector;
  s.unroll = static_cast<int>((region.Columns() + step - 1) / step);
  const int64_t columns = int64_t{s.unroll} * s.vector;
  if (columns > kMaxColumnsOfLane || columns * SlotsPerElement(region) > kMaxSlots)
    return std::nullopt;
  const Pressure pressure = PressureOf(region, stages, columns, s.vector);
  // Weights in shared memory where registers run short (README, figure "row and column").
  const int64_t most = source == Source::kDirect ? kMaxDirectWords : kMaxWords;
  s.shared_columns = pressure.words > most;
  if (pressure.words - (s.shared_columns ? pressure.column_words : 0) > most) return std::nullopt;

  s.unpacked =
      pressure.packed_words > 0 && pressure.words + pressure.packed_words <= kMaxUnpackedWords;

  s.wide_index = NeedsWideIndex(region, region.Elements() + step);
  const bool few = warps == 1 && !s.shared_columns;
  for (int teams = few ? kWarpsOfOneWarpRows : kWarps / warps; teams >= 1; teams /= 2) {
    s.rows_per_cta = teams;
    s.threads = teams * s.threads_per_row;
    s.variant = absl::StrCat(Name(source), warps == 1 ? "_warp" : teams > 1 ? "_team" : "_cta");
    for (s.stages = source == Source::kDirect ? 0 : kStages; s.stages != 1; --s.stages) {
      const RowColumnLayout layout = LayOutRowColumn(region, stages, s);
      if (source != Source::kDirect && layout.ring.empty()) return std::nullopt;
      s.smem_bytes = layout.bytes();
      const bool fits = s.smem_bytes <= device.max_smem_per_block &&
                        teams * s.stages * layout.stage_bytes <= kMaxRingBytes;
      if (fits) return s;
      if (s.stages == 0) break;
    }
  }
  return std::nullopt;
}

// A row to a cluster of `cluster` CTAs; nullopt where that does not fit.
std::optional<KernelSchedule> WithCluster(const Region& region, const Stages& stages,
                                          const DeviceInfo& device, int cluster) {
  KernelSchedule s;
  s.scheduler = SchedulerId::kRowColumn;
  s.variant = "bulk_cluster";
  s.vector = VectorOf(region);
  s.threads = s.threads_per_row = kWarps * 32;
  s.rows_per_cta = 1;
  s.cluster = cluster;
  const int64_t step = int64_t{s.threads} * s.vector;
  const int64_t own = ColumnsOfCta(region.Columns(), cluster);
  s.unroll = static_cast<int>((own + step - 1) / step);
  const int64_t columns = int64_t{s.unroll} * s.vector;
  if (columns > kMaxColumnsOfClusterLane || columns * SlotsPerElement(region) > kMaxSlots)
    return std::nullopt;
  const Pressure pressure = PressureOf(region, stages, columns, s.vector);
  s.shared_columns = pressure.words > kMaxClusterWords;
  if (pressure.words - (s.shared_columns ? pressure.column_words : 0) > kMaxClusterWords)
    return std::nullopt;
  s.wide_index = NeedsWideIndex(region, region.Elements() + step);
  // README, figure "row and column": not every SM has neighbours left to form a cluster with.
  const int64_t clusters = std::max(1, device.sm_count * 91 / (100 * cluster));
  s.splits = static_cast<int>(std::min(region.Rows(), clusters));
  for (s.stages = kStagesOfCluster; s.stages > kClusterStagesInUse; --s.stages) {
    const RowColumnLayout layout = LayOutRowColumn(region, stages, s);
    if (layout.ring.empty() || !layout.direct.empty()) return std::nullopt;
    s.smem_bytes = layout.bytes();
    if (s.smem_bytes <= device.max_smem_per_block) return s;
  }
  return std::nullopt;
}

// A row to the smallest cluster that can have it.
std::optional<KernelSchedule> WithCluster(const Region& region, const DeviceInfo& device) {
  const Stages stages = PlanStages(region, kRowColumnMaxAgainInCluster);
  if (!device.has_clusters || !device.has_bulk_copy || !ClusterCombines(region) ||
      stages.passes[0].reductions.empty() ||
      region.Columns() <= kWarps * 32 * kMaxColumnsOfClusterLane)
    return std::nullopt;
  for (int cluster = 2; cluster <= kMaxCluster; ++cluster) {
    if (std::optional<KernelSchedule> s = WithCluster(region, stages, device, cluster)) return s;
  }
  return std::nullopt;
}

// README, figure "row and column": the largest grid that divides the rows evenly, if it costs under
// 4 % of the SMs.
int Grid(int64_t rows, int sm_count) {
  if (rows <= sm_count) return static_cast<int>(rows);
  for (int ctas = sm_count; ctas * 100 > sm_count * 96; --ctas)
    if (rows % ctas == 0) return ctas;
  return sm_count;
}

std::vector<KernelSchedule> Propose(const Region& region, const DeviceInfo& device) {
  const Stages stages = PlanStages(region, kRowColumnMaxAgain);
  std::vector<Source> sources;
  if (device.has_bulk_copy) sources.push_back(Source::kBulk);
  if (device.has_cp_async) sources.push_back(Source::kAsync);
  sources.push_back(Source::kDirect);
  std::vector<KernelSchedule> candidates;
  if (std::optional<KernelSchedule> s = WithCluster(region, device))
    candidates.push_back(*std::move(s));
  for (Source source : sources) {
    const size_t most = candidates.size() + kCandidatesOfSource;
    for (int warps = WarpsByRule(region.Columns()); warps <= kWarps; warps *= 2) {
      if (candidates.size() == most) break;
      if (std::optional<KernelSchedule> s = WithWarps(region, stages, device, source, warps)) {
        s->splits = Grid(region.Rows(), device.sm_count);
        candidates.push_back(*std::move(s));
      }
    }
  }
  return candidates;
}

std::string Applies(const Region& region, const DeviceInfo& device) {
  if (!region.row_reductions || !region.column_reductions)
    return "it has not both row and column reductions";
  if (std::any_of(region.instrs.begin(), region.instrs.end(),
                  [](const Instr& instr) { return instr.kind == Instr::Kind::kFetch; }))
    return "it reads at computed indices";
  if (Propose(region, device).empty()) {
    return absl::StrCat("rows of ", region.Columns(),
                        " columns and their sums do not fit the registers of a CTA or cluster");
  }
  return "";
}

Cost Estimate(const Region& region, const KernelSchedule& s, const DeviceInfo& device) {
  Cost cost;
  cost.kernels = 2;
  cost.dram_bytes = TouchedBytes(region);
  for (uint32_t i : LateReductions(region))
    cost.dram_bytes += 2 * s.splits * region.Columns() * ir::ByteSize(region.instrs[i].dtype);
  cost.microseconds = Microseconds(device, cost.dram_bytes, cost.kernels);
  return cost;
}

}  // namespace

RowColumnLayout LayOutRowColumn(const Region& region, const Stages& stages,
                                const KernelSchedule& s) {
  const Source source = absl::StartsWith(s.variant, "bulk")    ? Source::kBulk
                        : absl::StartsWith(s.variant, "async") ? Source::kAsync
                                                               : Source::kDirect;
  const int64_t teams = s.rows_per_cta, warps = s.threads_per_row / 32;
  RowColumnLayout layout;
  layout.columns_of_cta = ColumnsOfCta(region.Columns(), s.cluster);
  layout.empty = source == Source::kBulk ? RoundUp(8 * teams * s.stages, 16) : 0;
  layout.meetings = layout.empty + (s.cluster > 1 ? RoundUp(8 * s.stages, 16) : 0);
  const auto passes = static_cast<int64_t>(stages.passes.size());
  layout.slots = layout.meetings + (s.cluster > 1 ? 8 * kClusterSlots * passes : 0);
  int64_t at = layout.slots;
  if (warps > 1) {
    const int64_t slots = s.cluster > 1 ? kClusterSlots * s.cluster : 2 * teams;
    for (const Pass& pass : stages.passes) {
      for (uint32_t i : pass.reductions)
        at += RoundUp(slots * warps * ir::ByteSize(region.instrs[i].dtype), 16);
    }
  }
  for (uint32_t i : ElementLoads(region, stages)) {
    const Access& access = region.instrs[i].access;
    const int64_t row_bytes =
        layout.columns_of_cta * ir::ByteSize(region.tensors[access.tensor].dtype);
    if ((region.instrs[i].dims & RowMask(region)) == 0) {
      if (!s.shared_columns || access.strides.back() != 1) {
        layout.columns.push_back(i);
        continue;
      }
      layout.shared_columns.push_back({i, at});
      at += RoundUp(row_bytes, 16);
    } else if (CopiesRows(region, access, source, s.vector)) {
      layout.ring.push_back({i, layout.stage_bytes});
      layout.stage_bytes += RoundUp(row_bytes, kBulkAlignment);
    } else {
      layout.direct.push_back(i);
    }
  }
  layout.arena = RoundUp(at, kBulkAlignment);
  layout.arena_bytes = teams * s.stages * layout.stage_bytes;
  const int64_t span = int64_t{s.unroll} * s.threads_per_row * s.vector;
  for (uint32_t i : LateReductions(region)) {
    layout.arena_bytes =
        std::max(layout.arena_bytes, teams * span * ir::ByteSize(region.instrs[i].dtype));
  }
  return layout;
}

const Scheduler& RowColumnScheduler() {
  static constexpr Scheduler scheduler = {SchedulerId::kRowColumn, Applies, Propose, Estimate};
  return scheduler;
}

}  // namespace fusiond::schedule
