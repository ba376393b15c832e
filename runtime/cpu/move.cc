// The shape ops and maps of NodeEvaluator: elements are moved, with the bounds that they carry.
#include <algorithm>
#include <limits>
#include <optional>

#include "runtime/base/status_macros.h"
#include "runtime/cpu/index.h"
#include "runtime/cpu/node_evaluator.h"

namespace fusiond::cpu {
namespace {

using ir::AttributeKey;
using ir::Dims;
using ir::Op;

bool IsFloat(const HostTensor& tensor) { return ir::IsFloatingPoint(tensor.type.dtype); }

// Element `to` of the result becomes element `from` of an operand.
void MoveElement(const HostTensor& operand, int64_t from, HostTensor& result, size_t to) {
  if (IsFloat(result)) {
    result.floats[to] = operand.floats[from];
  } else {
    result.integers[to] = operand.integers[from];
  }
  if (!result.error.empty()) result.error[to] = operand.error[from];
}

// Element `offset` of the operand and on, by these strides.
absl::Status MoveByStrides(const HostTensor& operand, int64_t offset, const Dims& strides,
                           const Cancelled& cancelled, HostTensor& result) {
  return ForEachPoint(
      result.type.shape, std::array<Dims, 1>{strides}, cancelled,
      [&](size_t i, const auto& at) { MoveElement(operand, offset + at[0], result, i); });
}

// The coordinates of element `at` of a tensor of this shape.
Dims CoordinatesOf(int64_t at, const Dims& shape) {
  Dims coordinates(shape.size(), 0);
  for (size_t d = shape.size(); d-- > 0;) {
    coordinates[d] = at % shape[d];
    at /= shape[d];
  }
  return coordinates;
}

// The element at these coordinates; nullopt outside the tensor.
std::optional<int64_t> ElementAt(const Dims& coordinates, const Dims& shape) {
  int64_t at = 0;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (coordinates[d] < 0 || coordinates[d] >= shape[d]) return std::nullopt;
    at = at * shape[d] + coordinates[d];
  }
  return at;
}

}  // namespace

absl::Status NodeEvaluator::Move(HostTensor& result) const {
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
  return MoveByStrides(operand, 0, strides, options_.cancelled, result);
}

absl::Status NodeEvaluator::Map(HostTensor& result) const {
  const HostTensor& operand = *operands_[0];
  const Dims own = ir::ContiguousStrides(operand.type.shape);
  if (result.size() == 0) return absl::OkStatus();
  switch (node_.op) {
    case Op::kPermute: {
      Dims strides;
      for (const int64_t d : node_.attributes.Ints(AttributeKey::kDims)) strides.push_back(own[d]);
      return MoveByStrides(operand, 0, strides, options_.cancelled, result);
    }
    case Op::kSlice: {
      const std::vector<int64_t>& starts = node_.attributes.Ints(AttributeKey::kStartIndices);
      int64_t offset = 0;
      for (size_t d = 0; d < own.size(); ++d) offset += starts[d] * own[d];
      return MoveByStrides(operand, offset, own, options_.cancelled, result);
    }
    case Op::kReshape:
      return MoveByStrides(operand, 0, ir::ContiguousStrides(result.type.shape), options_.cancelled,
                           result);
    case Op::kTriu:
      return Triu(result);
    case Op::kPad:
      return Pad(result);
    case Op::kCat:
      return Cat(result);
    case Op::kIndexSelect:
    case Op::kGather:
    case Op::kTakeAlongAxis:
      return TakeByIndex(result);
    default:
      return absl::InternalError("a map without evaluation");
  }
}

// Elements not written are 0 (Allocate).
absl::Status NodeEvaluator::Triu(HostTensor& result) const {
  const Dims& shape = result.type.shape;
  const int64_t diagonal = node_.attributes.Int(AttributeKey::kDiagonal);
  const int64_t rows = shape[shape.size() - 2], columns = shape.back();
  return ForEachIndex(result.size(), options_.cancelled, [&](size_t linear) {
    const auto i = static_cast<int64_t>(linear);
    const int64_t row = i / columns % rows, column = i % columns;
    // Without overflow: the left side has at most 41 bits.
    if (column - row >= diagonal) MoveElement(*operands_[0], i, result, i);
  });
}

absl::Status NodeEvaluator::Pad(HostTensor& result) const {
  FUSIOND_RETURN_IF_ERROR(Fill(*operands_[1], result));
  const Dims& from = operands_[0]->type.shape;
  const std::vector<int64_t>& widths = node_.attributes.Ints(AttributeKey::kPadWidths);
  return ForEachIndex(result.size(), options_.cancelled, [&](size_t linear) {
    const auto i = static_cast<int64_t>(linear);
    Dims at = CoordinatesOf(i, result.type.shape);
    for (size_t w = 0; w < widths.size(); w += 2) at[at.size() - 1 - w / 2] -= widths[w];
    if (const auto element = ElementAt(at, from)) MoveElement(*operands_[0], *element, result, i);
  });
}

absl::Status NodeEvaluator::Cat(HostTensor& result) const {
  const int64_t dim = node_.attributes.Ints(AttributeKey::kDims)[0];
  return ForEachIndex(result.size(), options_.cancelled, [&](size_t linear) {
    const auto i = static_cast<int64_t>(linear);
    Dims at = CoordinatesOf(i, result.type.shape);
    for (const HostTensor* operand : operands_) {
      if (const auto element = ElementAt(at, operand->type.shape)) {
        MoveElement(*operand, *element, result, i);
        break;
      }
      at[dim] -= operand->type.shape[dim];
    }
  });
}

absl::Status NodeEvaluator::TakeByIndex(HostTensor& result) const {
  const HostTensor& operand = *operands_[0];
  const HostTensor& index = *operands_[1];
  const int64_t dim = node_.attributes.Ints(AttributeKey::kDims)[0];
  // Where a tensor has one element along a dim, that is the one.
  const auto within = [](Dims at, const Dims& shape) {
    for (size_t d = 0; d < at.size(); ++d)
      if (shape[d] == 1) at[d] = 0;
    return at;
  };
  return ForEachIndex(result.size(), options_.cancelled, [&](size_t linear) {
    const auto i = static_cast<int64_t>(linear);
    Dims at = CoordinatesOf(i, result.type.shape);
    const int64_t named = node_.op == Op::kIndexSelect
                              ? at[dim]
                              : *ElementAt(within(at, index.type.shape), index.type.shape);
    if (node_.op == Op::kTakeAlongAxis) at = within(at, operand.type.shape);
    at[dim] = index.integers[named];
    if (const auto element = ElementAt(at, operand.type.shape))
      MoveElement(operand, *element, result, i);
    if (!index.error.empty() && index.error[named] != 0)
      result.error[i] = std::numeric_limits<double>::infinity();
  });
}

}  // namespace fusiond::cpu
