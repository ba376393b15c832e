#include "compiler/passes/trivial_reductions.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "compiler/passes/rebuild.h"
#include "runtime/base/status_macros.h"

namespace fusiond::passes {
namespace {

using ir::AttributeKey;
using ir::Op;
using ir::ValueId;

// The operand of a reduction without the repetition of reduced dims.
struct Repeated {
  ValueId value;
  int64_t times = 1;
};

absl::StatusOr<Repeated> WithoutRepetition(Rebuild& rebuild, ValueId operand,
                                           const std::vector<int64_t>& dims) {
  Repeated repeated{operand};
  const ir::Node& node = rebuild.to().producer(operand);
  if (node.op != Op::kExpand) return repeated;
  const ValueId source = node.operands[0];
  const ir::Dims& small = rebuild.type(source).shape;
  const ir::Dims& large = rebuild.type(operand).shape;
  std::vector<int64_t> shape(large.begin(), large.end());
  for (const int64_t d : dims) {
    if (small[d] == large[d] || large[d] == 0) continue;
    repeated.times *= large[d];
    shape[d] = 1;
  }
  if (repeated.times == 1) return repeated;
  repeated.value = source;
  if (std::equal(shape.begin(), shape.end(), small.begin(), small.end())) return repeated;
  FUSIOND_ASSIGN_OR_RETURN(repeated.value,
                           rebuild.Add(Op::kExpand, {source}, {{AttributeKey::kShape, shape}}));
  return repeated;
}

absl::StatusOr<ValueId> Repeat(Rebuild& rebuild, Op op, const Repeated& repeated) {
  const ir::DType dtype = rebuild.type(repeated.value).dtype;
  if (repeated.times == 1 || op == Op::kMax || op == Op::kMin) return repeated.value;
  const ValueId times = ir::IsFloatingPoint(dtype)
                            ? rebuild.builder().Constant(static_cast<double>(repeated.times), dtype)
                            : rebuild.builder().Constant(repeated.times, dtype);
  return rebuild.Add(op == Op::kSum ? Op::kMul : Op::kPow, {repeated.value, times});
}

Replacement Visit(const ir::Node& node, Rebuild& rebuild) {
  if (node.op != Op::kSum && node.op != Op::kProd && node.op != Op::kMax && node.op != Op::kMin) {
    return std::nullopt;
  }
  // Sums and products of other types than their operand's are written with casts (explicit_types).
  if (rebuild.from().type(node.results[0]).dtype != rebuild.from().type(node.operands[0]).dtype) {
    return std::nullopt;
  }
  const std::vector<int64_t>& dims = node.attributes.Ints(AttributeKey::kDims);
  FUSIOND_ASSIGN_OR_RETURN(const Repeated repeated,
                           WithoutRepetition(rebuild, rebuild[node.operands[0]], dims));
  std::vector<int64_t> kept;
  for (const int64_t d : dims) {
    if (rebuild.type(repeated.value).shape[d] != 1) kept.push_back(d);
  }
  if (kept.size() == dims.size() && !dims.empty()) return std::nullopt;

  FUSIOND_ASSIGN_OR_RETURN(ValueId value, Repeat(rebuild, node.op, repeated));
  if (!kept.empty()) {
    FUSIOND_ASSIGN_OR_RETURN(
        value, rebuild.Add(node.op, {value},
                           {{AttributeKey::kDims, kept}, {AttributeKey::kKeepdim, true}}));
  }
  if (node.attributes.Bool(AttributeKey::kKeepdim) || dims.empty()) return value;
  return rebuild.Add(Op::kSqueeze, {value}, {{AttributeKey::kDims, dims}});
}

}  // namespace

absl::StatusOr<bool> TrivialReductions(ir::Graph& graph, const PassContext& context) {
  return Rebuild(graph, context).Run(graph, Visit);
}

}  // namespace fusiond::passes
