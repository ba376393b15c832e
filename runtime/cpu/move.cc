// The shape ops and maps of NodeEvaluator: elements are moved, with the bounds that they carry.
#include <algorithm>

#include "runtime/cpu/index.h"
#include "runtime/cpu/node_evaluator.h"

namespace fusiond::cpu {
namespace {

using ir::AttributeKey;
using ir::Dims;
using ir::Op;

// Element `to` of the result becomes element `from` of an operand.
void MoveElement(const HostTensor& operand, int64_t from, HostTensor& result, size_t to) {
  if (ir::IsFloatingPoint(result.type.dtype)) {
    result.floats[to] = operand.floats[from];
  } else {
    result.integers[to] = operand.integers[from];
  }
  if (!result.error.empty()) result.error[to] = operand.error[from];
}

// Element `offset` of the operand and on, by these strides.
void MoveByStrides(const HostTensor& operand, int64_t offset, const Dims& strides,
                   HostTensor& result) {
  ForEachPoint(result.type.shape, std::array<Dims, 1>{strides},
               [&](size_t i, const auto& at) { MoveElement(operand, offset + at[0], result, i); });
}

}  // namespace

void NodeEvaluator::Move(HostTensor& result) const {
  const HostTensor& operand = *operands_[0];
  const Dims& shape = result.type.shape;
  Dims strides(shape.size(), 0);
  if (node_.op == Op::kBroadcastInDim) {
    const Dims own = ir::ContiguousStrides(operand.type.shape);
    const std::vector<int64_t>& to = node_.attributes.Ints(AttributeKey::kBroadcastDims);
    for (size_t d = 0; d < to.size(); ++d) strides[to[d]] = operand.type.shape[d] == 1 ? 0 : own[d];
  } else if (node_.op == Op::kExpand) {
    strides = BroadcastStrides(operand.type.shape, shape);
  } else {  // broadcast, squeeze: the same elements in the same order
    strides = ir::ContiguousStrides(shape);
  }
  MoveByStrides(operand, 0, strides, result);
}

absl::Status NodeEvaluator::Map(HostTensor& result) const {
  const HostTensor& operand = *operands_[0];
  const Dims own = ir::ContiguousStrides(operand.type.shape);
  if (result.size() == 0) return absl::OkStatus();
  switch (node_.op) {
    case Op::kPermute: {
      Dims strides;
      for (const int64_t d : node_.attributes.Ints(AttributeKey::kDims)) strides.push_back(own[d]);
      MoveByStrides(operand, 0, strides, result);
      return absl::OkStatus();
    }
    case Op::kSlice: {
      const std::vector<int64_t>& starts = node_.attributes.Ints(AttributeKey::kStartIndices);
      int64_t offset = 0;
      for (size_t d = 0; d < own.size(); ++d) offset += starts[d] * own[d];
      MoveByStrides(operand, offset, own, result);
      return absl::OkStatus();
    }
    default:
      return absl::InternalError("a map without evaluation");
  }
}

}  // namespace fusiond::cpu
