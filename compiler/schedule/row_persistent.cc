#include "compiler/schedule/row_persistent.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "compiler/schedule/cluster.h"
#include "compiler/schedule/device_model.h"
#include "compiler/schedule/stages.h"

namespace fusiond::schedule {
namespace {

using executable::DeviceInfo;

constexpr int kMaxTeam = 512;
constexpr int kThreadsOfCluster = 256;  // of each CTA
// Registers in bytes that a thread gives to what it holds: comfortable, and at most. 64 and 80 of
// the 128 that 512 threads leave each.
constexpr int64_t kComfortableBytes = 192;
constexpr int64_t kMaxBytes = 320;
constexpr int kMaxSlots = 4096;  // unrolled, of a thread; README, figure "text"

const Dim* InnerColumn(const Region& region) {
  return region.dims.empty() || !region.dims.back().column ? nullptr : &region.dims.back();
}

size_t ColumnDims(const Region& region) {
  return std::count_if(region.dims.begin(), region.dims.end(),
                       [](const Dim& dim) { return dim.column; });
}

// Bytes of registers that one column takes from the first load to the last use.
int64_t BytesPerColumn(const Region& region) {
  const Stages stages = PlanStages(region, kRowPersistentMaxAgain);
  int64_t bytes = 0;
  for (uint32_t i = 0; i < region.instrs.size(); ++i) {
    const Instr& instr = region.instrs[i];
    if (instr.kind == Instr::Kind::kLoad && IsElement(region, i))
      bytes += ir::ByteSize(region.tensors[instr.access.tensor].dtype);
  }
  for (uint32_t i : stages.held)
    bytes += std::max<int64_t>(4, ir::ByteSize(region.instrs[i].dtype));
  return bytes;
}

// README, figure "team"; `columns` in units of 16 bits.
int TeamByRule(int64_t columns) {
  if (columns <= 64) return 8;
  if (columns <= 128) return 16;
  if (columns <= 3072) return 32;
  if (columns <= 6144) return 64;
  return columns <= 16384 ? 128 : 256;
}

KernelSchedule WithTeam(const Region& region, RowShape shape, int team) {
  KernelSchedule s;
  s.scheduler = SchedulerId::kRowPersistent;
  s.vector = shape.vector;
  s.threads_per_row = team;
  s.threads = team > 32 ? team : 128;
  s.rows_per_cta = s.threads / team;
  const int64_t columns = region.Columns();
  // A shifted row may begin up to a vector before its first column.
  const int64_t span = columns + (shape.shifted ? shape.vector - 1 : 0);
  const int64_t step = int64_t{team} * shape.vector;
  s.unroll = static_cast<int>((span + step - 1) / step);
  const char* tail = shape.shifted ? "_shifted" : columns % step == 0 ? "" : "_masked";
  s.variant = absl::StrCat(team < 32 ? "part" : team == 32 ? "warp" : "cta", tail);
  s.wide_index = NeedsWideIndex(region, region.Elements() + step);
  return s;
}

// Columns from the first vector's to behind the last one's: a shifted row may begin up to a vector
// before its first column.
int64_t Span(const Region& region, RowShape shape) {
  return region.Columns() + (shape.shifted ? shape.vector - 1 : 0);
}

// A row to the smallest cluster whose threads hold it in comfort; nullopt where none does.
std::optional<KernelSchedule> WithCluster(const Region& region, RowShape shape,
                                          const DeviceInfo& device) {
  if (!device.has_clusters || !ClusterCombines(region)) return std::nullopt;
  const int64_t bytes = BytesPerColumn(region);
  const int64_t step = int64_t{kThreadsOfCluster} * shape.vector;
  for (int cluster = 2; cluster <= kMaxCluster; cluster *= 2) {
    const int64_t own = ColumnsOfCta(Span(region, shape), cluster);
    const int64_t vectors = (own + step - 1) / step;
    if (vectors * shape.vector * bytes > kComfortableBytes ||
        vectors * shape.vector * SlotsPerElement(region) > kMaxSlots)
      continue;
    KernelSchedule s;
    s.scheduler = SchedulerId::kRowPersistent;
    s.vector = shape.vector;
    s.threads = s.threads_per_row = kThreadsOfCluster;
    s.rows_per_cta = 1;
    s.cluster = cluster;
    s.unroll = static_cast<int>(vectors);
    const bool full = own == vectors * step && own * cluster == region.Columns();
    s.variant = absl::StrCat("cluster", shape.shifted ? "_shifted" : full ? "" : "_masked");
    s.wide_index = NeedsWideIndex(region, region.Elements() + step);
    return s;
  }
  return std::nullopt;
}

std::optional<std::string> Refusal(const Region& region, const DeviceInfo& device) {
  if (!region.row_reductions) return "it has no row reductions";
  if (region.column_reductions) return "it has column reductions";
  const RowShape shape = ShapeOfRows(region);
  if (WithCluster(region, shape, device).has_value()) return std::nullopt;
  const int64_t span = Span(region, shape);
  const int64_t step = int64_t{kMaxTeam} * shape.vector;
  const int64_t vectors = (span + step - 1) / step;
  const int64_t bytes = vectors * shape.vector * BytesPerColumn(region);
  if (bytes > kMaxBytes) {
    return absl::StrCat("a row takes ", bytes, " bytes of registers a thread, the limit is ",
                        kMaxBytes);
  }
  const int64_t slots = vectors * shape.vector * SlotsPerElement(region);
  if (slots > kMaxSlots)
    return absl::StrCat("a row takes ", slots, " issue slots a thread, the limit is ", kMaxSlots);
  return std::nullopt;
}

std::string Applies(const Region& region, const DeviceInfo& device) {
  return Refusal(region, device).value_or("");
}

std::vector<KernelSchedule> Propose(const Region& region, const DeviceInfo& device) {
  const RowShape shape = ShapeOfRows(region);
  const int64_t bytes = BytesPerColumn(region);
  const int slots = SlotsPerElement(region);
  const int64_t columns = region.Columns();
  int team = TeamByRule(columns * bytes / 2);
  // No thread without a column.
  while (team > 8 && int64_t{team} / 2 * shape.vector >= columns) team /= 2;
  const auto columns_of_thread = [&](int threads) {
    const int64_t step = int64_t{threads} * shape.vector;
    return (Span(region, shape) + step - 1) / step * shape.vector;
  };
  const auto fits = [&](int threads, int64_t most) {
    return columns_of_thread(threads) * bytes <= most &&
           columns_of_thread(threads) * slots <= kMaxSlots;
  };
  while (team < kMaxTeam && !fits(team, kComfortableBytes)) team *= 2;
  std::vector<KernelSchedule> candidates;
  if (!fits(team, kComfortableBytes)) {
    if (std::optional<KernelSchedule> s = WithCluster(region, shape, device))
      candidates.push_back(*std::move(s));
    if (!fits(team, kMaxBytes)) return candidates;
  }
  for (; team <= kMaxTeam; team *= 2) candidates.push_back(WithTeam(region, shape, team));
  return candidates;
}

Cost Estimate(const Region& region, const KernelSchedule& s, const DeviceInfo& device) {
  Cost cost;
  cost.dram_bytes = TouchedBytes(region);
  // Rows that share a CTA are short.
  cost.microseconds =
      Microseconds(device, cost.dram_bytes, cost.kernels, region.Rows() * std::max(1, s.cluster));
  return cost;
}

bool RowsShareAPhase(const Region& region, int vector) {
  if (ColumnDims(region) != 1) return false;
  const Access* first = nullptr;
  bool contiguous = false;
  const auto joins = [&](const Access& access) {
    const size_t inner = region.dims.size() - 1;
    contiguous |= access.strides[inner] == 1;
    const bool row_and_column =
        access.strides[inner] != 0 &&
        std::any_of(access.strides.begin(), access.strides.end() - 1, [](int64_t s) { return s; });
    if (!row_and_column) return true;
    if (access.strides[inner] != 1) return false;
    const Tensor& tensor = region.tensors[access.tensor];
    if (tensor.alignment % std::min<int64_t>(16, vector * ir::ByteSize(tensor.dtype)) != 0)
      return false;
    if (first == nullptr) first = &access;
    for (size_t d = 0; d < inner; ++d)
      if ((access.strides[d] - first->strides[d]) % vector != 0) return false;
    return true;
  };
  for (const Instr& instr : region.instrs)
    if (instr.kind == Instr::Kind::kLoad && !joins(instr.access)) return false;
  for (const Store& store : region.stores)
    if (!joins(store.access)) return false;
  return contiguous;
}

}  // namespace

RowShape ShapeOfRows(const Region& region) {
  const Dim* inner = InnerColumn(region);
  if (inner == nullptr) return {};
  const int widest = VectorElements(region);
  int inside = widest;
  while (inner->extent % inside != 0) inside /= 2;
  if (2 * inside >= widest || !RowsShareAPhase(region, widest)) return {inside, false};
  return {widest, true};
}

int64_t RowPersistentColumnsOfCta(const Region& region, const KernelSchedule& schedule) {
  return ColumnsOfCta(Span(region, ShapeOfRows(region)), schedule.cluster);
}

const Scheduler& RowPersistentScheduler() {
  static constexpr Scheduler scheduler = {SchedulerId::kRowPersistent, Applies, Propose, Estimate};
  return scheduler;
}

}  // namespace fusiond::schedule
