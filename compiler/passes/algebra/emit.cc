#include "compiler/passes/algebra/emit.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "compiler/passes/constants.h"
#include "runtime/base/status_macros.h"

namespace fusiond::passes {
namespace {

using ir::AttributeKey;
using ir::DType;
using ir::NodeId;
using ir::Op;
using ir::ValueId;

class Emitter {
 public:
  Emitter(const Plans& plans, absl::Span<const PlanId> roots, Builder& builder)
      : plans_(plans), builder_(builder), values_(plans.size(), kMissing), uses_(plans.size()) {
    std::vector<PlanId> stack(roots.begin(), roots.end());
    for (const PlanId root : roots) uses_[root] = 1;
    while (!stack.empty()) {
      const PlanId id = stack.back();
      stack.pop_back();
      for (const Item& item : plans[id].items) {
        if (++uses_[item.plan] == 1) stack.push_back(item.plan);
      }
    }
  }

  absl::StatusOr<ValueId> Value(PlanId root) {
    std::vector<PlanId> stack = {root};
    while (!stack.empty()) {
      const PlanId id = stack.back();
      const size_t waiting = stack.size();
      if (values_[id] == kMissing) {
        for (const Item& item : plans_[id].items) {
          if (values_[item.plan] == kMissing) stack.push_back(item.plan);
        }
        if (stack.size() > waiting) continue;
        FUSIOND_ASSIGN_OR_RETURN(values_[id], Make(plans_[id]));
      }
      stack.pop_back();
    }
    return values_[root];
  }

  bool scalar_ops() const { return scalar_ops_; }

 private:
  static constexpr ValueId kMissing = ~ValueId{0};

  absl::StatusOr<ValueId> Make(const Plan& plan) {
    switch (plan.kind) {
      case PlanKind::kInput:
        return builder_.graph().inputs()[plan.result];
      case PlanKind::kConstant:
        return builder_.Constant(plan.number, plan.dtype);
      case PlanKind::kNode:
        return Node(plan);
      case PlanKind::kReduce:
        return Reduce(plan);
      case PlanKind::kUnary:
        return InWidest(plan.op, {values_[plan.items[0].plan]}, plan.dtype);
      case PlanKind::kChain:
        return Chain(plan);
    }
    return absl::InternalError("unknown plan");
  }

  absl::StatusOr<ValueId> Node(const Plan& plan) {
    absl::InlinedVector<ValueId, 4> operands;
    for (const Item& item : plan.items) operands.push_back(values_[item.plan]);
    if (plan.op == Op::kAdd || plan.op == Op::kMul) {
      return InWidest(plan.op, {operands[0], operands[1]}, plan.dtype);
    }
    FUSIOND_ASSIGN_OR_RETURN(const NodeId node,
                             builder_.AddNode(plan.op, operands, plan.attributes));
    return builder_.graph().node(node).results[plan.result];
  }

  absl::StatusOr<ValueId> Reduce(const Plan& plan) {
    const ValueId operand = values_[plan.items[0].plan];
    const int rank = builder_.graph().type(operand).rank();
    std::vector<int64_t> dims;
    for (int d = 0; d < rank; ++d) {
      if ((plan.reduced >> (rank - 1 - d) & 1) != 0) dims.push_back(d);
    }
    return builder_.Add(Op::kSum, {operand},
                        {{AttributeKey::kDims, dims}, {AttributeKey::kKeepdim, true}});
  }

  absl::StatusOr<ValueId> Chain(const Plan& plan) {
    Items items = plan.items;
    plans_.Sort(items);
    if (plan.op == Op::kAdd) {
      // A positive item, then what is subtracted, then the rest.
      const auto first =
          std::find_if(items.begin(), items.end(), [](const Item& item) { return !item.negative; });
      std::rotate(items.begin(), first, first + 1);
      std::stable_partition(items.begin() + 1, items.end(),
                            [](const Item& item) { return item.negative; });
    } else if (plans_[items.back().plan].kind == PlanKind::kConstant) {
      std::rotate(items.begin() + 1, items.end() - 1, items.end());
    }
    const std::optional<ValueId> divisor = TakeDivisor(plan, items);
    ValueId value = values_[items[0].plan];
    for (size_t i = 1; i < items.size(); ++i) {
      const Op op = items[i].negative ? Op::kSub : plan.op;
      FUSIOND_ASSIGN_OR_RETURN(value, InWidest(op, {value, values_[items[i].plan]}, plan.dtype));
    }
    if (divisor) return builder_.Add(Op::kDiv, {value, *divisor});
    return value;
  }

  // A reciprocal as large as the product, and used by nothing else, is a division by what it is of:
  // no more work, and exact where x/x is.
  std::optional<ValueId> TakeDivisor(const Plan& product, Items& items) const {
    const auto divides = [&](const Item& item) {
      const Plan& plan = plans_[item.plan];
      return plan.kind == PlanKind::kUnary && plan.op == Op::kReciprocal && !plan.scalar &&
             plan.axes == product.axes && uses_[item.plan] == 1;
    };
    if (product.op != Op::kMul || std::count_if(items.begin(), items.end(), divides) != 1) {
      return std::nullopt;
    }
    const auto at = std::find_if(items.begin(), items.end(), divides);
    const PlanId of = plans_[at->plan].items[0].plan;
    items.erase(at);
    return values_[of];
  }

  // Scalars among themselves compute in f64, whatever their type.
  absl::StatusOr<ValueId> InWidest(Op op, absl::InlinedVector<ValueId, 2> operands, DType dtype) {
    const bool scalars = std::all_of(operands.begin(), operands.end(), [this](ValueId id) {
      return builder_.graph().type(id).scalar;
    });
    if (!scalars || dtype != DType::kFloat) return builder_.Add(op, operands);
    scalar_ops_ = true;
    for (ValueId& operand : operands) {
      FUSIOND_ASSIGN_OR_RETURN(operand, Cast(operand, DType::kDouble));
    }
    FUSIOND_ASSIGN_OR_RETURN(const ValueId wide, builder_.Add(op, operands));
    return Cast(wide, dtype);
  }

  absl::StatusOr<ValueId> Cast(ValueId value, DType dtype) {
    if (const std::optional<double> number = FloatConstant(builder_.graph(), value)) {
      return builder_.Constant(*number, dtype);
    }
    return builder_.Add(Op::kCast, {value}, {{AttributeKey::kDtype, dtype}});
  }

  const Plans& plans_;
  Builder& builder_;
  std::vector<ValueId> values_;
  bool scalar_ops_ = false;
  std::vector<uint32_t> uses_;  // as items and roots, of what the roots need
};

}  // namespace

absl::StatusOr<Emitted> Emit(const Plans& plans, absl::Span<const PlanId> roots, Builder& builder) {
  Emitter emitter(plans, roots, builder);
  Emitted emitted;
  for (const PlanId root : roots) {
    FUSIOND_ASSIGN_OR_RETURN(const ValueId value, emitter.Value(root));
    emitted.values.push_back(value);
  }
  emitted.scalar_ops = emitter.scalar_ops();
  return emitted;
}

}  // namespace fusiond::passes
