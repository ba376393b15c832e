#include "tests/ir/infer_text.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "compiler/ir/text.h"

namespace fusiond::ir {
namespace {

// A graph whose last node is `op` on the inputs.
absl::StatusOr<Graph> Build(absl::string_view op, absl::string_view inputs,
                            absl::string_view attributes) {
  std::string text = "fir 1\n%anchor = input : f32[]\n";
  std::string operands;
  int count = 0;
  for (const absl::string_view type : absl::StrSplit(inputs, ' ', absl::SkipEmpty())) {
    absl::StrAppend(&text, "%i", count, " = input : ", type, "\n");
    absl::StrAppend(&operands, count == 0 ? "" : ", ", "%i", count);
    ++count;
  }
  const std::optional<Op> known = OpFromName(op);
  std::string results = "%r0";
  for (int i = 1; known && i < Info(*known).results; ++i) absl::StrAppend(&results, ", %r", i);
  absl::StrAppend(&text, results, " = ", op, " ", operands, " ", attributes, "\noutput %anchor\n");
  return Parse(text);
}

}  // namespace

std::string Infer(absl::string_view op, absl::string_view inputs, absl::string_view attributes) {
  const absl::StatusOr<Graph> graph = Build(op, inputs, attributes);
  if (!graph.ok()) {
    // "8:7: node %r0: IR-18: …"
    const std::vector<std::string> parts =
        absl::StrSplit(graph.status().message(), absl::MaxSplits(": ", 2));
    return parts.back();
  }
  std::string types;
  for (const ValueId result : graph->nodes().back().results) {
    absl::StrAppend(&types, types.empty() ? "" : " ", Print(graph->type(result)));
  }
  return types;
}

std::string Compute(absl::string_view op, absl::string_view inputs) {
  const absl::StatusOr<Graph> graph = Build(op, inputs, "");
  if (!graph.ok()) return graph.status().ToString();
  const Node& node = graph->nodes().back();
  std::vector<const Type*> types;
  for (const ValueId operand : node.operands) types.push_back(&graph->type(operand));
  const absl::StatusOr<DType> dtype = PointwiseComputeType(node.op, types, node.attributes);
  return dtype.ok() ? std::string(DTypeName(*dtype)) : dtype.status().ToString();
}

}  // namespace fusiond::ir
