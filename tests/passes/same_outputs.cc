#include "tests/passes/same_outputs.h"

#include <random>

#include "compiler/ir/text.h"
#include "compiler/passes/constants.h"
#include "runtime/cpu/evaluate.h"
#include "tests/support/kernel_reference.h"
#include "tests/support/within_bounds.h"

namespace fusiond::testing {
namespace {

// f32 constants stand as the shortest decimal that reads as their value, and the evaluator computes
// in double with what stands there. Here they have the value that a kernel computes with.
ir::Graph WithConstantsOfTheirType(ir::Graph graph) {
  const auto nodes = static_cast<ir::NodeId>(graph.nodes().size());
  for (ir::NodeId id = 0; id < nodes; ++id) {
    const ir::Node& node = graph.node(id);
    if (node.op != ir::Op::kConstant) continue;
    const ir::ValueId constant = node.results[0];
    const auto value = passes::FloatConstant(graph, constant);
    if (!value || graph.type(constant).dtype != ir::DType::kFloat) continue;
    const auto held =
        graph.AddNode(ir::Op::kConstant, {},
                      {{ir::AttributeKey::kDtype, ir::DType::kFloat},
                       {ir::AttributeKey::kValue, cpu::RoundTo(ir::DType::kFloat, *value)}});
    if (held.ok()) graph.ReplaceUses(constant, graph.node(*held).results[0]);
  }
  return graph;
}

::testing::AssertionResult SameTensor(const cpu::HostTensor& before, const cpu::HostTensor& after,
                                      bool finite_only) {
  if (!(before.type == after.type)) {
    return ::testing::AssertionFailure()
           << ir::Print(before.type) << " became " << ir::Print(after.type);
  }
  BoundsReport report;
  const absl::Status same =
      CompareWithinBounds(after, before, {.finite_only = finite_only}, report);
  if (!same.ok()) return ::testing::AssertionFailure() << same;
  return ::testing::AssertionSuccess();
}

// Natively, with bounds of 0.
absl::StatusOr<std::vector<cpu::HostTensor>> EvaluateNatively(
    const ir::Graph& graph, const std::vector<cpu::HostTensor>& inputs) {
  absl::StatusOr<std::vector<cpu::HostTensor>> values = cpu::Evaluate(graph, inputs);
  if (!values.ok()) return values;
  for (cpu::HostTensor& value : *values) value.error.assign(value.size(), 0);
  return values;
}

}  // namespace

std::vector<cpu::HostTensor> RandomInputs(const ir::Graph& graph, uint64_t seed, bool positive) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> real(positive ? 0.25 : -2.0, 2.0);
  std::vector<cpu::HostTensor> inputs;
  for (const ir::ValueId id : graph.inputs()) {
    cpu::HostTensor tensor;
    tensor.type = graph.type(id);
    const auto count = static_cast<size_t>(ir::ElementCount(tensor.type).value());
    for (size_t i = 0; i < count; ++i) {
      const double value = real(random);
      if (ir::IsFloatingPoint(tensor.type.dtype)) {
        tensor.floats.push_back(cpu::RoundTo(tensor.type.dtype, value));
      } else if (tensor.type.dtype == ir::DType::kBool) {
        tensor.integers.push_back(value > 0.9);
      } else {
        tensor.integers.push_back(static_cast<int64_t>(value * 5));
      }
    }
    inputs.push_back(std::move(tensor));
  }
  return inputs;
}

bool AllElements(const ir::Graph& graph, uint64_t seed, bool positive, bool (*holds)(double)) {
  ir::Graph all = graph;
  for (ir::ValueId id = 0; id < graph.value_count(); ++id) {
    if (!graph.type(id).scalar) all.AddOutput(id);
  }
  const auto values = cpu::Evaluate(all, RandomInputs(graph, seed, positive));
  if (!values.ok()) return false;
  for (const cpu::HostTensor& value : *values) {
    for (const double element : value.floats) {
      if (!holds(element)) return false;
    }
  }
  return true;
}

::testing::AssertionResult SameOutputs(const ir::Graph& before, const ir::Graph& after,
                                       uint64_t seed, const SameOutputsOptions& options) {
  const std::vector<cpu::HostTensor> inputs = RandomInputs(before, seed, options.positive_inputs);
  const ir::Graph from = WithConstantsOfTheirType(before), to = WithConstantsOfTheirType(after);
  const auto actual = cpu::Evaluate(to, inputs, {.double_precision = !options.native});
  const auto expected = options.native ? EvaluateNatively(from, inputs)
                                       : EvaluateForms(from, to, inputs, options.math);
  if (!expected.ok()) return ::testing::AssertionFailure() << expected.status();
  if (!actual.ok()) return ::testing::AssertionFailure() << actual.status();
  if (expected->size() != actual->size()) {
    return ::testing::AssertionFailure() << "the number of outputs changed";
  }
  for (size_t i = 0; i < expected->size(); ++i) {
    const auto result = SameTensor((*expected)[i], (*actual)[i], options.finite_only);
    if (!result) {
      return ::testing::AssertionFailure() << "output " << i << ": " << result.message() << "\n"
                                           << ir::Print(before) << "became\n"
                                           << ir::Print(after);
    }
  }
  return ::testing::AssertionSuccess();
}

}  // namespace fusiond::testing
