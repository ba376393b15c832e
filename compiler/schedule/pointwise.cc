#include "compiler/schedule/pointwise.h"

#include <algorithm>

#include "compiler/schedule/device_model.h"

namespace fusiond::schedule {
namespace {

using executable::DeviceInfo;

constexpr int kThreads = 128;  // README, figure "pointwise"
// Unrolled issue slots of a thread; README, figure "text".
constexpr int kMaxSlots = 4096;
// Registers that loaded vectors may take, in bytes: a quarter of what a thread may hold.
constexpr int64_t kMaxLoadedBytes = 256;

int StreamedLoads(const Region& region) {
  int loads = 0;
  const int64_t elements = region.Elements();
  for (const Instr& instr : region.instrs) {
    if (instr.kind != Instr::Kind::kLoad) continue;
    const int64_t size = ir::ByteSize(region.tensors[instr.access.tensor].dtype);
    loads += 2 * TouchedBytes(region, instr.access) >= elements * size;
  }
  return loads;
}

// 16-byte vectors a thread and tensor so that resident threads keep twice the bytes in flight that
// DRAM's latency asks for; gives the figure "pointwise" of the README for A100, Ada, H100, H200.
int VectorsInFlight(const Region& region, const DeviceInfo& device) {
  const int loads = StreamedLoads(region);
  const int counted = loads <= 1 ? 1 : loads <= 3 ? 2 : 4;
  const double needed = 2.0 * static_cast<double>(InFlightBytes(device)) /
                        (16.0 * device.max_threads_per_sm * counted);
  int vectors = 1;
  while (vectors < needed && vectors < 4) vectors *= 2;
  return vectors;
}

// Whether something heavy runs through the region's dims as one.
bool HasDense(const Region& region) {
  const Strides dense = DenseStrides(region);
  for (const Instr& instr : region.instrs)
    if (instr.kind == Instr::Kind::kLoad && instr.access.strides == dense) return true;
  return std::any_of(region.stores.begin(), region.stores.end(),
                     [&](const Store& store) { return store.access.strides == dense; });
}

std::string Applies(const Region& region, const DeviceInfo&) {
  if (region.row_reductions || region.column_reductions) return "it has reductions";
  return "";
}

KernelSchedule WithVector(const Region& region, int vector) {
  KernelSchedule s;
  s.scheduler = SchedulerId::kPointwise;
  s.threads = kThreads;
  s.vector = vector;
  const int64_t inner = region.dims.empty() ? 1 : region.dims.back().extent;
  if (region.dims.size() <= 1) {
    s.variant = inner % vector == 0 ? "flat" : "flat_tail";
  } else {
    s.variant = inner % vector == 0 ? "vector" : "element";
  }
  return s;
}

std::vector<KernelSchedule> Propose(const Region& region, const DeviceInfo& device) {
  int vector = VectorElements(region);
  if (region.dims.size() > 1) {
    // Short vectors that stay inside the innermost dim, unless long ones across its ends pay.
    int inside = vector;
    while (region.dims.back().extent % inside != 0) inside /= 2;
    if (2 * inside >= vector || !HasDense(region)) vector = inside;
  } else if (region.dims.empty()) {
    vector = 1;
  }
  while (vector > 1 && vector * VaryingLoadBytes(region) > kMaxLoadedBytes) vector /= 2;
  const int slots = std::max(1, SlotsPerElement(region));
  while (vector > 1 && vector * slots > kMaxSlots) vector /= 2;

  KernelSchedule first = WithVector(region, vector);
  first.unroll = VectorsInFlight(region, device);
  const auto ctas = [&] {
    return region.Elements() / (int64_t{kThreads} * first.vector * first.unroll);
  };
  // More vectors a thread than there is work for only idles SMs.
  while (first.unroll > 1 &&
         (first.unroll * vector * VaryingLoadBytes(region) > kMaxLoadedBytes ||
          first.unroll * vector * slots > kMaxSlots || ctas() < 2 * device.sm_count))
    first.unroll /= 2;
  first.wide_index =
      NeedsWideIndex(region, region.Elements() + int64_t{kThreads} * first.vector * first.unroll);

  std::vector<KernelSchedule> candidates = {first};
  for (int narrower = first.unroll > 1 ? vector : vector / 2; narrower >= 1; narrower /= 2) {
    KernelSchedule next = WithVector(region, narrower);
    next.wide_index = first.wide_index;
    candidates.push_back(next);
  }
  return candidates;
}

Cost Estimate(const Region& region, const KernelSchedule&, const DeviceInfo& device) {
  Cost cost;
  cost.dram_bytes = TouchedBytes(region);
  cost.microseconds = Microseconds(device, cost.dram_bytes, cost.kernels);
  return cost;
}

}  // namespace

const Scheduler& PointwiseScheduler() {
  static constexpr Scheduler scheduler = {SchedulerId::kPointwise, Applies, Propose, Estimate};
  return scheduler;
}

}  // namespace fusiond::schedule
