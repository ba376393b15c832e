#include "compiler/ir/specialise.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compiler/ir/infer_internal.h"
#include "compiler/ir/random.h"
#include "compiler/ir/rules.h"
#include "runtime/base/counted.h"
#include "runtime/base/status_macros.h"

namespace fusiond::ir {
namespace {

using base::Counted;

// The op stands in messages of rules already.
absl::Status At(const std::string& name, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat("node ", name, ": ", status.message()));
}

// Integer arithmetic that shapes are made of. nullopt: not one of them, or undefined.
std::optional<int64_t> Fold(Op op, absl::Span<const int64_t> args) {
  int64_t result = 0;
  const int64_t a = args[0];
  if (op == Op::kSet || op == Op::kCast) return a;
  if (op == Op::kNeg && !__builtin_sub_overflow(int64_t{0}, a, &result)) return result;
  if (args.size() != 2) return std::nullopt;
  const int64_t b = args[1];
  switch (op) {
    case Op::kAdd:
      return __builtin_add_overflow(a, b, &result) ? std::nullopt : std::make_optional(result);
    case Op::kSub:
      return __builtin_sub_overflow(a, b, &result) ? std::nullopt : std::make_optional(result);
    case Op::kMul:
      return __builtin_mul_overflow(a, b, &result) ? std::nullopt : std::make_optional(result);
    case Op::kDiv:
      return b == 0 || b == -1 ? std::nullopt : std::make_optional(a / b);
    case Op::kMod:
      return b == 0 || b == -1 ? std::nullopt : std::make_optional(a % b);
    case Op::kMaximum:
      return std::max(a, b);
    case Op::kMinimum:
      return std::min(a, b);
    default:
      return std::nullopt;
  }
}

// Behind which operands the extents stand, of ops whose shape may be symbolic.
std::optional<size_t> FirstExtent(Op op) {
  switch (op) {
    case Op::kBroadcastInDim:
    case Op::kFull:
    case Op::kReshape:
      return 1;
    case Op::kIota:
      return 2;
    case Op::kUniform:
    case Op::kNormal:
      return 4;
    default:
      return std::nullopt;
  }
}

class Specialiser {
 public:
  Specialiser(const Graph& from, absl::Span<const Dims> extents, const ValueNames* names)
      : from_(from), extents_(extents), names_(names) {}

  absl::StatusOr<Graph> Run() {
    if (extents_.size() != from_.inputs().size()) {
      return absl::InvalidArgumentError(absl::StrFormat("%s given, the graph has %s",
                                                        Counted(extents_.size(), "shape"),
                                                        Counted(from_.inputs().size(), "input")));
    }
    renamed_.resize(from_.value_count());
    for (const NodeId id : from_.TopologicalOrder()) {
      const Node& node = from_.node(id);
      if (const absl::Status status = Visit(node); !status.ok()) {
        return At(NameOf(node.results[0], names_), status);
      }
    }
    for (const Output& output : from_.outputs()) {
      to_.AddOutput(renamed_[output.value], output.alias_input);
    }
    return std::move(to_);
  }

 private:
  absl::Status Visit(const Node& node) {
    if (node.op == Op::kInput) return VisitInput(node);
    absl::InlinedVector<ValueId, 4> operands;
    for (const ValueId operand : node.operands) operands.push_back(renamed_[operand]);
    if (node.op == Op::kSize) {
      const int64_t dim = node.attributes.Ints(AttributeKey::kDims)[0];
      renamed_[node.results[0]] = to_.AddConstant(to_.type(operands[0]).shape[dim], DType::kInt);
      return absl::OkStatus();
    }
    if (const std::optional<int64_t> folded = FoldScalar(node, operands)) {
      renamed_[node.results[0]] = to_.AddConstant(*folded, DType::kInt);
      return absl::OkStatus();
    }
    Attributes attributes = node.attributes;
    if (const std::optional<size_t> first = FirstExtent(node.op)) {
      FUSIOND_RETURN_IF_ERROR(BindShape(node, *first, operands, attributes));
    }
    if (IsRandom(node.op)) {
      std::vector<const Type*> types;
      for (const ValueId operand : operands) types.push_back(&to_.type(operand));
      FUSIOND_ASSIGN_OR_RETURN(const auto inferred, InferTypes(node.op, types, attributes));
      FUSIOND_ASSIGN_OR_RETURN(renamed_[node.results[0]],
                               ExpandRandom(to_, node.op, operands, inferred[0]));
      return absl::OkStatus();
    }
    FUSIOND_ASSIGN_OR_RETURN(const NodeId made,
                             to_.AddNode(node.op, operands, std::move(attributes)));
    for (size_t i = 0; i < node.results.size(); ++i) {
      renamed_[node.results[i]] = to_.node(made).results[i];
    }
    return CheckSymbolicDims(node, to_.node(made));
  }

  // A symbolic dim is never broadcast, even if its extent turns out to be 1.
  absl::Status CheckSymbolicDims(const Node& node, const Node& made) const {
    const bool in_dim = node.op == Op::kBroadcastInDim;
    if (!in_dim && node.op != Op::kExpand && Info(node.op).op_class != OpClass::kPointwise) {
      return absl::OkStatus();
    }
    const Dims& result = to_.type(made.results[0]).shape;
    for (size_t i = 0; i < made.operands.size(); ++i) {
      const Dims& declared = from_.type(node.operands[i]).shape;
      const Dims& bound = to_.type(made.operands[i]).shape;
      for (size_t d = 0; d < bound.size(); ++d) {
        const size_t at = in_dim ? node.attributes.Ints(AttributeKey::kBroadcastDims)[d]
                                 : result.size() - bound.size() + d;
        if (declared[d] == kSymbolic && bound[d] != result[at]) {
          return OpError(
              Rule::kExtentsMeet, node.op,
              absl::StrFormat("symbolic extent %d of operand %d is %d and meets extent %d", d, i,
                              bound[d], result[at]));
        }
      }
    }
    return absl::OkStatus();
  }

  absl::Status VisitInput(const Node& node) {
    const ValueId id = node.results[0];
    const size_t index = next_input_++;
    Type type = from_.type(id);
    const Dims& given = extents_[index];
    if (given.size() != type.shape.size()) {
      return absl::InvalidArgumentError(absl::StrFormat("input %d: %s given, the rank is %d", index,
                                                        Counted(given.size(), "extent"),
                                                        type.rank()));
    }
    for (size_t d = 0; d < given.size(); ++d) {
      if (given[d] < 0 || (type.shape[d] != kSymbolic && type.shape[d] != given[d])) {
        return absl::InvalidArgumentError(absl::StrFormat(
            "input %d: extent %d is declared %d, %d given", index, d, type.shape[d], given[d]));
      }
    }
    FUSIOND_ASSIGN_OR_RETURN(Attributes attributes, BindContiguity(node, type, given));
    type.shape = given;
    FUSIOND_ASSIGN_OR_RETURN(renamed_[id], to_.AddInput(type, std::move(attributes)));
    return absl::OkStatus();
  }

  // A symbolic dim whose extent turns out to be 1 is a broadcast dim from here on.
  absl::StatusOr<Attributes> BindContiguity(const Node& node, const Type& type,
                                            const Dims& given) const {
    Attributes attributes = node.attributes;
    if (attributes.Find(AttributeKey::kContiguity) == nullptr) return attributes;
    const std::vector<int64_t>& stride_order = attributes.Ints(AttributeKey::kStrideOrder);
    std::vector<int64_t> contiguity = attributes.Ints(AttributeKey::kContiguity);
    const int rank = type.rank();
    for (int d = 0; d < rank; ++d) {
      const int position = stride_order.empty() ? d : rank - 1 - static_cast<int>(stride_order[d]);
      if (given[d] == 1) contiguity[position] = kBroadcastDim;
    }
    attributes.Set(AttributeKey::kContiguity, std::move(contiguity));
    return attributes;
  }

  std::optional<int64_t> Constant(ValueId id) const {
    const std::optional<Number> number = to_.ConstantValue(id);
    const int64_t* value = number ? std::get_if<int64_t>(&*number) : nullptr;
    return value == nullptr ? std::nullopt : std::make_optional(*value);
  }

  // The value of an integer scalar node whose operands are known.
  std::optional<int64_t> FoldScalar(const Node& node, absl::Span<const ValueId> operands) const {
    const Type& type = from_.type(node.results[0]);
    if (Info(node.op).op_class != OpClass::kPointwise || !type.scalar ||
        type.dtype != DType::kInt) {
      return std::nullopt;
    }
    absl::InlinedVector<int64_t, 2> args;
    for (const ValueId operand : operands) {
      const std::optional<int64_t> value = Constant(operand);
      if (!value) return std::nullopt;
      args.push_back(*value);
    }
    return Fold(node.op, args);
  }

  // Puts the values of the shape operands into attribute shape and drops the operands.
  absl::Status BindShape(const Node& node, size_t first, absl::InlinedVector<ValueId, 4>& operands,
                         Attributes& attributes) const {
    std::vector<int64_t> shape = attributes.Ints(AttributeKey::kShape);
    size_t next = first;
    for (int64_t& extent : shape) {
      if (extent != kSymbolic) continue;
      const std::optional<int64_t> value = Constant(operands[next]);
      if (!value) {
        return absl::UnimplementedError(absl::StrFormat(
            "%s: operand %d (%s), an extent, is neither a constant nor made of sizes",
            Info(node.op).name, next, NameOf(node.operands[next], names_)));
      }
      if (*value < 0) {
        return OpError(Rule::kExtents, node.op,
                       absl::StrFormat("operand %d (%s), an extent, is %d, must be 0 or more", next,
                                       NameOf(node.operands[next], names_), *value));
      }
      extent = *value;
      ++next;
    }
    operands.resize(first);
    attributes.Set(AttributeKey::kShape, std::move(shape));
    return absl::OkStatus();
  }

  const Graph& from_;
  const absl::Span<const Dims> extents_;
  const ValueNames* const names_;
  Graph to_;
  std::vector<ValueId> renamed_;
  size_t next_input_ = 0;
};

}  // namespace

absl::StatusOr<Graph> Specialise(const Graph& graph, absl::Span<const Dims> extents,
                                 const ValueNames* names) {
  return Specialiser(graph, extents, names).Run();
}

}  // namespace fusiond::ir
