#include "compiler/passes/normalise_algebra.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/passes/algebra/balance.h"
#include "compiler/passes/algebra/emit.h"
#include "compiler/passes/algebra/expression.h"
#include "compiler/passes/algebra/plan.h"
#include "compiler/passes/algebra/planner.h"
#include "compiler/passes/algebra/share.h"
#include "compiler/passes/builder.h"
#include "compiler/passes/constants.h"
#include "runtime/base/status_macros.h"

namespace fusiond::passes {
namespace {

using ir::AttributeKey;
using ir::NodeId;
using ir::Op;
using ir::ValueId;

// Reads a graph into expressions.
class Reader {
 public:
  Reader(const ir::Graph& graph, Expressions& expressions, const PassContext& context)
      : graph_(graph), expressions_(expressions), terms_(graph.value_count()) {
    for (uint32_t i = 0; i < graph.inputs().size(); ++i) {
      const ValueId input = graph.inputs()[i];
      terms_[input] = expressions.Input(i, graph.type(input));
    }
    for (const NodeId id : graph.TopologicalOrder()) {
      context.Visit();
      const ir::Node& node = graph.node(id);
      if (node.op == Op::kInput) continue;
      if (IsAlgebraic(node)) {
        if (const std::optional<TermId> term = Algebraic(node)) {
          terms_[node.results[0]] = *term;
          continue;
        }
      }
      Keep(node);
    }
  }

  std::vector<TermId> Roots() const {
    std::vector<TermId> roots;
    for (const ir::Output& output : graph_.outputs()) roots.push_back(terms_[output.value]);
    return roots;
  }

 private:
  // f32 or f64 throughout, and a tensor: scalars among themselves compute in another type.
  bool IsAlgebraic(const ir::Node& node) const {
    const ir::Type& type = graph_.type(node.results[0]);
    if (type.scalar || (type.dtype != ir::DType::kFloat && type.dtype != ir::DType::kDouble)) {
      return false;
    }
    return std::all_of(node.operands.begin(), node.operands.end(),
                       [&](ValueId id) { return graph_.type(id).dtype == type.dtype; });
  }

  void Keep(const ir::Node& node) {
    absl::InlinedVector<TermId, 4> parts;
    for (const ValueId operand : node.operands) parts.push_back(terms_[operand]);
    for (uint32_t i = 0; i < node.results.size(); ++i) {
      const ValueId result = node.results[i];
      terms_[result] = expressions_.Node(node, i, graph_.type(result), parts);
    }
  }

  // An operand as the algebra sees it: constants are coefficients.
  TermId Operand(const ir::Node& node, size_t i) {
    const ValueId id = node.operands[i];
    if (const std::optional<double> value = FloatConstant(graph_, id)) {
      return expressions_.Constant(*value, graph_.type(id).dtype).value_or(terms_[id]);
    }
    return terms_[id];
  }

  // Powers of scalars would be scalar ops.
  std::optional<TermId> Power(TermId term, int halves) {
    for (const Factor& factor : expressions_.term(term).factors) {
      if (expressions_.atom(factor.atom).scalar) return std::nullopt;
    }
    return expressions_.Power(term, halves);
  }

  std::optional<TermId> Algebraic(const ir::Node& node) {
    absl::InlinedVector<TermId, 4> x;
    for (size_t i = 0; i < node.operands.size(); ++i) x.push_back(Operand(node, i));
    switch (node.op) {
      case Op::kAdd:
        return expressions_.Add({x[0], x[1]});
      case Op::kSub:
        return expressions_.Add({x[0], expressions_.Negate(x[1])});
      case Op::kMul:
        return expressions_.Multiply(x[0], x[1]);
      case Op::kDiv:
      case Op::kTruediv: {
        const std::optional<TermId> inverse = Power(x[1], -2);
        if (!inverse) return std::nullopt;
        return expressions_.Multiply(x[0], *inverse);
      }
      case Op::kNeg:
        return expressions_.Negate(x[0]);
      case Op::kReciprocal:
        return Power(x[0], -2);
      case Op::kSqrt:
        return Power(x[0], 1);
      case Op::kRsqrt:
        return Power(x[0], -1);
      case Op::kAddcmul: {
        const TermId product = expressions_.Multiply(expressions_.Multiply(x[1], x[2]), x[3]);
        return expressions_.Add({x[0], product});
      }
      case Op::kLerp: {
        const TermId difference = expressions_.Add({x[1], expressions_.Negate(x[0])});
        return expressions_.Add({x[0], expressions_.Multiply(x[2], difference)});
      }
      case Op::kSum:
        return Sum(node, x[0]);
      default:
        return std::nullopt;
    }
  }

  std::optional<TermId> Sum(const ir::Node& node, TermId operand) {
    const ir::Dims& shape = graph_.type(node.operands[0]).shape;
    if (!node.attributes.Bool(AttributeKey::kKeepdim)) return std::nullopt;
    uint8_t reduced = 0;
    bool empty = false;
    for (const int64_t d : node.attributes.Ints(AttributeKey::kDims)) {
      reduced |= static_cast<uint8_t>(1u << (shape.size() - 1 - d));
      empty = empty || shape[d] == 0;
    }
    const uint8_t axes = expressions_.AxesOf(expressions_.term(operand));
    if (reduced == 0 || (reduced & ~axes) != 0) return std::nullopt;
    return expressions_.Reduce(operand, reduced, !empty);
  }

  const ir::Graph& graph_;
  Expressions& expressions_;
  std::vector<TermId> terms_;  // by ValueId
};

// One reading and writing. `again`: what is read next has other atoms.
absl::StatusOr<bool> NormaliseOnce(ir::Graph& graph, const PassContext& context, bool& again) {
  Expressions expressions;
  std::vector<TermId> roots = Reader(graph, expressions, context).Roots();
  roots = Balance(expressions, std::move(roots));
  Plans plans;
  const std::vector<PlanId> planned = Planner(expressions, plans).Run(roots);
  context.Visit(ShareItems(plans, planned, Op::kMul) + ShareItems(plans, planned, Op::kAdd));
  context.Visit(expressions.work() + static_cast<int64_t>(plans.size()));

  Builder builder(graph, Sharing::kEqualNodes);
  FUSIOND_ASSIGN_OR_RETURN(const Emitted emitted, Emit(plans, planned, builder));
  again = emitted.scalar_ops;
  std::vector<ValueId> renamed(graph.value_count());
  for (size_t i = 0; i < emitted.values.size(); ++i)
    renamed[graph.outputs()[i].value] = emitted.values[i];
  ir::Graph made = std::move(builder).Finish(graph, renamed);
  graph.Compact();
  if (SameGraph(graph, made)) return false;
  graph = std::move(made);
  return true;
}

}  // namespace

absl::StatusOr<bool> NormaliseAlgebra(ir::Graph& graph, const PassContext& context) {
  if (!context.Reassociates()) return false;
  bool any = false, again = true;
  for (int run = 0; again && run < context.max_rounds; ++run) {
    FUSIOND_ASSIGN_OR_RETURN(const bool changed, NormaliseOnce(graph, context, again));
    any = any || changed;
    if (!changed) break;
  }
  return any;
}

}  // namespace fusiond::passes
