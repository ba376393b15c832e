#include "compiler/schedule/stages.h"

#include <algorithm>

#include "compiler/schedule/cost.h"

namespace fusiond::schedule {
namespace {

uint32_t ColumnMask(const Region& region) {
  uint32_t mask = 0;
  for (size_t d = 0; d < region.dims.size(); ++d)
    if (region.dims[d].column) mask |= 1u << d;
  return mask;
}

bool Loads(const Region& region, uint32_t tensor) {
  return std::any_of(region.instrs.begin(), region.instrs.end(), [&](const Instr& instr) {
    return instr.kind == Instr::Kind::kLoad && instr.access.tensor == tensor;
  });
}

}  // namespace

bool IsElement(const Region& region, uint32_t instr) {
  return (region.instrs[instr].dims & ColumnMask(region)) != 0;
}

bool IsElementStore(const Region& region, const Store& store) {
  for (size_t d = 0; d < region.dims.size(); ++d)
    if (region.dims[d].column && store.access.strides[d] != 0) return true;
  return false;
}

Stages PlanStages(const Region& region, int max_again) {
  const size_t count = region.instrs.size();
  std::vector<bool> element(count);
  std::vector<int> cost(count, 0);  // slots of computing it from what was loaded
  size_t passes = 1;
  for (uint32_t i = 0; i < count; ++i) {
    const Instr& instr = region.instrs[i];
    element[i] = IsElement(region, i);
    if (instr.late && instr.kind != Instr::Kind::kReduce) continue;
    passes = std::max<size_t>(passes, instr.stage + 1);
    if (!element[i] || instr.kind == Instr::Kind::kLoad) continue;
    cost[i] = IssueSlots(instr);
    for (uint32_t operand : instr.operands) cost[i] = std::min(cost[i] + cost[operand], 1 << 20);
  }

  Stages stages;
  stages.passes.resize(passes);
  std::vector<bool> held(count, false);
  std::vector<std::vector<uint32_t>> roots(passes);
  for (uint32_t i = 0; i < count; ++i) {
    const Instr& instr = region.instrs[i];
    if (instr.kind == Instr::Kind::kReduce) {
      (instr.late ? stages.passes[instr.stage].sums : stages.passes[instr.stage].reductions)
          .push_back(i);
      roots[instr.stage].push_back(instr.operands[0]);
    } else if (!instr.late && !element[i] && instr.kind != Instr::Kind::kConstant &&
               instr.kind != Instr::Kind::kScalar) {
      stages.passes[instr.stage].rows.push_back(i);
    }
  }
  std::vector<size_t> over_loads;
  const auto place = [&](size_t s, size_t first_pass) {
    // A reduction's result is there one pass later.
    const Instr& value = region.instrs[region.stores[s].value];
    const size_t own = value.stage + (value.kind == Instr::Kind::kReduce);
    const size_t pass = std::max(own, first_pass);
    if (pass == stages.passes.size()) stages.passes.emplace_back(), roots.emplace_back();
    stages.passes[pass].stores.push_back(s);
    roots[pass].push_back(region.stores[s].value);
  };
  for (size_t s = 0; s < region.stores.size(); ++s) {
    const Store& store = region.stores[s];
    if (region.instrs[store.value].late) continue;
    if (!IsElementStore(region, store)) {
      stages.row_stores.push_back(s);
    } else if (max_again == kReadAgain && Loads(region, store.access.tensor)) {
      over_loads.push_back(s);
    } else {
      place(s, 0);
    }
  }
  size_t last_walk = roots.size() - 1;  // walks the columns in any case
  while (last_walk > 0 && roots[last_walk].empty()) --last_walk;
  for (size_t s : over_loads) place(s, last_walk);

  for (size_t p = stages.passes.size(); p-- > 0;) {
    std::vector<bool> needed(count, false);
    for (uint32_t root : roots[p]) needed[root] = true;
    for (uint32_t i = static_cast<uint32_t>(count); i-- > 0;) {
      if (!needed[i] || !element[i]) continue;
      const Instr& instr = region.instrs[i];
      if (instr.kind == Instr::Kind::kLoad) continue;
      if (instr.stage < p && cost[i] > max_again) {
        held[i] = true;
        roots[instr.stage].push_back(i);
        needed[i] = false;
        continue;
      }
      for (uint32_t operand : instr.operands) needed[operand] = true;
    }
    for (uint32_t i = 0; i < count; ++i) {
      if (!needed[i] || !element[i]) continue;
      (region.instrs[i].kind == Instr::Kind::kLoad ? stages.passes[p].loads
                                                   : stages.passes[p].elements)
          .push_back(i);
    }
  }
  for (uint32_t i = 0; i < count; ++i)
    if (held[i]) stages.held.push_back(i);
  return stages;
}

}  // namespace fusiond::schedule
