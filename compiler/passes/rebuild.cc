#include "compiler/passes/rebuild.h"

#include "compiler/passes/constants.h"
#include "runtime/base/status_macros.h"

namespace fusiond::passes {

Rebuild::Rebuild(const ir::Graph& from, const PassContext& context, Sharing sharing)
    : from_(from),
      context_(context),
      builder_(from, sharing),
      renamed_(from.value_count(), kUnmapped) {
  for (size_t i = 0; i < from.inputs().size(); ++i) renamed_[from.inputs()[i]] = to().inputs()[i];
}

Operands Rebuild::Renamed(const ir::Node& node) const {
  Operands operands;
  for (const ir::ValueId operand : node.operands) operands.push_back(renamed_[operand]);
  return operands;
}

absl::StatusOr<ir::ValueId> Rebuild::Cast(ir::ValueId value, ir::DType dtype) {
  if (type(value).dtype == dtype) return value;
  if (const std::optional<ir::Number> number = to().ConstantValue(value)) {
    if (const auto converted = ConvertConstant(*number, type(value).dtype, dtype)) {
      return builder_.Constant(*converted, dtype);
    }
  }
  return builder_.Add(ir::Op::kCast, {value}, {{ir::AttributeKey::kDtype, dtype}});
}

absl::Status Rebuild::Copy(const ir::Node& node) {
  FUSIOND_ASSIGN_OR_RETURN(const ir::NodeId made,
                           builder_.AddNode(node.op, Renamed(node), node.attributes));
  for (size_t i = 0; i < node.results.size(); ++i) {
    renamed_[node.results[i]] = to().node(made).results[i];
  }
  return absl::OkStatus();
}

bool Rebuild::Finish(ir::Graph& graph) {
  ir::Graph made = std::move(builder_).Finish(from_, renamed_);
  graph.Compact();
  if (SameGraph(graph, made)) return false;
  graph = std::move(made);
  return true;
}

}  // namespace fusiond::passes
