// Promotion of dtypes: which type an op computes in, and which it gives (README.md has the table).
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compiler/ir/graph.h"
#include "compiler/ir/infer_internal.h"
#include "runtime/base/status_macros.h"

namespace fusiond::ir {
namespace {

enum class Kind { kBool, kInteger, kFloat };

Kind KindOf(DType dtype) {
  if (dtype == DType::kBool) return Kind::kBool;
  return IsInteger(dtype) ? Kind::kInteger : Kind::kFloat;
}

// The widest scalar type of a kind.
DType ScalarOf(Kind kind) {
  switch (kind) {
    case Kind::kBool:
      return DType::kBool;
    case Kind::kInteger:
      return DType::kInt;
    case Kind::kFloat:
      break;
  }
  return DType::kDouble;
}

// The smallest type that holds both, within one category.
DType Wider(DType a, DType b) {
  if (a == b) return a;
  if (KindOf(a) != KindOf(b)) return KindOf(a) < KindOf(b) ? b : a;
  // Neither half nor bf16 holds the other.
  if (ComputeType(a) != a && ComputeType(b) != b) return DType::kFloat;
  return a < b ? b : a;
}

void Join(std::optional<DType>& into, DType dtype) { into = into ? Wider(*into, dtype) : dtype; }

// Tensors with dims decide; a tensor of rank 0 or a scalar matters only where its kind is higher
// (bool < integer < float), and a scalar then as i64 or f32. Scalars among themselves give their
// kind's widest type.
DType CommonType(Operands operands) {
  std::optional<DType> tensor, rank0, scalar;
  for (const Type* type : operands) {
    Join(type->scalar ? scalar : type->rank() == 0 ? rank0 : tensor, type->dtype);
  }
  if (!tensor && !rank0) return ScalarOf(KindOf(*scalar));
  std::optional<DType> common = tensor;
  if (rank0 && (!common || KindOf(*rank0) > KindOf(*common))) common = rank0;
  if (scalar && KindOf(*scalar) > KindOf(*common)) {
    common = IsFloatingPoint(*scalar) ? DType::kFloat : DType::kInt;
  }
  return *common;
}

bool AllScalars(Operands operands) {
  for (const Type* type : operands) {
    if (!type->scalar) return false;
  }
  return true;
}

absl::Status DTypeError(Op op, DType actual, absl::string_view taken) {
  return OpError(Rule::kDType, op, absl::StrCat("takes ", taken, ", not ", DTypeName(actual)));
}

}  // namespace

absl::StatusOr<DType> PointwiseComputeType(Op op, absl::Span<const Type* const> operands,
                                           const Attributes& attributes) {
  FUSIOND_RETURN_IF_ERROR(CheckForm(op, operands.size(), attributes));
  const Promotion promotion = Info(op).promotion;
  if (promotion == Promotion::kSameType || promotion == Promotion::kCast) {
    return operands[0]->dtype;
  }
  if (promotion == Promotion::kLogical) return DType::kBool;
  const DType common = CommonType(operands);
  switch (promotion) {
    case Promotion::kSelect:
      if (operands[0]->dtype != DType::kBool) {
        return DTypeError(op, operands[0]->dtype, "bool as its condition");
      }
      return common;
    case Promotion::kFloatResult:
      if (IsFloatingPoint(common)) return ComputeType(common);
      return AllScalars(operands) ? DType::kDouble : DType::kFloat;
    case Promotion::kFloatOnly:
      if (common == DType::kFloat || common == DType::kDouble) return common;
      return DTypeError(op, common, "f32 and f64");
    case Promotion::kIntegral:
      if (IsInteger(common)) return common;
      return DTypeError(op, common, "i32 and i64");
    case Promotion::kBitwise:
      if (!IsFloatingPoint(common)) return common;
      return DTypeError(op, common, "bool, i32 and i64");
    default:
      return ComputeType(common);
  }
}

absl::StatusOr<DType> ResultDType(Op op, Operands operands, const Attributes& attributes) {
  switch (Info(op).promotion) {
    case Promotion::kComparison:
    case Promotion::kLogical:
    case Promotion::kPredicate:
      return DType::kBool;
    case Promotion::kCast:
      return *attributes.Dtype(AttributeKey::kDtype);
    case Promotion::kReduceSum: {
      const DType given = attributes.Dtype(AttributeKey::kDtype).value_or(operands[0]->dtype);
      if (attributes.Find(AttributeKey::kDtype) == nullptr && !IsFloatingPoint(given)) {
        return DType::kInt;
      }
      if (given == DType::kBool) {
        return DTypeError(op, given, "i32, i64, f16, bf16, f32 and f64 as attribute dtype");
      }
      return given;
    }
    default:
      return PointwiseComputeType(op, operands, attributes);
  }
}

}  // namespace fusiond::ir
