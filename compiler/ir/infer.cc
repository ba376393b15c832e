// Result types of pointwise ops and reductions, and the form of every node. infer_shape.cc has the
// ops whose meaning is their shape, promote.cc the dtypes.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "compiler/ir/graph.h"
#include "compiler/ir/infer_internal.h"
#include "runtime/base/status_macros.h"

namespace fusiond::ir {
namespace {

using Types = absl::InlinedVector<Type, 1>;

constexpr int64_t kMostElements = int64_t{1} << 62;

absl::string_view KindName(AttributeKind kind) {
  switch (kind) {
    case AttributeKind::kBool:
      return "a bool";
    case AttributeKind::kInt:
      return "an integer";
    case AttributeKind::kNumber:
      return "a bool, integer or float";
    case AttributeKind::kDType:
      return "a dtype";
    case AttributeKind::kInts:
      return "a list of integers";
    case AttributeKind::kBools:
      return "a list of bools";
  }
  return "?";
}

bool IsOfKind(const Attribute& attribute, AttributeKind kind) {
  switch (kind) {
    case AttributeKind::kBool:
      return std::holds_alternative<bool>(attribute);
    case AttributeKind::kInt:
      return std::holds_alternative<int64_t>(attribute);
    case AttributeKind::kNumber:
      return std::holds_alternative<bool>(attribute) ||
             std::holds_alternative<int64_t>(attribute) ||
             std::holds_alternative<double>(attribute);
    case AttributeKind::kDType:
      return std::holds_alternative<DType>(attribute);
    case AttributeKind::kInts:
      return std::holds_alternative<std::vector<int64_t>>(attribute);
    case AttributeKind::kBools:
      return std::holds_alternative<std::vector<bool>>(attribute);
  }
  return false;
}

const AttributeSpec* FindSpec(Op op, AttributeKey key) {
  for (const AttributeSpec& spec : Info(op).attributes) {
    if (spec.key == key) return &spec;
  }
  return nullptr;
}

// The extent at which all operands' extents meet.
absl::StatusOr<Type> InferPointwise(Op op, Operands operands, const Attributes& attributes) {
  FUSIOND_ASSIGN_OR_RETURN(const DType dtype, ResultDType(op, operands, attributes));
  int rank = -1;  // -1: scalars only
  for (const Type* type : operands) {
    if (!type->scalar) rank = std::max(rank, type->rank());
  }
  if (rank < 0) return ScalarType(dtype);
  if (op == Op::kAddcmul && !operands[3]->scalar) {
    return OpError(Rule::kOperandKind, op, "operand 3 must be a scalar, not a tensor");
  }
  Dims shape(rank, 1);
  for (size_t i = 0; i < operands.size(); ++i) {
    const Dims& extents = operands[i]->shape;
    const int offset = rank - static_cast<int>(extents.size());
    for (size_t d = 0; d < extents.size(); ++d) {
      int64_t& met = shape[offset + d];
      const int64_t extent = extents[d];
      if (extent == 1 || extent == met) continue;
      if (met == 1 || met == kSymbolic) {
        if (extent != kSymbolic || met == 1) met = extent;
      } else if (extent != kSymbolic) {
        return OpError(Rule::kExtentsMeet, op,
                       absl::StrFormat("operand %d has extent %d at dim %d of the result, an "
                                       "earlier operand has %d",
                                       i, extent, offset + d, met));
      }
    }
  }
  return TensorType(dtype, shape);
}

absl::Status CheckReductionDims(Op op, const Type& operand, const std::vector<int64_t>& dims) {
  const auto error = [&](absl::string_view what) {
    return OpError(
        Rule::kReductionDims, op,
        absl::StrCat(what, ": dims=[", absl::StrJoin(dims, ","), "] at rank ", operand.rank()));
  };
  if (dims.empty() && operand.rank() > 0) return error("no dim is named");
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] < 0 || dims[i] >= operand.rank()) {
      return error(absl::StrCat("dim ", dims[i], " is out of range"));
    }
    if (i > 0 && dims[i] <= dims[i - 1]) return error("dims do not strictly increase");
  }
  return absl::OkStatus();
}

absl::StatusOr<Types> InferReduction(Op op, Operands operands, const Attributes& attributes) {
  const Type& operand = *operands[0];
  if (operand.scalar) {
    return OpError(Rule::kOperandKind, op, "operand 0 must be a tensor, not a scalar");
  }
  const std::vector<int64_t>& dims = attributes.Ints(AttributeKey::kDims);
  FUSIOND_RETURN_IF_ERROR(CheckReductionDims(op, operand, dims));
  const int64_t correction = attributes.Int(AttributeKey::kCorrection, 1);
  if (correction < 0) {
    return OpError(Rule::kCorrection, op,
                   absl::StrFormat("correction is %d, must be 0 or more", correction));
  }
  FUSIOND_ASSIGN_OR_RETURN(const DType dtype, ResultDType(op, operands, attributes));
  Dims shape;
  for (int d = 0; d < operand.rank(); ++d) {
    const bool reduced = std::binary_search(dims.begin(), dims.end(), d);
    if (!reduced) shape.push_back(operand.shape[d]);
    if (reduced && attributes.Bool(AttributeKey::kKeepdim)) shape.push_back(1);
  }
  Types types(Info(op).results, TensorType(dtype, shape));
  if (op == Op::kWelford) types[2].dtype = DType::kInt;
  return types;
}

absl::StatusOr<Type> InferConstant(const Attributes& attributes) {
  const Attribute& value = *attributes.Find(AttributeKey::kValue);
  DType dtype = DType::kDouble;
  if (std::holds_alternative<bool>(value)) dtype = DType::kBool;
  if (std::holds_alternative<int64_t>(value)) dtype = DType::kInt;
  dtype = attributes.Dtype(AttributeKey::kDtype).value_or(dtype);
  const bool fits = dtype == DType::kBool ? std::holds_alternative<bool>(value)
                    : IsInteger(dtype)    ? std::holds_alternative<int64_t>(value)
                                          : std::holds_alternative<double>(value);
  if (!fits) {
    return OpError(Rule::kConstant, Op::kConstant,
                   absl::StrCat("the value is not of ", DTypeName(dtype), "'s kind"));
  }
  if (dtype == DType::kInt32) {
    const int64_t number = std::get<int64_t>(value);
    if (number != static_cast<int32_t>(number)) {
      return OpError(Rule::kConstant, Op::kConstant,
                     absl::StrFormat("%d is out of i32's range", number));
    }
  }
  return ScalarType(dtype);
}

}  // namespace

absl::Status OpError(Rule rule, Op op, absl::string_view detail) {
  return RuleError(rule, absl::StrCat(Info(op).name, ": ", detail));
}

absl::Status CheckForm(Op op, size_t operands, const Attributes& attributes) {
  const OpInfo& info = Info(op);
  const auto min = static_cast<size_t>(info.min_operands);
  const auto max = static_cast<size_t>(info.max_operands);
  if (operands < min || operands > max) {
    return OpError(Rule::kArity, op,
                   min == max
                       ? absl::StrFormat("takes %d operands, not %d", min, operands)
                       : absl::StrFormat("takes %d to %d operands, not %d", min, max, operands));
  }
  for (const auto& [key, value] : attributes) {
    const AttributeSpec* spec = FindSpec(op, key);
    if (spec == nullptr) {
      return OpError(Rule::kAttributes, op,
                     absl::StrCat("has no attribute '", AttributeName(key), "'"));
    }
    if (!IsOfKind(value, spec->kind)) {
      return OpError(
          Rule::kAttributes, op,
          absl::StrCat("attribute '", AttributeName(key), "' must be ", KindName(spec->kind)));
    }
  }
  for (const AttributeSpec& spec : info.attributes) {
    if (spec.required && attributes.Find(spec.key) == nullptr) {
      return OpError(Rule::kAttributes, op,
                     absl::StrCat("needs attribute '", AttributeName(spec.key), "'"));
    }
  }
  return absl::OkStatus();
}

void DropDefaults(Op op, Attributes& attributes) {
  for (const AttributeSpec& spec : Info(op).attributes) {
    const Attribute* value = attributes.Find(spec.key);
    if (value != nullptr && spec.default_value && *value == *spec.default_value) {
      attributes.Erase(spec.key);
    }
  }
  if (op == Op::kConstant && attributes.Find(AttributeKey::kDtype) != nullptr) {
    // A dtype that the value's kind implies.
    Attributes bare = attributes;
    bare.Erase(AttributeKey::kDtype);
    const auto implied = InferConstant(bare);
    if (implied.ok() && implied->dtype == attributes.Dtype(AttributeKey::kDtype)) {
      attributes = bare;
    }
  }
}

absl::Status CheckShape(Op op, const Dims& shape) {
  if (shape.size() > kMaxRank) {
    return OpError(Rule::kRankLimit, op,
                   absl::StrFormat("rank is %d, limit %d", shape.size(), kMaxRank));
  }
  int64_t elements = 1;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] < kSymbolic) {
      return OpError(Rule::kExtents, op,
                     absl::StrFormat("extent of dim %d is %d, must be -1, 0 or more", d, shape[d]));
    }
    // An extent of 0 counts as 1, as in ContiguousStrides.
    if (shape[d] > 1 &&
        (__builtin_mul_overflow(elements, shape[d], &elements) || elements > kMostElements)) {
      return OpError(Rule::kElementLimit, op,
                     absl::StrFormat("[%s] has more than %d elements", absl::StrJoin(shape, ","),
                                     kMostElements));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Types> InferTypes(Op op, Operands operands, const Attributes& attributes) {
  FUSIOND_RETURN_IF_ERROR(CheckForm(op, operands.size(), attributes));
  Types types(1);
  switch (Info(op).op_class) {
    case OpClass::kLeaf: {
      if (op == Op::kInput) {
        return OpError(Rule::kOpKnown, op, "an input's type is declared, not inferred");
      }
      FUSIOND_ASSIGN_OR_RETURN(types[0], InferConstant(attributes));
      return types;
    }
    case OpClass::kPointwise: {
      FUSIOND_ASSIGN_OR_RETURN(types[0], InferPointwise(op, operands, attributes));
      break;
    }
    case OpClass::kReduction: {
      FUSIOND_ASSIGN_OR_RETURN(types, InferReduction(op, operands, attributes));
      break;
    }
    case OpClass::kFactory:
    case OpClass::kMetadata:
    case OpClass::kShape: {
      FUSIOND_ASSIGN_OR_RETURN(types[0], InferShapeOp(op, operands, attributes));
      break;
    }
  }
  FUSIOND_RETURN_IF_ERROR(CheckShape(op, types[0].shape));
  return types;
}

}  // namespace fusiond::ir
