// Result types of pointwise ops and reductions, and the form of every node. infer_shape.cc has the
// ops whose meaning is their shape, promote.cc the dtypes.
#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "compiler/ir/graph.h"
#include "compiler/ir/infer_internal.h"
#include "compiler/ir/limits.h"
#include "compiler/ir/text.h"
#include "runtime/base/counted.h"
#include "runtime/base/element.h"
#include "runtime/base/status_macros.h"

namespace fusiond::ir {
namespace {

using base::Counted;
using Types = absl::InlinedVector<Type, 1>;

constexpr int64_t kMostElements = int64_t{1} << 62;

double LargestFinite(DType dtype) {
  switch (dtype) {
    case DType::kHalf:
      return 65504;
    case DType::kBFloat16:
      return 0x1.fep127;
    case DType::kFloat:
      return std::numeric_limits<float>::max();
    default:
      return std::numeric_limits<double>::max();
  }
}

absl::string_view KindName(AttributeKind kind) {
  switch (kind) {
    case AttributeKind::kBool:
      return "a bool";
    case AttributeKind::kInt:
      return "an integer";
    case AttributeKind::kFloat:
      return "a float";
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

struct KindReader {
  AttributeKind operator()(bool) const { return AttributeKind::kBool; }
  AttributeKind operator()(int64_t) const { return AttributeKind::kInt; }
  AttributeKind operator()(double) const { return AttributeKind::kFloat; }
  AttributeKind operator()(DType) const { return AttributeKind::kDType; }
  AttributeKind operator()(const std::vector<int64_t>&) const { return AttributeKind::kInts; }
  AttributeKind operator()(const std::vector<bool>&) const { return AttributeKind::kBools; }
};

AttributeKind KindOf(const Attribute& attribute) { return std::visit(KindReader(), attribute); }

bool IsOfKind(const Attribute& attribute, AttributeKind kind) {
  const AttributeKind actual = KindOf(attribute);
  const bool number = actual == AttributeKind::kBool || actual == AttributeKind::kInt ||
                      actual == AttributeKind::kFloat;
  return actual == kind || (number && kind == AttributeKind::kNumber);
}

// "; it has dims, keepdim", for an attribute that an op has not.
std::string AttributesOf(Op op) {
  const auto append_name = [](std::string* out, const AttributeSpec& spec) {
    absl::StrAppend(out, AttributeName(spec.key));
  };
  const absl::Span<const AttributeSpec> specs = Info(op).attributes;
  return absl::StrCat("; it has ",
                      specs.empty() ? "none" : absl::StrJoin(specs, ", ", append_name));
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
    return OpError(Rule::kOperandKind, op,
                   absl::StrCat("operand 3 must be a scalar, not ", Print(*operands[3])));
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
  FUSIOND_RETURN_IF_ERROR(CheckTensor(op, operand));
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
  const AttributeKind kind = dtype == DType::kBool ? AttributeKind::kBool
                             : IsInteger(dtype)    ? AttributeKind::kInt
                                                   : AttributeKind::kFloat;
  if (!IsOfKind(value, kind)) {
    return OpError(Rule::kConstant, Op::kConstant,
                   absl::StrCat("the value is ", KindName(KindOf(value)), ", ", DTypeName(dtype),
                                " takes ", KindName(kind)));
  }
  if (const int64_t* number = std::get_if<int64_t>(&value)) {
    const int64_t least = dtype == DType::kInt32 ? std::numeric_limits<int32_t>::min()
                                                 : std::numeric_limits<int64_t>::min();
    if (*number >= least && *number <= -(least + 1)) return ScalarType(dtype);
    return OpError(Rule::kConstant, Op::kConstant,
                   absl::StrFormat("%d is out of %s's range, %d to %d", *number, DTypeName(dtype),
                                   least, -(least + 1)));
  }
  if (const double* number = std::get_if<double>(&value)) {
    if (!std::isfinite(*number) || std::isfinite(base::RoundTo(dtype, *number)))
      return ScalarType(dtype);
    return OpError(Rule::kConstant, Op::kConstant,
                   absl::StrFormat("%g is out of %s's range, at most %g", *number, DTypeName(dtype),
                                   LargestFinite(dtype)));
  }
  return ScalarType(dtype);
}

}  // namespace

absl::Status OpError(Rule rule, Op op, absl::string_view detail) {
  return RuleError(rule, absl::StrCat(Info(op).name, ": ", detail));
}

absl::Status CheckTensor(Op op, const Type& operand) {
  if (!operand.scalar) return absl::OkStatus();
  return OpError(
      Rule::kOperandKind, op,
      absl::StrCat("operand 0 must be a tensor, not a scalar of ", DTypeName(operand.dtype)));
}

absl::Status CheckOperandCount(Op op, size_t operands) {
  const OpInfo& info = Info(op);
  if (static_cast<int>(operands) >= info.min_operands &&
      static_cast<int>(operands) <= info.max_operands) {
    return absl::OkStatus();
  }
  const std::string most = Counted(info.max_operands, "operand");
  const std::string takes =
      info.min_operands == info.max_operands ? most : absl::StrCat(info.min_operands, " to ", most);
  return OpError(Rule::kArity, op, absl::StrCat("takes ", takes, ", not ", operands));
}

absl::Status UnknownAttribute(Op op, absl::string_view name) {
  return OpError(Rule::kAttributes, op,
                 absl::StrCat("has no attribute '", name, "'", AttributesOf(op)));
}

absl::Status CheckForm(Op op, size_t operands, const Attributes& attributes) {
  FUSIOND_RETURN_IF_ERROR(CheckOperandCount(op, operands));
  for (const auto& [key, value] : attributes) {
    const AttributeSpec* spec = FindSpec(op, key);
    if (spec == nullptr) return UnknownAttribute(op, AttributeName(key));
    if (!IsOfKind(value, spec->kind)) {
      return OpError(Rule::kAttributes, op,
                     absl::StrCat("attribute '", AttributeName(key), "' must be ",
                                  KindName(spec->kind), ", not ", KindName(KindOf(value))));
    }
  }
  for (const AttributeSpec& spec : Info(op).attributes) {
    if (spec.required && attributes.Find(spec.key) == nullptr) {
      return OpError(
          Rule::kAttributes, op,
          absl::StrCat("needs attribute '", AttributeName(spec.key), "', ", KindName(spec.kind)));
    }
  }
  return absl::OkStatus();
}

Number InRange(Number value, DType dtype) {
  if (double* number = std::get_if<double>(&value)) {
    if (std::isfinite(*number) && !std::isfinite(base::RoundTo(dtype, *number)))
      return std::copysign(INFINITY, *number);
  }
  if (int64_t* number = std::get_if<int64_t>(&value); number != nullptr && dtype == DType::kInt32)
    return int64_t{static_cast<int32_t>(*number)};
  return value;
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
      double about = 1;
      for (const int64_t extent : shape) about *= extent > 1 ? static_cast<double>(extent) : 1;
      return OpError(Rule::kElementLimit, op,
                     absl::StrFormat("shape [%s] has about %.3g elements, limit %d",
                                     absl::StrJoin(shape, ","), about, Limits().max_elements));
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
    case OpClass::kMap: {
      FUSIOND_ASSIGN_OR_RETURN(types[0], InferMap(op, operands, attributes));
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
