#include "compiler/schedule/row_stream.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/schedule/cost.h"
#include "compiler/schedule/device_model.h"
#include "compiler/schedule/online.h"
#include "compiler/schedule/row_persistent.h"

namespace fusiond::schedule {
namespace {

using executable::DeviceInfo;

constexpr int kThreads = 512;
constexpr int kMinThreads = 64;
constexpr int kMaxUnroll = 4;
constexpr int kMaxSlots = 4096;  // unrolled, of a thread; README, figure "text"
// Registers of a thread in bytes that loaded vectors may take, and accumulators, of the 128 · 4
// that 512 threads leave each.
constexpr int64_t kMaxLoadedBytes = 128;
constexpr int64_t kChainBytes = 128;
constexpr int64_t kMaxAccumulatorBytes = 256;
// Issue slots an element that passes may spend on what earlier ones computed: two to four times
// what a store and a load of the value cost instead (8 bytes at 7.8 slots on an H200; less on
// others).
constexpr int64_t kMaxAgain = 128;
// Split rows take this many CTAs an SM: two of 512 threads with four vectors of 16 bytes each have
// 64 KB on the way (README, figure "in flight": 40 on an H200).
constexpr int64_t kCtasPerSm = 2;

bool Walks(const Pass& pass) { return !pass.reductions.empty() || !pass.stores.empty(); }

int64_t AccumulatorBytes(const Region& region, const Pass& pass) {
  int64_t bytes = 0;
  for (uint32_t i : pass.reductions)
    bytes += PartialElements(region.instrs[i]) *
             std::max<int64_t>(4, ir::ByteSize(region.instrs[i].dtype));
  return bytes;
}

// Of the pass that has most, for one column.
int64_t LoadedBytes(const Region& region, const Stages& stages) {
  int64_t most = 1;
  for (const Pass& pass : stages.passes) {
    int64_t bytes = 0;
    for (uint32_t i : pass.loads)
      bytes += ir::ByteSize(region.tensors[region.instrs[i].access.tensor].dtype);
    most = std::max(most, bytes);
  }
  return most;
}

int64_t Slots(const Region& region, const Stages& stages) {
  int64_t slots = 1;
  for (const Pass& pass : stages.passes) {
    for (uint32_t i : pass.elements) slots += IssueSlots(region.instrs[i]);
    slots += static_cast<int64_t>(pass.loads.size() + pass.reductions.size() + pass.stores.size());
  }
  return slots;
}

int64_t SlotsAgain(const Region& region, const Stages& stages) {
  std::vector<bool> computed(region.instrs.size(), false);
  int64_t slots = 0;
  for (const Pass& pass : stages.passes) {
    for (uint32_t i : pass.elements) {
      if (computed[i]) slots += IssueSlots(region.instrs[i]);
      computed[i] = true;
    }
  }
  return slots;
}

// Columns from the first vector's to behind the last one's; a shifted row may begin up to a vector
// before its first column.
int64_t Span(const Region& region, const KernelSchedule& s, bool shifted) {
  return region.Columns() + (shifted ? s.vector - 1 : 0);
}

int64_t Steps(const Region& region, const KernelSchedule& s, bool shifted) {
  const int64_t step = int64_t{s.threads} * s.vector * s.unroll;
  return (Span(region, s, shifted) + step - 1) / step;
}

// `s` with its threads, vector and unroll, as one CTA a row or as `splits` of them.
KernelSchedule Complete(const Region& region, KernelSchedule s, bool shifted, int64_t splits) {
  s.scheduler = SchedulerId::kRowStream;
  s.threads_per_row = s.threads;
  s.rows_per_cta = splits > 1 ? 0 : 1;
  s.splits = splits > 1 ? static_cast<int>(splits) : 0;
  const int64_t step = int64_t{s.threads} * s.vector * s.unroll;
  s.variant =
      absl::StrCat(splits > 1 ? "split" : "cta", shifted                        ? "_shifted"
                                                 : region.Columns() % step == 0 ? ""
                                                                                : "_masked");
  s.wide_index = NeedsWideIndex(region, region.Elements() + std::max<int64_t>(1, splits) * step);
  return s;
}

Cost Estimate(const Region& given, const KernelSchedule& s, const DeviceInfo& device) {
  const Region region = WithOnlineReductions(given);
  const Stages stages = PlanStages(region, kReadAgain);
  Cost cost;
  cost.dram_bytes = TouchedBytes(region);
  std::vector<bool> read(region.instrs.size(), false);
  for (const Pass& pass : stages.passes) {
    for (uint32_t i : pass.loads) {
      if (read[i]) cost.dram_bytes += TouchedBytes(region, region.instrs[i].access);
      read[i] = true;
    }
  }
  if (s.splits > 0) cost.kernels = static_cast<int>(SplitRowStream(region).size());
  cost.microseconds =
      Microseconds(device, cost.dram_bytes, cost.kernels, region.Rows() * std::max(1, s.splits));
  return cost;
}

std::string Applies(const Region& given, const DeviceInfo&) {
  if (!given.row_reductions) return "it has no row reductions";
  if (given.column_reductions) return "it has column reductions";
  const Region region = WithOnlineReductions(given);
  const Stages stages = PlanStages(region, kReadAgain);
  if (const int64_t again = SlotsAgain(region, stages); again > kMaxAgain) {
    return absl::StrCat("computing elements again takes ", again, " issue slots, the limit is ",
                        kMaxAgain);
  }
  for (const Pass& pass : stages.passes) {
    const int64_t bytes = AccumulatorBytes(region, pass);
    if (bytes > kMaxAccumulatorBytes && pass.reductions.size() > 1) {
      return absl::StrCat("a pass takes ", bytes, " bytes of accumulators a thread, the limit is ",
                          kMaxAccumulatorBytes);
    }
  }
  return "";
}

// Threads, vector and unroll by the rule.
KernelSchedule ByRule(const Region& region, const Stages& stages, int vector) {
  KernelSchedule s;
  s.vector = vector;
  const int64_t loaded = LoadedBytes(region, stages), slots = Slots(region, stages);
  while (s.vector > 1 && (s.vector * loaded > kMaxLoadedBytes || s.vector * slots > kMaxSlots))
    s.vector /= 2;
  s.threads = kThreads;
  // No thread without a column.
  while (s.threads > kMinThreads && int64_t{s.threads} / 2 * s.vector >= region.Columns())
    s.threads /= 2;
  s.unroll = kMaxUnroll;
  while (s.unroll > 1 && (int64_t{s.unroll} * s.vector * loaded > kMaxLoadedBytes ||
                          int64_t{s.unroll} * s.vector * slots > kMaxSlots ||
                          int64_t{s.unroll} / 2 * s.threads * s.vector >= region.Columns()))
    s.unroll /= 2;
  return s;
}

std::vector<KernelSchedule> Propose(const Region& given, const DeviceInfo& device) {
  const Region region = WithOnlineReductions(given);
  const Stages stages = PlanStages(region, kReadAgain);
  const RowShape shape = ShapeOfRows(region);
  const auto both = [&](KernelSchedule s) {
    // As many CTAs as the device holds at once; each with a step.
    const int64_t wanted = kCtasPerSm * device.sm_count / region.Rows();
    KernelSchedule parts = s;
    while (parts.unroll > 1 && Steps(region, parts, shape.shifted) < wanted) parts.unroll /= 2;
    const int64_t splits = std::min(wanted, Steps(region, parts, shape.shifted));
    const KernelSchedule whole = Complete(region, s, shape.shifted, 1);
    if (splits < 2) return whole;
    const KernelSchedule split = Complete(region, parts, shape.shifted, splits);
    const double with = Estimate(region, split, device).microseconds;
    return with < Estimate(region, whole, device).microseconds ? split : whole;
  };
  KernelSchedule s = ByRule(region, stages, shape.vector);
  std::vector<KernelSchedule> candidates = {both(s)};
  for (s.unroll = 1;; s.vector /= 2) {
    for (int threads : {s.threads, 256, 128}) {
      if (threads > s.threads) continue;
      KernelSchedule next = s;
      next.threads = threads;
      next = both(next);
      if (next != candidates.back()) candidates.push_back(next);
    }
    if (s.vector == 1) break;
  }
  return candidates;
}

}  // namespace

int RowStreamChains(const Region& region, const Pass& pass, int vector) {
  int chains = vector;
  while (chains > 1 && chains * AccumulatorBytes(region, pass) > kChainBytes) chains /= 2;
  return chains;
}

std::vector<RowStreamStep> SplitRowStream(const Region& region) {
  const Stages all = PlanStages(region, kReadAgain);
  size_t walks = 0;
  for (size_t p = 0; p < all.passes.size(); ++p)
    if (Walks(all.passes[p])) walks = p + 1;
  std::vector<RowStreamStep> steps(walks);
  for (size_t p = 0; p < walks; ++p) {
    steps[p].pass = p;
    steps[p].walks = true;
    steps[p].stages.passes.resize(all.passes.size());
    steps[p].stages.passes[p] = all.passes[p];
  }
  // Results of the last walk's own reductions are known one kernel later.
  if (!all.passes[walks - 1].reductions.empty() && !all.row_stores.empty()) {
    steps.emplace_back();
    steps.back().pass = all.passes.size();
    steps.back().stages.passes.resize(all.passes.size() + 1);
  }
  steps.back().stages.row_stores = all.row_stores;

  for (RowStreamStep& step : steps) {
    Pass& pass = step.stages.passes[step.pass];
    step.needed.assign(region.instrs.size(), false);
    for (uint32_t i : pass.reductions) step.needed[region.instrs[i].operands[0]] = true;
    for (size_t s : pass.stores) step.needed[region.stores[s].value] = true;
    for (size_t s : step.stages.row_stores) step.needed[region.stores[s].value] = true;
    pass.rows.clear();
    for (uint32_t i = static_cast<uint32_t>(region.instrs.size()); i-- > 0;) {
      if (!step.needed[i]) continue;
      const Instr& instr = region.instrs[i];
      if (instr.kind == Instr::Kind::kReduce) {
        step.incoming.push_back(i);
        continue;
      }
      for (uint32_t operand : instr.operands) step.needed[operand] = true;
      const bool computed = instr.kind == Instr::Kind::kLoad || IsComputed(instr);
      if (computed && !IsElement(region, i)) pass.rows.push_back(i);
    }
    std::reverse(pass.rows.begin(), pass.rows.end());
    std::reverse(step.incoming.begin(), step.incoming.end());
  }
  return steps;
}

const Scheduler& RowStreamScheduler() {
  static constexpr Scheduler scheduler = {SchedulerId::kRowStream, Applies, Propose, Estimate};
  return scheduler;
}

}  // namespace fusiond::schedule
