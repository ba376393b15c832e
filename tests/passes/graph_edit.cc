#include "tests/passes/graph_edit.h"

#include "absl/container/inlined_vector.h"
#include "compiler/ir/specialise.h"
#include "compiler/ir/text.h"
#include "runtime/base/check.h"
#include "runtime/base/file.h"

namespace fusiond::testing {
namespace {

using ir::ValueId;

template <typename T>
T Ok(absl::StatusOr<T> value) {
  FUSIOND_CHECK(value.ok());
  return *std::move(value);
}

// Copies all nodes but inputs.
void CopyNodes(const ir::Graph& from, ir::Graph& to, std::vector<ValueId>& renamed) {
  for (const ir::NodeId id : from.TopologicalOrder()) {
    const ir::Node& node = from.node(id);
    if (node.op == ir::Op::kInput) continue;
    absl::InlinedVector<ValueId, 4> operands;
    for (const ValueId operand : node.operands) operands.push_back(renamed[operand]);
    const ir::NodeId made = Ok(to.AddNode(node.op, operands, node.attributes));
    for (size_t i = 0; i < node.results.size(); ++i) {
      renamed[node.results[i]] = to.node(made).results[i];
    }
  }
}

ValueId CopyInput(const ir::Graph& from, size_t index, ir::Graph& to) {
  const ValueId input = from.inputs()[index];
  return Ok(to.AddInput(from.type(input), from.producer(input).attributes));
}

}  // namespace

ir::Graph Reordered(const ir::Graph& graph, absl::Span<const size_t> inputs,
                    absl::Span<const size_t> outputs) {
  ir::Graph made;
  std::vector<ValueId> renamed(graph.value_count());
  std::vector<uint32_t> place(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    renamed[graph.inputs()[inputs[i]]] = CopyInput(graph, inputs[i], made);
    place[inputs[i]] = static_cast<uint32_t>(i);
  }
  CopyNodes(graph, made, renamed);
  for (const size_t i : outputs) {
    const ir::Output& output = graph.outputs()[i];
    std::optional<uint32_t> alias;
    if (output.alias_input) alias = place[*output.alias_input];
    made.AddOutput(renamed[output.value], alias);
  }
  return made;
}

ir::Graph WithInput(const ir::Graph& graph, size_t index, ir::Op op) {
  ir::Graph made;
  std::vector<ValueId> renamed(graph.value_count());
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    const ValueId input = CopyInput(graph, i, made);
    renamed[graph.inputs()[i]] = i == index ? Ok(made.Add(op, {input})) : input;
  }
  CopyNodes(graph, made, renamed);
  for (const ir::Output& output : graph.outputs()) {
    made.AddOutput(renamed[output.value], output.alias_input);
  }
  return made;
}

ir::Graph DataGraph(const std::string& name, absl::Span<const ir::Dims> extents) {
  ir::Graph graph = Ok(ir::Parse(Ok(base::ReadFile("tests/data/graphs/" + name + ".fir"))));
  if (!extents.empty()) graph = Ok(ir::Specialise(graph, extents));
  graph.Compact();
  return graph;
}

}  // namespace fusiond::testing
