#include "compiler/passes/algebra/plan.h"

#include <algorithm>
#include <cstring>
#include <tuple>
#include <utility>

#include "compiler/passes/builder.h"

namespace fusiond::passes {

PlanId Plans::Intern(Plan plan) {
  uint64_t number;
  std::memcpy(&number, &plan.number, sizeof number);
  uint64_t hash =
      Mix(static_cast<uint64_t>(plan.kind) << 16 | static_cast<uint64_t>(plan.op),
          static_cast<uint64_t>(plan.result) << 16 | static_cast<uint64_t>(plan.reduced) << 8 |
              static_cast<uint64_t>(plan.dtype));
  hash = Mix(Mix(hash, number), HashAttributes(plan.attributes));
  for (const Item& item : plan.items) {
    hash = Mix(hash, plans_[item.plan].hash << 1 | item.negative);
    plan.height = std::max(plan.height, plans_[item.plan].height + 1);
  }
  plan.hash = hash;
  auto& same_hash = by_hash_[hash];
  for (const PlanId id : same_hash) {
    const Plan& other = plans_[id];
    if (made_of_[id] == plan.items && other.kind == plan.kind && other.op == plan.op &&
        other.result == plan.result && other.reduced == plan.reduced && other.dtype == plan.dtype &&
        other.number == plan.number && SameAttributes(other.attributes, plan.attributes)) {
      return id;
    }
  }
  const auto id = static_cast<PlanId>(plans_.size());
  same_hash.push_back(id);
  made_of_.push_back(plan.items);
  plans_.push_back(std::move(plan));
  return id;
}

PlanId Plans::Constant(double number, ir::DType dtype) {
  Plan plan;
  plan.kind = PlanKind::kConstant;
  plan.dtype = dtype;
  plan.scalar = true;
  plan.number = number;
  return Intern(std::move(plan));
}

PlanId Plans::Unary(ir::Op op, PlanId of) {
  Plan plan;
  plan.kind = PlanKind::kUnary;
  plan.dtype = plans_[of].dtype;
  plan.scalar = plans_[of].scalar;
  plan.axes = plans_[of].axes;
  plan.op = op;
  plan.items.push_back({of});
  return Intern(std::move(plan));
}

Item Plans::Chain(ir::Op op, Items items) {
  if (items.size() == 1) return items[0];
  const bool flip =
      std::all_of(items.begin(), items.end(), [](const Item& i) { return i.negative; });
  Plan plan;
  plan.kind = PlanKind::kChain;
  plan.op = op;
  plan.dtype = plans_[items[0].plan].dtype;
  plan.scalar = true;
  Sort(items);
  for (Item& item : items) {
    item.negative = item.negative != flip;
    plan.axes |= plans_[item.plan].axes;
    plan.scalar = plan.scalar && plans_[item.plan].scalar;
  }
  plan.items = std::move(items);
  return {Intern(std::move(plan)), flip};
}

bool Plans::Less(PlanId a, PlanId b) const {
  const auto key = [this](PlanId id) {
    const Plan& plan = plans_[id];
    return std::make_tuple(plan.kind == PlanKind::kConstant, plan.scalar,
                           -__builtin_popcount(plan.axes), -static_cast<int64_t>(plan.height),
                           plan.hash);
  };
  return key(a) < key(b);
}

void Plans::Sort(Items& items) const {
  std::sort(items.begin(), items.end(), [this](const Item& a, const Item& b) {
    if (a.plan != b.plan) return Less(a.plan, b.plan);
    return a.negative < b.negative;
  });
}

}  // namespace fusiond::passes
