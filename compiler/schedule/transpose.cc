#include "compiler/schedule/transpose.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "compiler/schedule/device_model.h"

namespace fusiond::schedule {
namespace {

using executable::DeviceInfo;

constexpr int kThreads = 256;
// 128 bytes of a 16-bit tensor on either side; README, figure "transpose".
constexpr int64_t kTileSide = 64;
constexpr int64_t kTileElements = kTileSide * kTileSide;
constexpr int64_t kMinTileElements = 512;    // a warp of the widest vectors, 16 elements
constexpr int64_t kSharedBytes = 48 * 1024;  // that any launch may have
constexpr int kMaxSlots = 4096;              // unrolled, of a thread; README, figure "text"
// Registers of a thread in bytes that loaded vectors may take: a quarter of what it may hold.
constexpr int64_t kMaxLoadedBytes = 256;
constexpr int64_t kPadBytes = 4;  // a bank

bool Crosses(const Access& access, size_t a, size_t b) {
  return access.strides[b] == 1 && access.strides[a] > 1;
}

// The dim along which most bytes run that cross the innermost; the innermost itself if none do.
size_t OtherDim(const Region& region) {
  const size_t a = region.dims.size() - 1;
  size_t other = a;
  int64_t most = 0;
  for (size_t b = 0; b < a; ++b) {
    int64_t bytes = 0;
    ForEachAccess(region, [&](const Access& access) {
      if (Crosses(access, a, b)) bytes += TouchedBytes(region, access);
    });
    if (bytes > most) other = b;
    most = std::max(most, bytes);
  }
  return other;
}

int VectorAlong(const Region& region, size_t dim) {
  int vector = VectorElements(region);
  while (region.dims[dim].extent % vector != 0) vector /= 2;
  return vector;
}

// The smallest power of two, up to `most`, that holds `extent`.
int64_t Side(int64_t extent, int64_t most) {
  int64_t side = 1;
  while (side < extent && side < most) side *= 2;
  return side;
}

// With tiles of `a_side` x `b_side` elements.
KernelSchedule WithTile(const Region& region, int64_t a_side, int64_t b_side) {
  KernelSchedule s;
  s.scheduler = SchedulerId::kTranspose;
  s.vector =
      static_cast<int>(std::min<int64_t>(VectorAlong(region, region.dims.size() - 1), a_side));
  s.threads_per_row = static_cast<int>(a_side / s.vector);
  s.rows_per_cta = static_cast<int>(b_side);
  const TransposeTile tile = LayOutTranspose(region, s);
  // Every thread has a vector on either side.
  const int64_t widest = std::max(s.vector, tile.b_vector);
  s.threads = static_cast<int>(std::min<int64_t>(kThreads, a_side * b_side / widest));
  s.unroll = static_cast<int>(a_side * b_side / (int64_t{s.vector} * s.threads));
  const bool whole =
      region.dims[tile.a].extent % a_side == 0 && region.dims[tile.b].extent % b_side == 0;
  s.variant = whole ? "tile" : "tile_masked";
  s.smem_bytes = tile.bytes;
  s.wide_index = NeedsWideIndex(region, region.Elements() + a_side * b_side);
  return s;
}

std::vector<KernelSchedule> Propose(const Region& region, const DeviceInfo&) {
  const int64_t a_extent = region.dims.back().extent;
  const int64_t b_extent = region.dims[OtherDim(region)].extent;
  int64_t a_side = Side(a_extent, kTileSide), b_side = Side(b_extent, kTileSide);
  // A short side leaves its share to the other one.
  while (a_side * b_side < kTileElements) {
    int64_t& longer = a_side < a_extent ? a_side : b_side;
    longer *= 2;
  }
  const int64_t slots = std::max(1, SlotsPerElement(region));
  std::vector<KernelSchedule> candidates;
  for (; a_side * b_side >= kMinTileElements; (b_side > a_side ? b_side : a_side) /= 2) {
    const KernelSchedule s = WithTile(region, a_side, b_side);
    const int64_t elements = int64_t{s.unroll} * s.vector;
    const bool small = a_side * b_side == kMinTileElements;
    if (s.smem_bytes > kSharedBytes) continue;
    if (small ||
        (elements * slots <= kMaxSlots && elements * VaryingLoadBytes(region) <= kMaxLoadedBytes))
      candidates.push_back(s);
  }
  return candidates;
}

std::string Applies(const Region& region, const DeviceInfo& device) {
  if (region.row_reductions || region.column_reductions) return "it has reductions";
  if (region.dims.size() < 2) return "it has one dim";
  if (TakesCoordinates(region)) return "it computes indices";
  if (OtherDim(region) + 1 == region.dims.size()) return "no tensor runs along another dim";
  if (Propose(region, device).empty()) {
    return absl::StrCat("tiles of ", kMinTileElements, " elements take more shared memory than ",
                        kSharedBytes, " bytes");
  }
  return "";
}

Cost Estimate(const Region& region, const KernelSchedule&, const DeviceInfo& device) {
  Cost cost;
  cost.dram_bytes = TouchedBytes(region);
  cost.microseconds = Microseconds(device, cost.dram_bytes, cost.kernels);
  return cost;
}

}  // namespace

TransposeTile LayOutTranspose(const Region& region, const KernelSchedule& schedule) {
  TransposeTile tile;
  tile.a = static_cast<int>(region.dims.size()) - 1;
  tile.b = static_cast<int>(OtherDim(region));
  tile.a_extent = int64_t{schedule.threads_per_row} * schedule.vector;
  tile.b_extent = schedule.rows_per_cta;
  tile.b_vector = VectorAlong(region, tile.b);
  while (tile.b_vector > tile.b_extent) tile.b_vector /= 2;
  const auto add = [&](std::vector<TransposeTile::Part>& parts, size_t index,
                       const Access& access) {
    if (!Crosses(access, tile.a, tile.b)) return;
    const int64_t size = ir::ByteSize(region.tensors[access.tensor].dtype);
    TransposeTile::Part part;
    part.index = static_cast<uint32_t>(index);
    part.offset = (tile.bytes + 15) / 16 * 16;
    part.pitch = tile.b_extent + std::max<int64_t>(1, kPadBytes / size);
    parts.push_back(part);
    tile.bytes = part.offset + tile.a_extent * part.pitch * size;
  };
  for (size_t i = 0; i < region.instrs.size(); ++i) {
    if (region.instrs[i].kind == Instr::Kind::kLoad) add(tile.loads, i, region.instrs[i].access);
  }
  for (size_t k = 0; k < region.stores.size(); ++k) add(tile.stores, k, region.stores[k].access);
  return tile;
}

const Scheduler& TransposeScheduler() {
  static constexpr Scheduler scheduler = {SchedulerId::kTranspose, Applies, Propose, Estimate};
  return scheduler;
}

}  // namespace fusiond::schedule
