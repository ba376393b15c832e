#include "tests/passes/rewriter.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "runtime/base/check.h"
#include "tests/passes/graph_edit.h"
#include "tests/passes/rewrite_forms.h"

namespace fusiond::testing {
namespace {

using ir::Graph;
using ir::Node;
using ir::NodeId;
using ir::Op;
using ir::Type;
using ir::ValueId;

// The graph with `form` applied at node `at`.
std::optional<Graph> Rewritten(const Graph& from, NodeId at, Form form) {
  Graph to;
  std::vector<ValueId> renamed(from.value_count());
  for (const NodeId id : from.TopologicalOrder()) {
    const Node& node = from.node(id);
    if (node.op == Op::kInput) {
      const auto input = to.AddInput(from.type(node.results[0]), node.attributes);
      FUSIOND_CHECK(input.ok());
      renamed[node.results[0]] = *input;
      continue;
    }
    if (id == at) {
      Site site(from, node, to, renamed);
      if (node.op == Op::kVarMean) {
        const std::vector<ValueId> moments = SpellMoments(site);
        for (size_t i = 0; i < 2; ++i) renamed[node.results[i]] = moments[i];
        continue;
      }
      const std::optional<ValueId> result = form(site);
      if (!result) return std::nullopt;
      renamed[node.results[0]] = *result;
      continue;
    }
    absl::InlinedVector<ValueId, 4> operands;
    for (const ValueId operand : node.operands) operands.push_back(renamed[operand]);
    const auto made = to.AddNode(node.op, operands, node.attributes);
    FUSIOND_CHECK(made.ok());
    for (size_t i = 0; i < node.results.size(); ++i) {
      renamed[node.results[i]] = to.node(*made).results[i];
    }
  }
  for (const ir::Output& output : from.outputs()) {
    // A rewrite may leave an output with other strides, or make it an input: not the same graph.
    const Type& type = to.type(renamed[output.value]);
    if (!(type == from.type(output.value))) return std::nullopt;
    to.AddOutput(renamed[output.value], output.alias_input);
  }
  to.Compact();
  return to;
}

}  // namespace

absl::string_view RewriteName(Rewrite kind) {
  constexpr absl::string_view kNames[] = {"swap operands",
                                          "pow/mul",
                                          "div/reciprocal",
                                          "broadcast before/after",
                                          "factored sums",
                                          "duplicate cast",
                                          "cast round trip",
                                          "neg placement",
                                          "double neg",
                                          "doubling",
                                          "mean",
                                          "reassociation",
                                          "arguments"};
  return kNames[static_cast<int>(kind)];
}

Rewriter::Rewriter(Graph graph, uint64_t seed) : graph_(std::move(graph)), random_(seed) {
  inputs_.resize(graph_.inputs().size());
  std::iota(inputs_.begin(), inputs_.end(), 0);
}

bool Rewriter::Apply(Rewrite kind) {
  if (kind == Rewrite::kShuffleArguments) {
    std::vector<size_t> order(inputs_.size());
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random_);
    if (std::is_sorted(order.begin(), order.end())) return false;
    std::vector<size_t> outputs(graph_.outputs().size());
    std::iota(outputs.begin(), outputs.end(), 0);
    graph_ = Reordered(graph_, order, outputs);
    std::vector<size_t> place(order.size());
    for (size_t i = 0; i < order.size(); ++i) place[order[i]] = i;
    for (size_t& input : inputs_) input = place[input];
    return true;
  }
  std::vector<std::pair<NodeId, Form>> places;
  for (NodeId id = 0; id < graph_.nodes().size(); ++id) {
    const Node& node = graph_.node(id);
    if (ir::Info(node.op).op_class == ir::OpClass::kLeaf) continue;
    if (node.results.size() > 1) {
      const bool spells = kind == Rewrite::kMean && node.op == Op::kVarMean &&
                          node.attributes.Bool(ir::AttributeKey::kKeepdim);
      if (spells) places.emplace_back(id, nullptr);
      continue;
    }
    for (const Form form : FormsOf(kind)) places.emplace_back(id, form);
  }
  std::shuffle(places.begin(), places.end(), random_);
  for (const auto& [id, form] : places) {
    if (std::optional<Graph> rewritten = Rewritten(graph_, id, form)) {
      graph_ = *std::move(rewritten);
      return true;
    }
  }
  return false;
}

}  // namespace fusiond::testing
