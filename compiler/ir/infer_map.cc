// Types of maps: ops whose result's elements are elements of an operand, at indices computed from
// their own.
#include <algorithm>

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

}  // namespace

absl::StatusOr<Type> InferMap(Op op, Operands operands, const Attributes& attributes) {
  const Type& operand = *operands[0];
  if (operand.scalar) {
    return OpError(
        Rule::kOperandKind, op,
        absl::StrCat("operand 0 must be a tensor, not a scalar of ", DTypeName(operand.dtype)));
  }
  switch (op) {
    case Op::kPermute:
      return InferPermute(operand, attributes);
    case Op::kSlice:
      return InferSlice(operand, attributes);
    default:
      return OpError(Rule::kOpKnown, op, "has no map rule");
  }
}

}  // namespace fusiond::ir
