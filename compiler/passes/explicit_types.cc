#include "compiler/passes/explicit_types.h"

#include <cstdint>
#include <vector>

#include "compiler/passes/rebuild.h"
#include "runtime/base/status_macros.h"

namespace fusiond::passes {
namespace {

using ir::AttributeKey;
using ir::DType;
using ir::Op;
using ir::Promotion;
using ir::ValueId;

Replacement Pointwise(const ir::Node& node, Rebuild& rebuild) {
  const Promotion promotion = ir::Info(node.op).promotion;
  if (promotion == Promotion::kSameType || promotion == Promotion::kCast) return std::nullopt;
  Operands operands = rebuild.Renamed(node);
  absl::InlinedVector<const ir::Type*, 4> types;
  for (const ValueId operand : operands) types.push_back(&rebuild.type(operand));
  FUSIOND_ASSIGN_OR_RETURN(const DType compute,
                           ir::PointwiseComputeType(node.op, types, node.attributes));
  const DType wide = ir::ComputeType(compute);  // differs for where alone
  for (size_t i = promotion == Promotion::kSelect ? 1 : 0; i < operands.size(); ++i) {
    FUSIOND_ASSIGN_OR_RETURN(operands[i], rebuild.Cast(operands[i], compute));
    FUSIOND_ASSIGN_OR_RETURN(operands[i], rebuild.Cast(operands[i], wide));
  }
  FUSIOND_ASSIGN_OR_RETURN(const ValueId result, rebuild.Add(node.op, operands, node.attributes));
  return rebuild.Cast(result, rebuild.from().type(node.results[0]).dtype);
}

// The type in which a sum or product of `from` that gives `to` accumulates.
DType Accumulator(DType from, DType to) {
  if (!ir::IsFloatingPoint(to)) return DType::kInt;
  return from == DType::kDouble || to == DType::kDouble ? DType::kDouble : DType::kFloat;
}

Replacement Reduction(const ir::Node& node, Rebuild& rebuild) {
  ValueId operand = rebuild[node.operands[0]];
  const DType from = rebuild.type(operand).dtype;
  const DType to = rebuild.from().type(node.results[0]).dtype;
  DType compute = ir::ComputeType(from);
  if (node.op == Op::kSum || node.op == Op::kProd) {
    // Towards an integer each term is converted, and then summed without loss.
    if (!ir::IsFloatingPoint(to)) {
      FUSIOND_ASSIGN_OR_RETURN(operand, rebuild.Cast(operand, to));
    }
    compute = Accumulator(from, to);
  } else if (node.op != Op::kMax && node.op != Op::kMin) {
    // var, var_mean, welford: more than one result, in one float type.
    FUSIOND_ASSIGN_OR_RETURN(operand, rebuild.Cast(operand, to));
    FUSIOND_ASSIGN_OR_RETURN(const ir::NodeId made,
                             rebuild.builder().AddNode(node.op, {operand}, node.attributes));
    for (size_t i = 0; i < node.results.size(); ++i) {
      rebuild.Map(node.results[i], rebuild.to().node(made).results[i]);
    }
    return std::nullopt;
  }
  FUSIOND_ASSIGN_OR_RETURN(operand, rebuild.Cast(operand, compute));
  ir::Attributes attributes = node.attributes;
  attributes.Erase(AttributeKey::kDtype);
  FUSIOND_ASSIGN_OR_RETURN(const ValueId result, rebuild.Add(node.op, {operand}, attributes));
  return rebuild.Cast(result, to);
}

// where(column >= row + diagonal, a, 0).
Replacement Triu(const ir::Node& node, Rebuild& rebuild) {
  const ValueId operand = rebuild[node.operands[0]];
  const ir::Dims shape = rebuild.type(operand).shape;
  const size_t rank = shape.size();
  const auto int_constant = [&](int64_t value) {
    return rebuild.builder().Constant(value, DType::kInt);
  };
  ValueId coordinates[2];  // along rows, along columns
  for (size_t i = 0; i < 2; ++i) {
    const std::vector<int64_t> extent = {shape[rank - 2 + i]};
    FUSIOND_ASSIGN_OR_RETURN(
        coordinates[i],
        rebuild.Add(Op::kIota, {int_constant(0), int_constant(1)},
                    {{AttributeKey::kDtype, DType::kInt}, {AttributeKey::kShape, extent}}));
  }
  FUSIOND_ASSIGN_OR_RETURN(
      const ValueId rows,
      rebuild.Add(Op::kBroadcast, {coordinates[0]},
                  {{AttributeKey::kIsBroadcastDim, std::vector<bool>{false, true}}}));
  const int64_t diagonal = node.attributes.Int(AttributeKey::kDiagonal);
  FUSIOND_ASSIGN_OR_RETURN(const ValueId begin,
                           rebuild.Add(Op::kAdd, {rows, int_constant(diagonal)}));
  FUSIOND_ASSIGN_OR_RETURN(const ValueId kept, rebuild.Add(Op::kGe, {coordinates[1], begin}));
  const DType dtype = rebuild.type(operand).dtype;
  const DType wide = ir::ComputeType(dtype);
  FUSIOND_ASSIGN_OR_RETURN(const ValueId value, rebuild.Cast(operand, wide));
  const ValueId zero = wide == DType::kBool        ? rebuild.builder().Constant(false, wide)
                       : ir::IsFloatingPoint(wide) ? rebuild.builder().Constant(0.0, wide)
                                                   : rebuild.builder().Constant(int64_t{0}, wide);
  FUSIOND_ASSIGN_OR_RETURN(const ValueId result, rebuild.Add(Op::kWhere, {kept, value, zero}));
  return rebuild.Cast(result, dtype);
}

Replacement Visit(const ir::Node& node, Rebuild& rebuild) {
  switch (ir::Info(node.op).op_class) {
    case ir::OpClass::kPointwise:
      return Pointwise(node, rebuild);
    case ir::OpClass::kReduction:
      return Reduction(node, rebuild);
    case ir::OpClass::kFactory: {
      Operands operands = rebuild.Renamed(node);
      const DType dtype = rebuild.from().type(node.results[0]).dtype;
      for (size_t i = 0; i < (node.op == Op::kIota ? 2 : 1); ++i) {
        FUSIOND_ASSIGN_OR_RETURN(operands[i], rebuild.Cast(operands[i], dtype));
      }
      return rebuild.Add(node.op, operands, node.attributes);
    }
    case ir::OpClass::kMap: {
      if (node.op == Op::kTriu) return Triu(node, rebuild);
      if (node.op != Op::kPad) return std::nullopt;
      Operands operands = rebuild.Renamed(node);
      FUSIOND_ASSIGN_OR_RETURN(operands[1],
                               rebuild.Cast(operands[1], rebuild.type(operands[0]).dtype));
      return rebuild.Add(node.op, operands, node.attributes);
    }
    default:
      return std::nullopt;
  }
}

}  // namespace

absl::StatusOr<bool> ExplicitTypes(ir::Graph& graph, const PassContext& context) {
  return Rebuild(graph, context).Run(graph, Visit);
}

}  // namespace fusiond::passes
