// Maps in Lowering: indices travel from a map's result down its cone to what is in memory.
#include <algorithm>

#include "compiler/ir/op_table.h"
#include "compiler/schedule/cost.h"
#include "compiler/schedule/lowering_internal.h"
#include "runtime/base/status_macros.h"

namespace fusiond::schedule {

using ir::AttributeKey;
using ir::Op;
using ir::ValueId;

Index Lowering::Constant(int64_t value) const { return {value, Strides(segment_.axes.size(), 0)}; }

absl::StatusOr<uint32_t> Lowering::LowerMap(const SegmentNode& node) {
  Indices indices;
  for (const int8_t axis : node.axes) {
    indices.push_back(Constant(0));
    if (axis != kNone) indices.back().by_axis[axis] = 1;
  }
  return MapAt(graph_.node(node.node), indices, node.bases);
}

// At most as deep as a cone has nodes.
absl::StatusOr<uint32_t> Lowering::ValueAt(ValueId id, const Indices& indices,
                                           absl::Span<const ValueId> bases) {
  const ir::Type& type = graph_.type(id);
  if (type.scalar || InHostMemory(graph_, id)) return Scalar(id);
  if (ir::ElementCount(type) == 0)
    return Convert(EmitConstant(false, ir::DType::kBool), ir::DType::kBool,
                   ir::ComputeType(type.dtype));
  const auto known = mapped_.find({id, indices});
  if (known != mapped_.end()) return known->second;
  uint32_t value = 0;
  const ir::Node& node = graph_.producer(id);
  if (std::find(bases.begin(), bases.end(), id) != bases.end()) {
    value = LoadAt(id, indices);
  } else if (ir::Info(node.op).op_class == ir::OpClass::kMap) {
    FUSIOND_ASSIGN_OR_RETURN(value, MapAt(node, indices, bases));
  } else {
    FUSIOND_ASSIGN_OR_RETURN(value, Compute(node, [&](size_t slot) -> absl::StatusOr<uint32_t> {
                               const ValueId operand = node.operands[slot];
                               if (graph_.type(operand).scalar) return Scalar(operand);
                               Indices at;
                               for (const int8_t dim : OperandToFrame(graph_, node, slot))
                                 at.push_back(dim == kNone ? Constant(0) : indices[dim]);
                               return ValueAt(operand, at, bases);
                             }));
  }
  mapped_[{id, indices}] = value;
  return value;
}

absl::StatusOr<uint32_t> Lowering::MapAt(const ir::Node& node, const Indices& indices,
                                         absl::Span<const ValueId> bases) {
  Indices at = indices;
  if (node.op == Op::kPermute) {
    const std::vector<int64_t>& dims = node.attributes.Ints(AttributeKey::kDims);
    for (size_t i = 0; i < dims.size(); ++i) at[dims[i]] = indices[i];
  } else {
    const std::vector<int64_t>& starts = node.attributes.Ints(AttributeKey::kStartIndices);
    for (size_t d = 0; d < at.size(); ++d) at[d].constant += starts[d];
  }
  return ValueAt(node.operands[0], at, bases);
}

uint32_t Lowering::LoadAt(ValueId id, const Indices& indices) {
  const uint32_t tensor = memory_.source[id];
  const ir::Dims& tensor_strides = memory_.tensors[tensor].strides;
  Strides strides(segment_.axes.size(), 0);
  int64_t offset = 0;
  for (size_t d = 0; d < indices.size(); ++d) {
    offset += indices[d].constant * tensor_strides[d];
    for (size_t a = 0; a < strides.size(); ++a)
      strides[a] += indices[d].by_axis[a] * tensor_strides[d];
  }
  return EmitLoad(id, AccessTo(tensor, std::move(strides), offset));
}

}  // namespace fusiond::schedule
