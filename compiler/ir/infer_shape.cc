// Types of inputs and of the ops whose meaning is their shape.
//
// The strides of a value that is not an input follow from its op alone, never from its operands'
// strides: 0 where expand or broadcast_in_dim repeats one element, row-major over the other dims.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "compiler/ir/infer_internal.h"
#include "compiler/ir/random.h"
#include "compiler/ir/text.h"
#include "runtime/base/counted.h"
#include "runtime/base/status_macros.h"

namespace fusiond::ir {
namespace {

using base::Counted;

std::string List(const std::vector<int64_t>& values) {
  return absl::StrCat("[", absl::StrJoin(values, ","), "]");
}
std::string List(const Dims& values) { return absl::StrCat("[", absl::StrJoin(values, ","), "]"); }

// Row-major over the dims that are not expanded; stride 0 for those that are.
Type ExpandedType(DType dtype, const Dims& shape, const std::vector<bool>& expanded) {
  Dims kept = shape;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (expanded[d]) kept[d] = 1;
  }
  Type type = {.dtype = dtype, .scalar = false, .shape = shape, .strides = ContiguousStrides(kept)};
  for (size_t d = 0; d < shape.size(); ++d) {
    if (expanded[d]) type.strides[d] = 0;
  }
  return type;
}

absl::StatusOr<Type> InferFull(Operands operands, const Attributes& attributes) {
  const Op op = Op::kFull;
  if (!operands[0]->scalar) {
    return OpError(
        Rule::kOperandKind, op,
        absl::StrCat("operand 0, the value, must be a scalar, not ", Print(*operands[0])));
  }
  const std::vector<int64_t>& shape = attributes.Ints(AttributeKey::kShape);
  const Dims dims(shape.begin(), shape.end());
  FUSIOND_RETURN_IF_ERROR(CheckShape(op, dims));
  FUSIOND_RETURN_IF_ERROR(CheckShapeOperands(op, operands, 1, shape));
  return TensorType(*attributes.Dtype(AttributeKey::kDtype), dims);
}

absl::StatusOr<Type> InferIota(Operands operands, const Attributes& attributes) {
  const Op op = Op::kIota;
  for (size_t i = 0; i < 2; ++i) {
    if (operands[i]->scalar) continue;
    return OpError(Rule::kOperandKind, op,
                   absl::StrFormat("operand %d, the %s, must be a scalar, not %s", i,
                                   i == 0 ? "start" : "step", Print(*operands[i])));
  }
  const DType dtype = attributes.Dtype(AttributeKey::kDtype).value_or(DType::kInt);
  if (dtype == DType::kBool) {
    return OpError(Rule::kDType, op,
                   "takes i32, i64, f16, bf16, f32 and f64 as attribute dtype, not bool");
  }
  const std::vector<int64_t>& shape = attributes.Ints(AttributeKey::kShape);
  if (shape.size() != 1) {
    return OpError(Rule::kShapeOperands, op,
                   absl::StrFormat("shape=%s has %s, must have 1", List(shape),
                                   Counted(shape.size(), "entry", "entries")));
  }
  const Dims dims(shape.begin(), shape.end());
  FUSIOND_RETURN_IF_ERROR(CheckShape(op, dims));
  FUSIOND_RETURN_IF_ERROR(CheckShapeOperands(op, operands, 2, shape));
  return TensorType(dtype, dims);
}

// Of one element; of the device's memory, so that a captured launch draws anew each time.
absl::Status CheckSeed(Op op, Operands operands, size_t slot, const char* what) {
  const Type& type = *operands[slot];
  if (type.dtype != DType::kInt) {
    return OpError(Rule::kDType, op,
                   absl::StrFormat("operand %d, the %s, must be i64, not %s", slot, what,
                                   DTypeName(type.dtype)));
  }
  if (type.scalar || std::all_of(type.shape.begin(), type.shape.end(),
                                 [](int64_t extent) { return extent == 1; })) {
    return absl::OkStatus();
  }
  return OpError(Rule::kOperandKind, op,
                 absl::StrFormat("operand %d, the %s, must be a scalar or a tensor of one element, "
                                 "not %s",
                                 slot, what, Print(type)));
}

absl::StatusOr<Type> InferRandom(Op op, Operands operands, const Attributes& attributes) {
  const bool like = op == Op::kRandLike || op == Op::kRandnLike;
  const size_t seed = like ? 1 : 2;
  FUSIOND_RETURN_IF_ERROR(CheckSeed(op, operands, seed, "seed"));
  FUSIOND_RETURN_IF_ERROR(CheckSeed(op, operands, seed + 1, "offset"));
  const DType dtype =
      like ? operands[0]->dtype : attributes.Dtype(AttributeKey::kDtype).value_or(DType::kFloat);
  if (!IsFloatingPoint(dtype)) {
    return OpError(Rule::kDType, op,
                   absl::StrFormat("draws f16, bf16, f32 and f64, not %s", DTypeName(dtype)));
  }
  const size_t rank =
      like ? operands[0]->shape.size() : attributes.Ints(AttributeKey::kShape).size();
  for (size_t i = seed; i < seed + 2; ++i) {
    if (operands[i]->shape.size() <= rank) continue;
    return OpError(Rule::kOperandKind, op,
                   absl::StrFormat("operand %d has rank %d, the result %d", i,
                                   operands[i]->shape.size(), rank));
  }
  if (like) {
    FUSIOND_RETURN_IF_ERROR(CheckTensor(op, *operands[0]));
    return TensorType(dtype, operands[0]->shape);
  }
  for (size_t i = 0; i < 2; ++i) {
    if (operands[i]->scalar) continue;
    return OpError(Rule::kOperandKind, op,
                   absl::StrFormat("operand %d must be a scalar, not %s", i, Print(*operands[i])));
  }
  const std::vector<int64_t>& shape = attributes.Ints(AttributeKey::kShape);
  const Dims dims(shape.begin(), shape.end());
  FUSIOND_RETURN_IF_ERROR(CheckShape(op, dims));
  FUSIOND_RETURN_IF_ERROR(CheckShapeOperands(op, operands, 4, shape));
  return TensorType(dtype, dims);
}

absl::StatusOr<Type> InferSize(const Type& operand, const Attributes& attributes) {
  const std::vector<int64_t>& dims = attributes.Ints(AttributeKey::kDims);
  if (dims.size() != 1 || dims[0] < 0 || dims[0] >= operand.rank()) {
    return OpError(
        Rule::kSizeDim, Op::kSize,
        absl::StrFormat("dims=%s must name one dim of rank %d", List(dims), operand.rank()));
  }
  return ScalarType(DType::kInt);
}

absl::StatusOr<Type> InferBroadcast(const Type& operand, const Attributes& attributes) {
  const std::vector<bool>& flags = attributes.Bools(AttributeKey::kIsBroadcastDim);
  const auto kept = std::count(flags.begin(), flags.end(), false);
  if (kept != operand.rank()) {
    return OpError(Rule::kBroadcast, Op::kBroadcast,
                   absl::StrFormat("is_broadcast_dim has %s, the operand's rank is %d",
                                   Counted(kept, "false entry", "false entries"), operand.rank()));
  }
  Dims shape;
  auto extent = operand.shape.begin();
  for (const bool flag : flags) shape.push_back(flag ? 1 : *extent++);
  FUSIOND_RETURN_IF_ERROR(CheckShape(Op::kBroadcast, shape));
  return TensorType(operand.dtype, shape);
}

absl::StatusOr<Type> InferBroadcastInDim(Operands operands, const Attributes& attributes) {
  const Op op = Op::kBroadcastInDim;
  const Type& operand = *operands[0];
  const std::vector<int64_t>& shape = attributes.Ints(AttributeKey::kShape);
  const std::vector<int64_t>& dims = attributes.Ints(AttributeKey::kBroadcastDims);
  Dims extents(shape.begin(), shape.end());
  FUSIOND_RETURN_IF_ERROR(CheckShape(op, extents));
  FUSIOND_RETURN_IF_ERROR(CheckShapeOperands(op, operands, 1, shape));
  const auto rank = static_cast<int64_t>(extents.size());
  if (static_cast<int>(dims.size()) != operand.rank()) {
    return OpError(Rule::kBroadcastInDim, op,
                   absl::StrFormat("broadcast_dims=%s has %s, the operand's rank is %d", List(dims),
                                   Counted(dims.size(), "entry", "entries"), operand.rank()));
  }
  std::vector<bool> expanded(extents.size());
  for (size_t d = 0; d < extents.size(); ++d) expanded[d] = extents[d] != 1;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] < 0 || dims[i] >= rank || (i > 0 && dims[i] <= dims[i - 1])) {
      return OpError(Rule::kBroadcastInDim, op,
                     absl::StrFormat("broadcast_dims=%s must strictly increase within rank %d",
                                     List(dims), rank));
    }
    const int64_t from = operand.shape[i];
    int64_t& to = extents[dims[i]];
    if (from == 1) continue;
    if (from != to && from != kSymbolic && to != kSymbolic) {
      return OpError(Rule::kBroadcastInDim, op,
                     absl::StrFormat("operand dim %d has extent %d, result dim %d has %d", i, from,
                                     dims[i], to));
    }
    // A symbolic result extent that meets a known one is known.
    if (to == kSymbolic) to = from;
    expanded[dims[i]] = false;
  }
  return ExpandedType(operand.dtype, extents, expanded);
}

absl::StatusOr<Type> InferExpand(const Type& operand, const Attributes& attributes) {
  const Op op = Op::kExpand;
  const std::vector<int64_t>& shape = attributes.Ints(AttributeKey::kShape);
  if (static_cast<int>(shape.size()) != operand.rank()) {
    return OpError(Rule::kExpand, op,
                   absl::StrFormat("shape=%s has %s, the operand's rank is %d", List(shape),
                                   Counted(shape.size(), "entry", "entries"), operand.rank()));
  }
  Dims extents(shape.begin(), shape.end());
  FUSIOND_RETURN_IF_ERROR(CheckShape(op, extents));
  std::vector<bool> expanded(extents.size());
  for (size_t d = 0; d < extents.size(); ++d) {
    const int64_t from = operand.shape[d];
    if (extents[d] == kSymbolic) {
      extents[d] = from;
    } else if (from == 1) {
      expanded[d] = extents[d] != 1;
    } else if (from != extents[d] && from != kSymbolic) {
      return OpError(
          Rule::kExpand, op,
          absl::StrFormat("dim %d has extent %d and cannot become %d", d, from, extents[d]));
    }
  }
  return ExpandedType(operand.dtype, extents, expanded);
}

absl::StatusOr<Type> InferSqueeze(const Type& operand, const Attributes& attributes) {
  const Op op = Op::kSqueeze;
  const std::vector<int64_t>& dims = attributes.Ints(AttributeKey::kDims);
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] < 0 || dims[i] >= operand.rank() || (i > 0 && dims[i] <= dims[i - 1])) {
      return OpError(Rule::kSqueeze, op,
                     absl::StrFormat("dims=%s must strictly increase within rank %d", List(dims),
                                     operand.rank()));
    }
    if (operand.shape[dims[i]] != 1) {
      return OpError(
          Rule::kSqueeze, op,
          absl::StrFormat("dim %d has extent %d, must be 1", dims[i], operand.shape[dims[i]]));
    }
  }
  Dims shape;
  for (int d = 0; d < operand.rank(); ++d) {
    if (!std::binary_search(dims.begin(), dims.end(), d)) shape.push_back(operand.shape[d]);
  }
  return TensorType(operand.dtype, shape);
}

// stride_order as a checked permutation; row-major when absent.
absl::StatusOr<std::vector<int64_t>> StrideOrder(int rank, const Attributes& attributes) {
  if (attributes.Find(AttributeKey::kStrideOrder) == nullptr) {
    std::vector<int64_t> order(rank);
    for (int d = 0; d < rank; ++d) order[d] = rank - 1 - d;
    return order;
  }
  const std::vector<int64_t>& order = attributes.Ints(AttributeKey::kStrideOrder);
  std::vector<bool> seen(rank, false);
  bool good = static_cast<int>(order.size()) == rank;
  for (size_t i = 0; good && i < order.size(); ++i) {
    good = order[i] >= 0 && order[i] < rank && !seen[order[i]];
    if (good) seen[order[i]] = true;
  }
  if (good) return order;
  return OpError(Rule::kStrideOrder, Op::kInput,
                 absl::StrFormat("stride_order=%s is no permutation of 0 … rank-1 at rank %d",
                                 List(order), rank));
}

// Which dim stands at each allocation position, outermost first.
std::vector<int> AllocationOrder(const std::vector<int64_t>& stride_order) {
  const int rank = static_cast<int>(stride_order.size());
  std::vector<int> dims(rank);
  for (int d = 0; d < rank; ++d) dims[rank - 1 - stride_order[d]] = d;
  return dims;
}

int64_t DefaultContiguity(int64_t extent) { return extent == 1 ? kBroadcastDim : kContiguous; }

absl::Status CheckContiguity(const Dims& shape, const std::vector<int>& order,
                             const std::vector<int64_t>& contiguity) {
  const auto error = [&](absl::string_view what) {
    return OpError(Rule::kContiguity, Op::kInput, absl::StrCat(what, ", shape ", List(shape)));
  };
  if (contiguity.size() != shape.size()) {
    return error(absl::StrFormat("contiguity has %s, the rank is %d",
                                 Counted(contiguity.size(), "entry", "entries"), shape.size()));
  }
  for (size_t p = 0; p < contiguity.size(); ++p) {
    if (contiguity[p] < kNotContiguous || contiguity[p] > kBroadcastDim) {
      return error(
          absl::StrFormat("contiguity entry %d is %d, must be 0, 1 or 2", p, contiguity[p]));
    }
    if (shape[order[p]] == 1 && contiguity[p] != kBroadcastDim) {
      return error(absl::StrFormat("contiguity entry %d (dim %d) must be b, since the extent is 1",
                                   p, order[p]));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckShapeOperands(Op op, Operands operands, size_t first,
                                const std::vector<int64_t>& shape) {
  const auto symbolic = static_cast<size_t>(std::count(shape.begin(), shape.end(), kSymbolic));
  if (operands.size() - first != symbolic) {
    return OpError(Rule::kShapeOperands, op,
                   absl::StrFormat("shape=%s has %s, the node has %s for that", List(shape),
                                   Counted(symbolic, "symbolic extent"),
                                   Counted(operands.size() - first, "operand")));
  }
  for (size_t i = first; i < operands.size(); ++i) {
    if (!operands[i]->scalar || !IsInteger(operands[i]->dtype)) {
      return OpError(Rule::kShapeOperands, op,
                     absl::StrFormat("operand %d, an extent, must be an integer scalar, not %s%s",
                                     i, operands[i]->scalar ? "a scalar of " : "a tensor of ",
                                     DTypeName(operands[i]->dtype)));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Type> InferShapeOp(Op op, Operands operands, const Attributes& attributes) {
  if (op == Op::kFull) return InferFull(operands, attributes);
  if (op == Op::kIota) return InferIota(operands, attributes);
  if (IsRandom(op)) return InferRandom(op, operands, attributes);
  const Type& operand = *operands[0];
  FUSIOND_RETURN_IF_ERROR(CheckTensor(op, operand));
  switch (op) {
    case Op::kSize:
      return InferSize(operand, attributes);
    case Op::kBroadcast:
      return InferBroadcast(operand, attributes);
    case Op::kBroadcastInDim:
      return InferBroadcastInDim(operands, attributes);
    case Op::kExpand:
      return InferExpand(operand, attributes);
    case Op::kSqueeze:
      return InferSqueeze(operand, attributes);
    default:
      return OpError(Rule::kOpKnown, op, "has no shape rule");
  }
}

absl::StatusOr<Type> InputType(const Type& declared, const Attributes& attributes) {
  const Dims& shape = declared.shape;
  if (declared.scalar) {
    if (shape.empty() && attributes.begin() == attributes.end()) return ScalarType(declared.dtype);
    return OpError(Rule::kScalarInput, Op::kInput,
                   shape.empty()
                       ? absl::StrCat("a scalar has no attributes, this one has '",
                                      AttributeName(attributes.begin()->first), "'")
                       : absl::StrCat("a scalar has no shape, this one has ", List(shape)));
  }
  FUSIOND_RETURN_IF_ERROR(CheckShape(Op::kInput, shape));
  if (attributes.Bool(AttributeKey::kHost) && !shape.empty()) {
    return OpError(Rule::kHost, Op::kInput,
                   absl::StrFormat("a host tensor has rank 0, this one %d", shape.size()));
  }
  FUSIOND_ASSIGN_OR_RETURN(const std::vector<int64_t> stride_order,
                           StrideOrder(declared.rank(), attributes));
  const std::vector<int> order = AllocationOrder(stride_order);
  std::vector<int64_t> contiguity = attributes.Ints(AttributeKey::kContiguity);
  if (attributes.Find(AttributeKey::kContiguity) == nullptr) {
    for (const int d : order) contiguity.push_back(DefaultContiguity(shape[d]));
  }
  FUSIOND_RETURN_IF_ERROR(CheckContiguity(shape, order, contiguity));

  Type type = {
      .dtype = declared.dtype, .scalar = false, .shape = shape, .strides = Dims(shape.size())};
  int64_t stride = 1;  // of the next dim outwards, if it is contiguous
  for (size_t p = order.size(); p-- > 0;) {
    const int64_t extent = shape[order[p]];
    if (contiguity[p] == kBroadcastDim) {
      type.strides[order[p]] = extent == 1 ? stride : 0;
      continue;
    }
    if (contiguity[p] == kNotContiguous) stride = kUnknownStride;
    type.strides[order[p]] = stride;
    if (extent == kSymbolic) stride = kUnknownStride;
    if (stride != kUnknownStride && extent > 1) stride *= extent;
  }
  return type;
}

void DropInputDefaults(const Type& type, Attributes& attributes) {
  std::vector<int64_t> row_major;
  for (int d = type.rank(); d-- > 0;) row_major.push_back(d);
  const Attribute* given = attributes.Find(AttributeKey::kStrideOrder);
  std::vector<int64_t> stride_order =
      given == nullptr ? row_major : attributes.Ints(AttributeKey::kStrideOrder);
  if (given != nullptr && stride_order == row_major) attributes.Erase(AttributeKey::kStrideOrder);
  if (attributes.Find(AttributeKey::kContiguity) == nullptr) return;
  std::vector<int64_t> contiguity;
  for (const int d : AllocationOrder(stride_order)) {
    contiguity.push_back(DefaultContiguity(type.shape[d]));
  }
  if (attributes.Ints(AttributeKey::kContiguity) == contiguity) {
    attributes.Erase(AttributeKey::kContiguity);
  }
}

}  // namespace fusiond::ir
