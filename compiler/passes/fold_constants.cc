#include "compiler/passes/fold_constants.h"

#include <cmath>

#include "compiler/passes/constants.h"
#include "compiler/passes/rebuild.h"

namespace fusiond::passes {
namespace {

using ir::Op;
using ir::ValueId;

std::optional<ir::Number> Fold(const ir::Node& node, const Rebuild& rebuild) {
  const ir::Type& type = rebuild.from().type(node.results[0]);
  if (!type.scalar || ir::Info(node.op).op_class != ir::OpClass::kPointwise) return std::nullopt;
  absl::InlinedVector<ir::Number, 2> values;
  for (const ValueId operand : node.operands) {
    const std::optional<ir::Number> value = rebuild.to().ConstantValue(rebuild[operand]);
    if (!value) return std::nullopt;
    values.push_back(*value);
  }
  if (node.op == Op::kCast) {
    return ConvertConstant(values[0], rebuild.type(rebuild[node.operands[0]]).dtype, type.dtype);
  }
  return FoldPointwise(node.op, type.dtype, values);
}

// x op constant, where it equals x, or -x.
Replacement Identity(const ir::Node& node, Rebuild& rebuild) {
  if (node.operands.size() != 2) return std::nullopt;
  for (const int at : {1, 0}) {
    const std::optional<double> constant = FloatConstant(rebuild.to(), rebuild[node.operands[at]]);
    if (!constant) continue;
    const ValueId other = rebuild[node.operands[1 - at]];
    if (rebuild.type(other).dtype != rebuild.from().type(node.results[0]).dtype) continue;
    const bool divides = (node.op == Op::kDiv || node.op == Op::kTruediv) && at == 1;
    if (*constant == 1 && (node.op == Op::kMul || divides)) return other;
    if (*constant == -1 && (node.op == Op::kMul || divides)) return rebuild.Add(Op::kNeg, {other});
    const bool zero = *constant == 0 && !std::signbit(*constant);
    if (zero && node.op == Op::kSub && at == 1) return other;
  }
  return std::nullopt;
}

Replacement Visit(const ir::Node& node, Rebuild& rebuild) {
  if (const std::optional<ir::Number> value = Fold(node, rebuild)) {
    return rebuild.builder().Constant(*value, rebuild.from().type(node.results[0]).dtype);
  }
  return Identity(node, rebuild);
}

}  // namespace

absl::StatusOr<bool> FoldConstants(ir::Graph& graph, const PassContext& context) {
  return Rebuild(graph, context).Run(graph, Visit);
}

}  // namespace fusiond::passes
