#include "compiler/ir/verify.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compiler/ir/infer_internal.h"
#include "compiler/ir/random.h"
#include "compiler/ir/rules.h"
#include "compiler/ir/text.h"
#include "compiler/ir/verify_internal.h"
#include "runtime/base/counted.h"
#include "runtime/base/status_macros.h"

namespace fusiond::ir {
namespace {

using base::Counted;

absl::Status AtNode(const Node& node, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(),
                      absl::StrFormat("node %%%d: %s", node.results[0], status.message()));
}

absl::Status CheckStoredTypes(const Graph& graph, const Node& node) {
  absl::InlinedVector<Type, 1> inferred(1);
  if (node.op == Op::kInput) {
    FUSIOND_RETURN_IF_ERROR(CheckForm(node.op, node.operands.size(), node.attributes));
    FUSIOND_ASSIGN_OR_RETURN(inferred[0], InputType(graph.type(node.results[0]), node.attributes));
  } else {
    absl::InlinedVector<const Type*, 4> operands;
    for (const ValueId operand : node.operands) operands.push_back(&graph.type(operand));
    FUSIOND_ASSIGN_OR_RETURN(inferred, InferTypes(node.op, operands, node.attributes));
  }
  for (size_t i = 0; i < inferred.size(); ++i) {
    const Type& stored = graph.type(node.results[i]);
    if (stored == inferred[i]) continue;
    return OpError(Rule::kStoredType, node.op,
                   absl::StrFormat("result %d has type %s, the node gives %s", i, Print(stored),
                                   Print(inferred[i])));
  }
  return absl::OkStatus();
}

absl::Status CheckSpecialised(const Graph& graph, const Node& node) {
  if (node.op == Op::kSize) return OpError(Rule::kNoSize, node.op, "a size op is left");
  if (IsRandom(node.op)) return OpError(Rule::kNoSize, node.op, "a random op is left");
  for (const ValueId result : node.results) {
    for (const int64_t extent : graph.type(result).shape) {
      if (extent != kSymbolic) continue;
      return OpError(Rule::kStatic, node.op,
                     absl::StrCat("symbolic extent in ", Print(graph.type(result))));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckAcyclic(const Graph& graph) {
  const std::vector<NodeId> order = graph.AcyclicOrder();
  const size_t left = graph.nodes().size() - order.size();
  if (left == 0) return absl::OkStatus();
  std::vector<bool> placed(graph.nodes().size());
  for (const NodeId id : order) placed[id] = true;
  const auto first =
      static_cast<NodeId>(std::find(placed.begin(), placed.end(), false) - placed.begin());
  return AtNode(graph.node(first),
                OpError(Rule::kDefinedBeforeUse, graph.node(first).op,
                        absl::StrCat("stands on a cycle or behind one, as do ", left,
                                     " of the graph's ", Counted(graph.nodes().size(), "node"))));
}

absl::Status CheckOutputs(const Graph& graph) {
  if (graph.outputs().empty()) {
    return RuleError(Rule::kHasOutput, "the graph has no output");
  }
  for (size_t i = 0; i < graph.outputs().size(); ++i) {
    const absl::Status status = CheckOutput(graph, graph.outputs()[i], graph.outputs().first(i));
    if (!status.ok()) {
      return absl::Status(status.code(), absl::StrFormat("output %d: %s", i, status.message()));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckOutput(const Graph& graph, const Output& output, absl::Span<const Output> earlier,
                         const ValueNames* names) {
  const Type& type = graph.type(output.value);
  if (type.scalar) {
    return RuleError(Rule::kOutputIsTensor,
                     absl::StrFormat("an output must be a tensor, %s is a scalar of %s",
                                     NameOf(output.value, names), DTypeName(type.dtype)));
  }
  if (!output.alias_input) return absl::OkStatus();
  const uint32_t index = *output.alias_input;
  if (index >= graph.inputs().size()) {
    return RuleError(Rule::kAlias, absl::StrFormat("alias of input %d, the graph has %s", index,
                                                   Counted(graph.inputs().size(), "input")));
  }
  const ValueId id = graph.inputs()[index];
  const Type& input = graph.type(id);
  const std::string name = absl::StrFormat("input %d (%s)", index, NameOf(id, names));
  const auto error = [](const std::string& what) { return RuleError(Rule::kAlias, what); };
  for (const Output& other : earlier) {
    if (other.alias_input == index)
      return error(absl::StrCat(name, " is the alias of an earlier output"));
  }
  if (input.scalar || input.dtype != type.dtype || input.shape != type.shape) {
    return error(absl::StrFormat("%s of type %s cannot be written into %s of type %s",
                                 NameOf(output.value, names), Print(type), name, Print(input)));
  }
  if (graph.producer(id).attributes.Bool(AttributeKey::kHost))
    return error(absl::StrCat(name, " lies in host memory"));
  if (std::count(input.strides.begin(), input.strides.end(), 0) > 0) {
    return error(absl::StrFormat(
        "%s of type %s has an expanded dim, whose elements share their place", name, Print(input)));
  }
  return absl::OkStatus();
}

absl::Status Verify(const Graph& graph, Stage stage, const Limits& limits) {
  FUSIOND_RETURN_IF_ERROR(CheckNodeCount(graph.nodes().size(), limits));
  FUSIOND_RETURN_IF_ERROR(CheckInterface(graph.inputs().size() + graph.outputs().size(), limits));
  FUSIOND_RETURN_IF_ERROR(CheckAcyclic(graph));
  for (const Node& node : graph.nodes()) {
    FUSIOND_RETURN_IF_ERROR(AtNode(node, CheckStoredTypes(graph, node)));
    for (const ValueId result : node.results) {
      FUSIOND_RETURN_IF_ERROR(AtNode(node, CheckElements(node.op, graph.type(result), limits)));
    }
    if (stage == Stage::kImported) continue;
    FUSIOND_RETURN_IF_ERROR(AtNode(node, CheckSpecialised(graph, node)));
    if (stage == Stage::kCanonical) {
      FUSIOND_RETURN_IF_ERROR(AtNode(node, CheckCanonical(graph, node)));
    }
  }
  return CheckOutputs(graph);
}

}  // namespace fusiond::ir
