// Plans: how expressions are computed, between the normal form and nodes of a graph.
//
// A plan is an input, a node, a reduction, a constant, one of neg, reciprocal, sqrt and rsqrt, or a
// *chain*: a product or sum of items in no order yet. planner.h makes them, share.h finds what
// chains have in common, emit.h makes nodes. Each plan is held once.
//
// Order: by height and hash, which follow from the structure alone. Thread-compatible.
#ifndef FUSIOND_COMPILER_PASSES_ALGEBRA_PLAN_H_
#define FUSIOND_COMPILER_PASSES_ALGEBRA_PLAN_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "compiler/ir/graph.h"

namespace fusiond::passes {

using PlanId = uint32_t;

struct Item {
  PlanId plan;
  bool negative = false;  // in a sum: subtracted
  bool operator==(const Item&) const = default;
};

using Items = absl::InlinedVector<Item, 4>;

enum class PlanKind : uint8_t {
  kInput,     // `result` is its index
  kConstant,  // `number`
  kNode,      // result `result` of op on items, in order
  kReduce,    // sum of item 0 over axes `reduced`
  kUnary,     // op on item 0
  kChain,     // op kMul or kAdd over items
};

struct Plan {
  PlanKind kind = PlanKind::kInput;
  ir::DType dtype = ir::DType::kFloat;
  bool scalar = false;
  uint8_t axes = 0;
  uint8_t reduced = 0;
  uint32_t result = 0;
  ir::Op op = ir::Op::kInput;
  ir::Attributes attributes;
  double number = 0;
  Items items;

  // Derived from the items the plan was made of; sharing does not change them.
  uint32_t height = 0;
  uint64_t hash = 0;
};

class Plans {
 public:
  const Plan& operator[](PlanId id) const { return plans_[id]; }
  size_t size() const { return plans_.size(); }

  PlanId Intern(Plan plan);
  PlanId Constant(double number, ir::DType dtype);
  PlanId Unary(ir::Op op, PlanId of);
  // A product or sum. One item is that item. A sum has a positive item, unless it is one negative
  // item: of items that are all negative the negative.
  Item Chain(ir::Op op, Items items);
  // What a chain is computed from; equal in value.
  void SetItems(PlanId chain, Items items) { plans_[chain].items = std::move(items); }

  // The order of items: larger values first, then those that stand higher.
  bool Less(PlanId a, PlanId b) const;
  void Sort(Items& items) const;

 private:
  std::vector<Plan> plans_;
  absl::flat_hash_map<uint64_t, absl::InlinedVector<PlanId, 1>> by_hash_;
  std::vector<Items> made_of_;  // items at creation, by PlanId
};

}  // namespace fusiond::passes

#endif  // FUSIOND_COMPILER_PASSES_ALGEBRA_PLAN_H_
