#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compiler/ir/infer_internal.h"
#include "compiler/ir/rules.h"
#include "compiler/ir/text.h"
#include "compiler/ir/verify_internal.h"
#include "runtime/base/status_macros.h"

namespace fusiond::ir {
namespace {

absl::Status CheckComputeType(const Graph& graph, const Node& node) {
  absl::InlinedVector<const Type*, 4> types;
  for (const ValueId operand : node.operands) types.push_back(&graph.type(operand));
  FUSIOND_ASSIGN_OR_RETURN(const DType compute,
                           PointwiseComputeType(node.op, types, node.attributes));
  for (size_t i = node.op == Op::kWhere ? 1 : 0; i < types.size(); ++i) {
    if (types[i]->dtype == compute) continue;
    return OpError(Rule::kComputeType, node.op,
                   absl::StrFormat("operand %d is %s, the op computes in %s", i,
                                   DTypeName(types[i]->dtype), DTypeName(compute)));
  }
  return absl::OkStatus();
}

bool MovesOnly(const Node& node) {
  switch (Info(node.op).op_class) {
    case OpClass::kLeaf:
    case OpClass::kFactory:
    case OpClass::kMetadata:
    case OpClass::kShape:
    case OpClass::kMap:
      return true;
    default:
      return node.op == Op::kCast || node.op == Op::kSet || node.op == Op::kSegmentSet;
  }
}

absl::Status CheckNarrow(const Graph& graph, const Node& node) {
  if (MovesOnly(node)) return absl::OkStatus();
  for (const ValueId value : node.operands) {
    const DType dtype = graph.type(value).dtype;
    if (ComputeType(dtype) == dtype) continue;
    return OpError(Rule::kNarrow, node.op, absl::StrCat("reads ", DTypeName(dtype)));
  }
  return absl::OkStatus();
}

bool IsFourReductions(Op op) {
  return op == Op::kSum || op == Op::kProd || op == Op::kMax || op == Op::kMin;
}

absl::Status CheckReduction(const Graph& graph, const Node& node) {
  if (Info(node.op).op_class != OpClass::kReduction) return absl::OkStatus();
  if (!IsFourReductions(node.op)) return OpError(Rule::kReduction, node.op, "is left");
  if (!node.attributes.Bool(AttributeKey::kKeepdim)) {
    return OpError(Rule::kReduction, node.op, "keepdim is false");
  }
  for (const int64_t d : node.attributes.Ints(AttributeKey::kDims)) {
    if (graph.type(node.operands[0]).shape[d] != 1) continue;
    return OpError(Rule::kReduction, node.op, absl::StrCat("dim ", d, " has extent 1"));
  }
  return absl::OkStatus();
}

// expand and set stand before outputs, or expand before a map, or before a reduction that it cannot
// be taken out of.
absl::Status CheckViews(const Graph& graph, const Node& node) {
  if (node.op == Op::kBroadcastInDim || node.op == Op::kTriu)
    return OpError(Rule::kViews, node.op, "is left");
  if (node.op != Op::kExpand && node.op != Op::kSet) return absl::OkStatus();
  for (const NodeId id : graph.users(node.results[0])) {
    const Op user = graph.node(id).op;
    const bool mapped = Info(user).op_class == OpClass::kMap;
    const bool repeated = node.op == Op::kExpand && (mapped || IsFourReductions(user));
    if (repeated || user == Op::kSet || Info(user).op_class == OpClass::kShape) continue;
    return OpError(Rule::kViews, node.op, absl::StrCat("is read by ", Info(user).name));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckCanonical(const Graph& graph, const Node& node) {
  if (Info(node.op).op_class == OpClass::kPointwise) {
    FUSIOND_RETURN_IF_ERROR(CheckComputeType(graph, node));
  }
  FUSIOND_RETURN_IF_ERROR(CheckNarrow(graph, node));
  FUSIOND_RETURN_IF_ERROR(CheckReduction(graph, node));
  return CheckViews(graph, node);
}

}  // namespace fusiond::ir
