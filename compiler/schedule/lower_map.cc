// Maps in Lowering: indices travel from a map's result down its cone to what is in memory.
#include <algorithm>

#include "compiler/ir/op_table.h"
#include "compiler/schedule/cost.h"
#include "compiler/schedule/lowering_internal.h"
#include "runtime/base/status_macros.h"

namespace fusiond::schedule {

using ir::AttributeKey;
using ir::DType;
using ir::Op;
using ir::ValueId;

absl::StatusOr<uint32_t> Lowering::LowerMap(const SegmentNode& node) {
  Indices indices;
  for (const int8_t axis : node.axes) indices.push_back(Axis(axis));
  return MapAt(graph_.node(node.node), indices, {node.bases, std::nullopt});
}

// start + step · index.
absl::StatusOr<uint32_t> Lowering::LowerIota(const ir::Node& node, const Index& index) {
  const DType dtype = graph_.type(node.results[0]).dtype;
  const DType compute = ir::ComputeType(dtype);
  uint32_t value = Convert(EmitIndex(index), index_type_, compute);
  const auto operand = [&](size_t slot) -> absl::StatusOr<uint32_t> {
    FUSIOND_ASSIGN_OR_RETURN(const uint32_t scalar, Scalar(node.operands[slot]));
    return Convert(scalar, graph_.type(node.operands[slot]).dtype, compute);
  };
  const auto is = [&](uint32_t instr, int64_t number) {
    const Instr& constant = region_.instrs[instr];
    return constant.kind == Instr::Kind::kConstant &&
           std::visit([&](auto v) { return v == static_cast<decltype(v)>(number); },
                      constant.number);
  };
  FUSIOND_ASSIGN_OR_RETURN(const uint32_t step, operand(1));
  if (!is(step, 1)) value = EmitBinary(Op::kMul, value, step, compute);
  FUSIOND_ASSIGN_OR_RETURN(const uint32_t start, operand(0));
  if (!is(start, 0)) value = EmitBinary(Op::kAdd, value, start, compute);
  return Convert(value, compute, dtype);
}

Indices Lowering::OperandIndices(const ir::Node& node, const Indices& indices, size_t slot) const {
  Indices at;
  for (const int8_t dim : OperandToFrame(graph_, node, slot))
    at.push_back(dim == kNone ? Constant(0) : indices[dim]);
  return at;
}

// At most as deep as a cone has nodes.
absl::StatusOr<uint32_t> Lowering::ValueAt(ValueId id, const Indices& indices, const Cone& cone) {
  const ir::Type& type = graph_.type(id);
  if (type.scalar || InHostMemory(graph_, id)) return Scalar(id);
  if (ir::ElementCount(type) == 0) return Zero(type.dtype);
  const auto known = mapped_.find({id, indices, cone.guard});
  if (known != mapped_.end()) return known->second;
  const Origin origin(*this, id);
  uint32_t value = 0;
  const ir::Node& node = graph_.producer(id);
  if (std::find(cone.bases.begin(), cone.bases.end(), id) != cone.bases.end()) {
    value = LoadAt(id, indices, cone.guard);
  } else if (IsMap(node.op)) {
    FUSIOND_ASSIGN_OR_RETURN(value, MapAt(node, indices, cone));
  } else if (node.op == Op::kIota) {
    FUSIOND_ASSIGN_OR_RETURN(value, LowerIota(node, indices[0]));
  } else {
    FUSIOND_ASSIGN_OR_RETURN(value, Compute(node, [&](size_t slot) -> absl::StatusOr<uint32_t> {
                               const ValueId operand = node.operands[slot];
                               if (graph_.type(operand).scalar) return Scalar(operand);
                               return ValueAt(operand, OperandIndices(node, indices, slot), cone);
                             }));
  }
  mapped_[{id, indices, cone.guard}] = value;
  return value;
}

absl::StatusOr<uint32_t> Lowering::MapAt(const ir::Node& node, const Indices& indices,
                                         const Cone& cone) {
  switch (node.op) {
    case Op::kReshape:
      return ReshapeAt(node, indices, cone);
    case Op::kPad:
      return PadAt(node, indices, cone);
    case Op::kCat:
      return CatAt(node, indices, cone);
    case Op::kIndexSelect:
    case Op::kGather:
    case Op::kTakeAlongAxis:
      return TakeAt(node, indices, cone);
    default:
      break;
  }
  const std::vector<int64_t>& starts = node.attributes.Ints(AttributeKey::kStartIndices);
  Indices at;
  for (size_t d = 0; d < indices.size(); ++d) at.push_back(Shift(indices[d], starts[d]));
  return ValueAt(node.operands[0], at, cone);
}

// Group by group of dims that hold the same number of elements on both sides.
absl::StatusOr<uint32_t> Lowering::ReshapeAt(const ir::Node& node, const Indices& indices,
                                             const Cone& cone) {
  const ir::Dims& from = graph_.type(node.operands[0]).shape;
  const ir::Dims& to = graph_.type(node.results[0]).shape;
  Indices at(from.size(), Constant(0));
  for (size_t f = 0, t = 0; f < from.size() || t < to.size();) {
    const size_t first = f;
    int64_t operand_elements = 1, elements = 1;
    Index flat = Constant(0);
    const auto take_result = [&] {
      flat = Add(Scale(flat, to[t]), indices[t]);
      elements *= to[t++];
    };
    if (f < from.size()) operand_elements *= from[f++];
    while (operand_elements != elements) {
      if (operand_elements < elements) {
        operand_elements *= from[f++];
      } else {
        take_result();
      }
    }
    while (f == from.size() && t < to.size()) take_result();  // extents of 1
    for (size_t d = f; d-- > first;) {
      if (d == first) {
        at[d] = flat;
      } else {
        std::tie(flat, at[d]) = DivMod(flat, from[d]);
      }
    }
  }
  return ValueAt(node.operands[0], at, cone);
}

absl::StatusOr<uint32_t> Lowering::PadAt(const ir::Node& node, const Indices& indices,
                                         const Cone& cone) {
  const ir::Dims& from = graph_.type(node.operands[0]).shape;
  const DType dtype = graph_.type(node.results[0]).dtype;
  const std::vector<int64_t>& widths = node.attributes.Ints(AttributeKey::kPadWidths);
  FUSIOND_ASSIGN_OR_RETURN(uint32_t fill, Scalar(node.operands[1]));
  fill = Convert(fill, graph_.type(node.operands[1]).dtype, dtype);
  if (ir::ElementCount(graph_.type(node.operands[0])) == 0) return fill;
  Indices at = indices;
  Guard inside;
  for (size_t w = 0; w < widths.size(); w += 2) {
    const size_t d = at.size() - 1 - w / 2;
    at[d] = Shift(at[d], -widths[w]);
    inside = And(inside, InRange(at[d], from[d]));
  }
  FUSIOND_ASSIGN_OR_RETURN(const uint32_t value,
                           ValueAt(node.operands[0], at, cone.Where(inside, *this)));
  return Select(inside, value, fill);
}

// The last operand, where no earlier one is.
absl::StatusOr<uint32_t> Lowering::CatAt(const ir::Node& node, const Indices& indices,
                                         const Cone& cone) {
  const int64_t dim = node.attributes.Ints(AttributeKey::kDims)[0];
  const Index& along = indices[dim];
  int64_t begin = graph_.type(node.results[0]).shape[dim];
  std::optional<uint32_t> result;
  for (size_t i = node.operands.size(); i-- > 0;) {
    const int64_t extent = graph_.type(node.operands[i]).shape[dim];
    begin -= extent;
    if (extent == 0 || along.low >= begin + extent || along.high < begin) continue;
    Indices at = indices;
    at[dim] = Shift(along, -begin);
    const Guard here = InRange(at[dim], extent);
    FUSIOND_ASSIGN_OR_RETURN(const uint32_t value,
                             ValueAt(node.operands[i], at, cone.Where(here, *this)));
    result = result ? Select(here, value, *result) : value;
  }
  return result ? *result : Zero(graph_.type(node.results[0]).dtype);
}

absl::StatusOr<uint32_t> Lowering::TakeAt(const ir::Node& node, Indices indices, const Cone& cone) {
  const ValueId operand = node.operands[0], index = node.operands[1];
  const ir::Dims& from = graph_.type(operand).shape;
  const int64_t dim = node.attributes.Ints(AttributeKey::kDims)[0];
  const DType dtype = graph_.type(index).dtype;
  const auto within = [&](Indices at, const ir::Dims& shape) {
    for (size_t d = 0; d < at.size(); ++d)
      if (shape[d] == 1) at[d] = Constant(0);
    return at;
  };
  const Indices index_at = node.op == Op::kIndexSelect ? Indices{indices[dim]}
                                                       : within(indices, graph_.type(index).shape);
  FUSIOND_ASSIGN_OR_RETURN(const uint32_t named, ValueAt(index, index_at, cone));
  // Compared in a type that holds index and extent.
  const DType wide = index_type_ == DType::kInt ? DType::kInt : dtype;
  const uint32_t compared = Convert(named, dtype, wide);
  const uint32_t extent = EmitConstant(from[dim], wide);
  const uint32_t zero = EmitConstant(int64_t{0}, wide);
  const uint32_t from_zero = EmitBinary(Op::kGe, compared, zero, DType::kBool);
  const Guard inside = And(from_zero, EmitBinary(Op::kLt, compared, extent, DType::kBool));
  if (node.op == Op::kTakeAlongAxis) indices = within(std::move(indices), from);
  indices[dim] = Constant(0);
  indices[dim].computed = {{Convert(named, dtype, index_type_), 1}};
  indices[dim].high = from[dim] - 1;
  const Cone taken = cone.Where(inside, *this);
  FUSIOND_ASSIGN_OR_RETURN(const uint32_t value, ValueAt(operand, indices, taken));
  // A fetch under that guard is 0 already where it does not hold.
  const Instr& fetch = region_.instrs[value];
  const bool zero_outside = fetch.kind == Instr::Kind::kFetch && fetch.operands.size() == 2 &&
                            fetch.operands[1] == *taken.guard;
  return zero_outside ? value : Select(inside, value, Zero(graph_.type(operand).dtype));
}

uint32_t Lowering::Zero(DType dtype) {
  return Convert(EmitConstant(false, DType::kBool), DType::kBool, ir::ComputeType(dtype));
}

uint32_t Lowering::Select(Guard guard, uint32_t value, uint32_t otherwise) {
  if (!guard) return value;
  Instr select;
  select.op = Op::kWhere;
  select.operands = {*guard, value, otherwise};
  select.dtype = region_.instrs[value].dtype;
  return Emit(std::move(select));
}

uint32_t Lowering::LoadAt(ValueId id, const Indices& indices, Guard guard) {
  const uint32_t tensor = memory_.source[id];
  const ir::Dims& strides = memory_.tensors[tensor].strides;
  Index offset = Constant(0);
  for (size_t d = 0; d < indices.size(); ++d) offset = Add(offset, Scale(indices[d], strides[d]));
  Recombine(offset);
  if (offset.IsLinear() && !guard)
    return EmitLoad(id, AccessTo(tensor, std::move(offset.by_axis), offset.constant));
  Instr fetch;
  fetch.kind = Instr::Kind::kFetch;
  fetch.dtype = ir::ComputeType(graph_.type(id).dtype);
  fetch.access = AccessTo(tensor, offset.by_axis, 0);
  std::fill(offset.by_axis.begin(), offset.by_axis.end(), 0);
  fetch.operands = {EmitIndex(std::move(offset))};
  if (guard) fetch.operands.push_back(*guard);
  return Emit(std::move(fetch));
}

}  // namespace fusiond::schedule
