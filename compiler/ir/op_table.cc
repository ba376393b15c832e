#include "compiler/ir/op_table.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/ir/rules.h"

namespace fusiond::ir {
namespace {

constexpr auto kLeaf = OpClass::kLeaf;
constexpr auto kFactory = OpClass::kFactory;
constexpr auto kMetadata = OpClass::kMetadata;
constexpr auto kPointwise = OpClass::kPointwise;
constexpr auto kReduction = OpClass::kReduction;
constexpr auto kShape = OpClass::kShape;
constexpr auto kMap = OpClass::kMap;

constexpr auto kNone = Promotion::kNone;
constexpr auto kArithmetic = Promotion::kArithmetic;
constexpr auto kFloatResult = Promotion::kFloatResult;
constexpr auto kFloatOnly = Promotion::kFloatOnly;
constexpr auto kIntegral = Promotion::kIntegral;
constexpr auto kBitwise = Promotion::kBitwise;
constexpr auto kComparison = Promotion::kComparison;
constexpr auto kLogical = Promotion::kLogical;
constexpr auto kPredicate = Promotion::kPredicate;
constexpr auto kSelect = Promotion::kSelect;
constexpr auto kSameType = Promotion::kSameType;
constexpr auto kCast = Promotion::kCast;
constexpr auto kReduceSum = Promotion::kReduceSum;

AttributeSpec Required(AttributeKey key, AttributeKind kind) { return {key, kind, true, {}}; }
AttributeSpec Optional(AttributeKey key, AttributeKind kind) { return {key, kind, false, {}}; }
AttributeSpec Default(AttributeKey key, AttributeKind kind, Attribute value) {
  return {key, kind, false, std::move(value)};
}

// Specs in the order of AttributeKey.
std::vector<AttributeSpec> SpecsOf(Op op) {
  const auto dtype = [](bool required) {
    return AttributeSpec{AttributeKey::kDtype, AttributeKind::kDType, required, {}};
  };
  const AttributeSpec dims = Required(AttributeKey::kDims, AttributeKind::kInts);
  const AttributeSpec shape = Required(AttributeKey::kShape, AttributeKind::kInts);
  const AttributeSpec keepdim = Default(AttributeKey::kKeepdim, AttributeKind::kBool, false);
  const AttributeSpec correction =
      Default(AttributeKey::kCorrection, AttributeKind::kInt, int64_t{1});
  switch (op) {
    case Op::kInput:
      return {Optional(AttributeKey::kContiguity, AttributeKind::kInts),
              Optional(AttributeKey::kStrideOrder, AttributeKind::kInts),
              Default(AttributeKey::kHost, AttributeKind::kBool, false)};
    case Op::kConstant:
      return {Required(AttributeKey::kValue, AttributeKind::kNumber), dtype(false)};
    case Op::kFull:
      return {dtype(true), shape};
    case Op::kIota:
      return {Default(AttributeKey::kDtype, AttributeKind::kDType, DType::kInt), shape};
    case Op::kUniform:
    case Op::kNormal:
      return {Default(AttributeKey::kDtype, AttributeKind::kDType, DType::kFloat), shape};
    case Op::kCat:
    case Op::kGather:
    case Op::kIndexSelect:
    case Op::kPermute:
    case Op::kSize:
    case Op::kSqueeze:
    case Op::kTakeAlongAxis:
      return {dims};
    case Op::kCast:
      return {dtype(true)};
    case Op::kSum:
    case Op::kProd:
      return {dtype(false), dims, keepdim};
    case Op::kMax:
    case Op::kMin:
      return {dims, keepdim};
    case Op::kVar:
    case Op::kVarMean:
      return {dims, keepdim, correction};
    case Op::kWelford:
      return {dims};
    case Op::kBroadcast:
      return {Required(AttributeKey::kIsBroadcastDim, AttributeKind::kBools)};
    case Op::kBroadcastInDim:
      return {shape, Required(AttributeKey::kBroadcastDims, AttributeKind::kInts)};
    case Op::kExpand:
    case Op::kReshape:
      return {shape};
    case Op::kPad:
      return {Required(AttributeKey::kPadWidths, AttributeKind::kInts)};
    case Op::kTriu:
      return {Default(AttributeKey::kDiagonal, AttributeKind::kInt, int64_t{0})};
    case Op::kSlice:
      return {Required(AttributeKey::kStartIndices, AttributeKind::kInts),
              Required(AttributeKey::kEndIndices, AttributeKind::kInts)};
    default:
      return {};
  }
}

struct Table {
  std::vector<std::vector<AttributeSpec>> specs;
  std::vector<OpInfo> rows;
  absl::flat_hash_map<absl::string_view, Op> by_name;
};

// Built on first use and never destroyed.
const Table& TheTable() {
  static const Table& table = *[] {
    auto* t = new Table;
#define FUSIOND_OP(enumerator, name, min_operands, max_operands, results, op_class, promotion, \
                   doc)                                                                        \
  t->rows.push_back(                                                                           \
      {Op::enumerator, name, min_operands, max_operands, results, op_class, promotion, doc, {}});
#include "compiler/ir/ops.def"
#undef FUSIOND_OP
    t->specs.reserve(t->rows.size());
    for (OpInfo& row : t->rows) {
      row.attributes = t->specs.emplace_back(SpecsOf(row.op));
      t->by_name.emplace(row.name, row.op);
    }
    return t;
  }();
  return table;
}

}  // namespace

const OpInfo& Info(Op op) { return TheTable().rows[static_cast<size_t>(op)]; }

absl::Span<const OpInfo> OpTable() { return TheTable().rows; }

std::optional<Op> OpFromName(absl::string_view name) {
  const auto& by_name = TheTable().by_name;
  const auto it = by_name.find(name);
  return it == by_name.end() ? std::nullopt : std::make_optional(it->second);
}

bool IsCommutative(Op op) {
  switch (op) {
    case Op::kAdd:
    case Op::kBitwiseAnd:
    case Op::kBitwiseOr:
    case Op::kBitwiseXor:
    case Op::kEq:
    case Op::kGcd:
    case Op::kLogicalAnd:
    case Op::kLogicalOr:
    case Op::kMaximum:
    case Op::kMinimum:
    case Op::kMul:
    case Op::kNe:
      return true;
    default:
      return false;
  }
}

absl::Status UnknownOpError(absl::string_view name) {
  const auto append_name = [](std::string* out, const OpInfo& info) {
    absl::StrAppend(out, info.name);
  };
  return RuleError(Rule::kOpKnown, absl::StrCat("op '", absl::CHexEscape(name.substr(0, 64)),
                                                "' is not supported; supported: ",
                                                absl::StrJoin(OpTable(), ", ", append_name)));
}

}  // namespace fusiond::ir
