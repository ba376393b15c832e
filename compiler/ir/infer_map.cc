// Types of maps: ops whose result's elements are elements of an operand, at indices computed from
// their own.
#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "compiler/ir/infer_internal.h"
#include "compiler/ir/text.h"
#include "runtime/base/counted.h"
#include "runtime/base/status_macros.h"

namespace fusiond::ir {
namespace {

using base::Counted;

std::string List(const std::vector<int64_t>& values) {
  return absl::StrCat("[", absl::StrJoin(values, ","), "]");
}

absl::StatusOr<Type> InferPermute(const Type& operand, const Attributes& attributes) {
  const std::vector<int64_t>& dims = attributes.Ints(AttributeKey::kDims);
  const int rank = operand.rank();
  std::vector<bool> seen(rank, false);
  bool good = static_cast<int>(dims.size()) == rank;
  Dims shape;
  for (size_t i = 0; good && i < dims.size(); ++i) {
    good = dims[i] >= 0 && dims[i] < rank && !seen[dims[i]];
    if (!good) break;
    seen[dims[i]] = true;
    shape.push_back(operand.shape[dims[i]]);
  }
  if (good) return TensorType(operand.dtype, shape);
  return OpError(
      Rule::kPermute, Op::kPermute,
      absl::StrFormat("dims=%s is no permutation of 0 … rank-1 at rank %d", List(dims), rank));
}

absl::StatusOr<Type> InferSlice(const Type& operand, const Attributes& attributes) {
  const Op op = Op::kSlice;
  const std::vector<int64_t>& starts = attributes.Ints(AttributeKey::kStartIndices);
  const std::vector<int64_t>& ends = attributes.Ints(AttributeKey::kEndIndices);
  for (const AttributeKey key : {AttributeKey::kStartIndices, AttributeKey::kEndIndices}) {
    const std::vector<int64_t>& indices = attributes.Ints(key);
    if (static_cast<int>(indices.size()) == operand.rank()) continue;
    return OpError(
        Rule::kSlice, op,
        absl::StrFormat("%s=%s has %s, the operand's rank is %d", AttributeName(key), List(indices),
                        Counted(indices.size(), "entry", "entries"), operand.rank()));
  }
  Dims shape;
  for (int d = 0; d < operand.rank(); ++d) {
    if (starts[d] < 0 || ends[d] < starts[d]) {
      return OpError(
          Rule::kSlice, op,
          absl::StrFormat("dim %d begins at %d and ends before %d, must be 0 or more and "
                          "not behind its end",
                          d, starts[d], ends[d]));
    }
    const int64_t extent = operand.shape[d];
    if (extent == kSymbolic) {
      shape.push_back(starts[d] == ends[d] ? 0 : kSymbolic);
    } else {
      shape.push_back(std::max<int64_t>(0, std::min(ends[d], extent) - starts[d]));
    }
  }
  return TensorType(operand.dtype, shape);
}

absl::StatusOr<Type> InferReshape(Operands operands, const Attributes& attributes) {
  const Op op = Op::kReshape;
  const std::vector<int64_t>& shape = attributes.Ints(AttributeKey::kShape);
  const Dims dims(shape.begin(), shape.end());
  FUSIOND_RETURN_IF_ERROR(CheckShape(op, dims));
  FUSIOND_RETURN_IF_ERROR(CheckShapeOperands(op, operands, 1, shape));
  const Type result = TensorType(operands[0]->dtype, dims);
  const std::optional<int64_t> from = ElementCount(*operands[0]), to = ElementCount(result);
  if (!from || !to || *from == *to) return result;
  return OpError(Rule::kReshape, op,
                 absl::StrFormat("the operand has %s, shape=%s has %s", Counted(*from, "element"),
                                 List(shape), Counted(*to, "element")));
}

absl::StatusOr<Type> InferTriu(const Type& operand) {
  if (operand.rank() >= 2) return TensorType(operand.dtype, operand.shape);
  return OpError(
      Rule::kTriu, Op::kTriu,
      absl::StrFormat("the operand has %s, must have 2 or more", Counted(operand.rank(), "dim")));
}

absl::StatusOr<Type> InferPad(Operands operands, const Attributes& attributes) {
  const Op op = Op::kPad;
  const Type& operand = *operands[0];
  if (!operands[1]->scalar) {
    return OpError(
        Rule::kOperandKind, op,
        absl::StrCat("operand 1, the fill, must be a scalar, not ", Print(*operands[1])));
  }
  const std::vector<int64_t>& widths = attributes.Ints(AttributeKey::kPadWidths);
  if (widths.size() % 2 != 0 || static_cast<int>(widths.size()) > 2 * operand.rank()) {
    return OpError(Rule::kPad, op,
                   absl::StrFormat("pad_widths=%s has %s, the operand's rank is %d", List(widths),
                                   Counted(widths.size(), "entry", "entries"), operand.rank()));
  }
  Dims shape = operand.shape;
  for (size_t i = 0; i < widths.size(); i += 2) {
    const size_t d = shape.size() - 1 - i / 2;
    if (shape[d] == kSymbolic) continue;
    int64_t extent = 0;
    if (__builtin_add_overflow(widths[i], widths[i + 1], &extent) ||
        __builtin_add_overflow(extent, shape[d], &extent) || extent < 0) {
      return OpError(Rule::kPad, op,
                     absl::StrFormat("dim %d has extent %d and cannot be widened by %d and %d", d,
                                     shape[d], widths[i], widths[i + 1]));
    }
    shape[d] = extent;
  }
  FUSIOND_RETURN_IF_ERROR(CheckShape(op, shape));
  return TensorType(operand.dtype, shape);
}

// The one dim that the attribute names, of a tensor of rank `rank`.
absl::StatusOr<int64_t> OneDim(Rule rule, Op op, int rank, const Attributes& attributes) {
  const std::vector<int64_t>& dims = attributes.Ints(AttributeKey::kDims);
  if (dims.size() == 1 && dims[0] >= 0 && dims[0] < rank) return dims[0];
  return OpError(rule, op,
                 absl::StrFormat("dims=%s must name one dim of rank %d", List(dims), rank));
}

absl::StatusOr<Type> InferCat(Operands operands, const Attributes& attributes) {
  const Op op = Op::kCat;
  const Type& first = *operands[0];
  FUSIOND_ASSIGN_OR_RETURN(const int64_t dim, OneDim(Rule::kCat, op, first.rank(), attributes));
  Dims shape = first.shape;
  for (size_t i = 1; i < operands.size(); ++i) {
    const Type& next = *operands[i];
    if (next.scalar || next.rank() != first.rank() || next.dtype != first.dtype) {
      return OpError(
          Rule::kCat, op,
          absl::StrFormat("operand %d is %s, operand 0 %s", i, Print(next), Print(first)));
    }
    for (int d = 0; d < first.rank(); ++d) {
      int64_t& met = shape[d];
      const int64_t extent = next.shape[d];
      if (d == dim) {
        met = met == kSymbolic || extent == kSymbolic ? kSymbolic : met + extent;
      } else if (met == kSymbolic) {
        met = extent;
      } else if (extent != met && extent != kSymbolic) {
        return OpError(Rule::kCat, op,
                       absl::StrFormat("operand %d has extent %d at dim %d, an earlier operand %d",
                                       i, extent, d, met));
      }
    }
    FUSIOND_RETURN_IF_ERROR(CheckShape(op, shape));
  }
  return TensorType(first.dtype, shape);
}

// index_select, gather, take_along_axis.
absl::StatusOr<Type> InferIndexing(Op op, Operands operands, const Attributes& attributes) {
  const Type& operand = *operands[0];
  const Type& index = *operands[1];
  FUSIOND_ASSIGN_OR_RETURN(const int64_t dim,
                           OneDim(Rule::kIndexing, op, operand.rank(), attributes));
  if (index.scalar || !IsInteger(index.dtype)) {
    return OpError(
        Rule::kIndexing, op,
        absl::StrCat("operand 1, the indices, must be a tensor of i32 or i64, not ", Print(index)));
  }
  const int rank = op == Op::kIndexSelect ? 1 : operand.rank();
  if (index.rank() != rank) {
    return OpError(
        Rule::kIndexing, op,
        absl::StrFormat("operand 1, the indices, has rank %d, must have %d", index.rank(), rank));
  }
  Dims shape = operand.shape;
  if (op == Op::kIndexSelect) {
    shape[dim] = index.shape[0];
    FUSIOND_RETURN_IF_ERROR(CheckShape(op, shape));
    return TensorType(operand.dtype, shape);
  }
  for (int d = 0; d < rank; ++d) {
    int64_t& met = shape[d];
    const int64_t extent = index.shape[d];
    const bool known = met != kSymbolic && extent != kSymbolic;
    const bool fits = op == Op::kGather ? extent <= met : extent == met || extent == 1 || met == 1;
    if (d != dim && known && !fits) {
      return OpError(Rule::kIndexing, op,
                     absl::StrFormat("the indices have extent %d at dim %d, operand 0 has %d",
                                     extent, d, met));
    }
    const bool keep =
        op == Op::kTakeAlongAxis && d != dim && (extent == 1 || (extent == kSymbolic && met != 1));
    if (!keep) met = extent;
  }
  FUSIOND_RETURN_IF_ERROR(CheckShape(op, shape));
  return TensorType(operand.dtype, shape);
}

}  // namespace

absl::StatusOr<Type> InferMap(Op op, Operands operands, const Attributes& attributes) {
  const Type& operand = *operands[0];
  FUSIOND_RETURN_IF_ERROR(CheckTensor(op, operand));
  switch (op) {
    case Op::kPermute:
      return InferPermute(operand, attributes);
    case Op::kSlice:
      return InferSlice(operand, attributes);
    case Op::kReshape:
      return InferReshape(operands, attributes);
    case Op::kTriu:
      return InferTriu(operand);
    case Op::kPad:
      return InferPad(operands, attributes);
    case Op::kCat:
      return InferCat(operands, attributes);
    case Op::kIndexSelect:
    case Op::kGather:
    case Op::kTakeAlongAxis:
      return InferIndexing(op, operands, attributes);
    default:
      return OpError(Rule::kOpKnown, op, "has no map rule");
  }
}

}  // namespace fusiond::ir
