#include <algorithm>
#include <cmath>
#include <optional>

#include "compiler/ir/op_table.h"
#include "compiler/schedule/cost.h"
#include "compiler/schedule/lowering_internal.h"
#include "runtime/base/status_macros.h"

namespace fusiond::schedule {
namespace {

using ir::DType;
using ir::Op;
using ir::ValueId;

// As fd_cast would; nullopt where the device has to decide (a float that no i32 holds).
std::optional<ir::Number> ConvertNumber(const ir::Number& number, DType to) {
  if (ir::IsFloatingPoint(to))
    return std::visit([](auto v) -> ir::Number { return static_cast<double>(v); }, number);
  if (to == DType::kBool) return std::visit([](auto v) -> ir::Number { return v != 0; }, number);
  if (const double* value = std::get_if<double>(&number)) {
    if (!(std::abs(*value) < 0x1p31)) return std::nullopt;
    return static_cast<int64_t>(*value);
  }
  const bool* flag = std::get_if<bool>(&number);
  const int64_t value = flag != nullptr ? *flag : std::get<int64_t>(number);
  return to == DType::kInt32 ? static_cast<int32_t>(value) : value;
}

// The greatest power of two, at most `most`, that divides `bytes`.
int64_t Alignment(int64_t most, int64_t bytes) {
  while (bytes % most != 0) most /= 2;
  return most;
}

}  // namespace

absl::Status Lowering::Run() {
  constexpr int64_t kLimit = int64_t{1} << 31;
  for (ValueId id = 0; id < graph_.value_count(); ++id)
    if (ir::ElementCount(graph_.type(id)).value_or(0) >= kLimit) index_type_ = DType::kInt;
  for (const Tensor& tensor : memory_.tensors) {
    int64_t last = 0;
    for (size_t d = 0; d < tensor.shape.size(); ++d)
      last += (tensor.shape[d] - 1) * tensor.strides[d];
    if (last >= kLimit) index_type_ = DType::kInt;
  }
  for (const SegmentNode& node : segment_.nodes) {
    const ir::Node& ir_node = graph_.node(node.node);
    const Origin origin(*this, ir_node.results[0]);
    FUSIOND_ASSIGN_OR_RETURN(const uint32_t instr,
                             IsMap(ir_node.op) ? LowerMap(node) : Lower(ir_node, node.axes));
    const DimMap axes = ResultAxes(graph_, ir_node, node.axes);
    values_[{ir_node.results[0], axes}] = instr;
    if (Stores(segment_, ir_node.results[0])) LowerStores(ir_node.results[0], instr, axes);
  }
  return absl::OkStatus();
}

uint32_t Lowering::Emit(Instr instr) {
  instr.origin = origin_;
  region_.instrs.push_back(std::move(instr));
  return static_cast<uint32_t>(region_.instrs.size() - 1);
}

uint32_t Lowering::EmitConstant(ir::Number number, DType dtype) {
  Instr constant;
  constant.kind = Instr::Kind::kConstant;
  constant.dtype = ir::ComputeType(dtype);
  constant.number = number;
  return Emit(std::move(constant));
}

Access Lowering::AccessTo(uint32_t tensor, Strides strides, int64_t offset) {
  const auto [entry, added] =
      tensors_.try_emplace({tensor, offset}, static_cast<uint32_t>(region_.tensors.size()));
  if (added) {
    Tensor from = memory_.tensors[tensor];
    from.offset = offset;
    from.alignment = Alignment(from.alignment, offset * ir::ByteSize(from.dtype));
    region_.tensors.push_back(std::move(from));
  }
  return {entry->second, std::move(strides)};
}

Access Lowering::AccessTo(uint32_t tensor, const DimMap& axes) {
  Strides strides(segment_.axes.size(), 0);
  for (size_t d = 0; d < axes.size(); ++d)
    if (axes[d] != kNone) strides[axes[d]] = memory_.tensors[tensor].strides[d];
  return AccessTo(tensor, std::move(strides), 0);
}

void Lowering::LowerStores(ValueId id, uint32_t instr, const DimMap& axes) {
  for (uint32_t target : memory_.targets[id])
    region_.stores.push_back({instr, AccessTo(target, axes)});
}

uint32_t Lowering::EmitLoad(ValueId id, Access access) {
  const Origin origin(*this, id);
  Instr load;
  load.kind = Instr::Kind::kLoad;
  load.dtype = ir::ComputeType(graph_.type(id).dtype);
  load.access = std::move(access);
  return Emit(std::move(load));
}

uint32_t Lowering::Convert(uint32_t instr, DType from, DType to) {
  if (from == to) return instr;
  if (from != DType::kDouble && ir::ComputeType(from) == to && ir::IsFloatingPoint(from))
    return instr;  // a 16-bit value is an f32 already
  const Instr& operand = region_.instrs[instr];
  if (operand.kind == Instr::Kind::kConstant && ir::ComputeType(to) == to) {
    if (std::optional<ir::Number> number = ConvertNumber(operand.number, to))
      return EmitConstant(*number, to);
  }
  Instr cast;
  cast.op = Op::kCast;
  cast.operands = {instr};
  cast.dtype = ir::ComputeType(to);
  cast.rounding = to;
  return Emit(std::move(cast));
}

absl::StatusOr<uint32_t> Lowering::Operand(const ir::Node& node, const DimMap& frame, size_t slot) {
  const ValueId id = node.operands[slot];
  // A tensor in host memory, which has no dims, reaches a kernel by value.
  if (graph_.type(id).scalar || InHostMemory(graph_, id)) return Scalar(id);
  const DimMap axes = OperandAxes(graph_, node, frame, slot);
  const auto [entry, added] = values_.try_emplace({id, axes}, 0);
  if (added) {
    const uint32_t load = EmitLoad(id, AccessTo(memory_.source[id], axes));
    return values_[{id, axes}] = load;
  }
  return entry->second;
}

// Scalars are computed by whoever needs them; operands first, without recursion.
absl::StatusOr<uint32_t> Lowering::Scalar(ValueId wanted) {
  std::vector<ValueId> work = {wanted};
  while (!work.empty()) {
    const ValueId id = work.back();
    if (scalars_.contains(id)) {
      work.pop_back();
      continue;
    }
    const ir::Node& node = graph_.producer(id);
    const size_t depth = work.size();
    for (ValueId operand : node.operands)
      if (!scalars_.contains(operand)) work.push_back(operand);
    if (work.size() != depth) continue;
    work.pop_back();
    const Origin origin(*this, id);
    uint32_t instr = 0;
    if (node.op == Op::kInput) {
      Instr scalar;
      scalar.kind = Instr::Kind::kScalar;
      scalar.dtype = ir::ComputeType(graph_.type(id).dtype);
      scalar.index = static_cast<uint32_t>(region_.scalars.size());
      region_.scalars.push_back(id);
      instr = Emit(std::move(scalar));
    } else if (node.op == Op::kConstant) {
      instr = EmitConstant(*graph_.ConstantValue(id), graph_.type(id).dtype);
    } else {
      FUSIOND_ASSIGN_OR_RETURN(instr, Lower(node, {}));
    }
    scalars_[id] = instr;
  }
  return scalars_[wanted];
}

absl::StatusOr<uint32_t> Lowering::Lower(const ir::Node& node, const DimMap& frame) {
  if (node.op == Op::kIota) return LowerIota(node, Axis(frame[0]));
  if (ir::Info(node.op).op_class == ir::OpClass::kReduction) return Reduce(node, frame);
  return Compute(node, [&](size_t slot) { return Operand(node, frame, slot); });
}

absl::StatusOr<uint32_t> Lowering::Compute(const ir::Node& node, OperandFunction operand) {
  const DType to = graph_.type(node.results[0]).dtype;
  if (IsView(node.op) || node.op == Op::kCast || node.op == Op::kFull) {
    FUSIOND_ASSIGN_OR_RETURN(const uint32_t value, operand(0));
    return Convert(value, graph_.type(node.operands[0]).dtype, to);
  }
  std::vector<const ir::Type*> types;
  for (ValueId id : node.operands) types.push_back(&graph_.type(id));
  FUSIOND_ASSIGN_OR_RETURN(const DType compute,
                           ir::PointwiseComputeType(node.op, types, node.attributes));
  Instr instr;
  instr.op = node.op;
  instr.dtype = ir::ComputeType(to);
  for (size_t slot = 0; slot < node.operands.size(); ++slot) {
    FUSIOND_ASSIGN_OR_RETURN(const uint32_t value, operand(slot));
    const bool condition = node.op == Op::kWhere && slot == 0;
    instr.operands.push_back(condition ? value : Convert(value, types[slot]->dtype, compute));
  }
  return Emit(std::move(instr));
}

absl::StatusOr<uint32_t> Lowering::Reduce(const ir::Node& node, const DimMap& frame) {
  const DType from = graph_.type(node.operands[0]).dtype;
  const DType to = graph_.type(node.results[0]).dtype;
  FUSIOND_ASSIGN_OR_RETURN(uint32_t operand, Operand(node, frame, 0));
  const DimMap reduced = ReducedDims(graph_, node);
  if (reduced.empty()) return Convert(operand, from, to);
  // Sums of doubles stay double until they are rounded once.
  const bool wide = from == DType::kDouble && ir::IsFloatingPoint(to);
  const DType accumulator = wide ? DType::kDouble : ir::ComputeType(to);
  operand = Convert(operand, from, accumulator);
  Instr reduce;
  reduce.kind = Instr::Kind::kReduce;
  reduce.op = node.op;
  reduce.operands = {operand};
  reduce.dtype = accumulator;
  reduce.over_columns = segment_.axes[frame[reduced[0]]].role == Role::kColumn;
  return Convert(Emit(std::move(reduce)), accumulator, to);
}

}  // namespace fusiond::schedule
